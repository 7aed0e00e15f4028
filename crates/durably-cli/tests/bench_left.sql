select nspname::text from pg_catalog.pg_namespace where nspname like 'durably\_bench\_%'
union all
select schemaname || '.' || tablename from pg_catalog.pg_tables where tablename like '%durable\_%'
