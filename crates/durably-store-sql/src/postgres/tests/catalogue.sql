select 'table ' || c.relname || ' ' || c.relkind::text || ' ' || coalesce(c.reloptions::text, '')
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname = $1 and c.relkind in ('r', 'v', 'S')
union all
select 'column ' || c.relname || ' ' || a.attnum || ' ' || a.attname || ' '
    || format_type(a.atttypid, a.atttypmod) || ' ' || a.attnotnull || ' ' || a.attidentity::text || ' '
    || coalesce(l.collname, '') || ' ' || coalesce(pg_get_expr(d.adbin, d.adrelid), '')
from pg_attribute a
join pg_class c on c.oid = a.attrelid
join pg_namespace n on n.oid = c.relnamespace
left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
left join pg_collation l on l.oid = a.attcollation
where n.nspname = $1 and c.relkind in ('r', 'v') and a.attnum > 0 and not a.attisdropped
union all
select 'constraint ' || c.relname || ' ' || o.conname || ' ' || pg_get_constraintdef(o.oid)
from pg_constraint o
join pg_class c on c.oid = o.conrelid
join pg_namespace n on n.oid = c.relnamespace
where n.nspname = $1
union all
select 'index ' || i.tablename || ' ' || i.indexname || ' ' || i.indexdef
from pg_indexes i
where i.schemaname = $1
union all
select 'view ' || v.viewname || ' ' || v.definition
from pg_views v
where v.schemaname = $1
