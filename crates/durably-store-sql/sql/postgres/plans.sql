-- Plans as they are for large tables, from the first statement on, and made once: what is asked for
-- is found by an index, however few rows a table has yet. A server that lacks a setting goes without.
select set_config(s.name, w.value, false)
from (
    values
        ('plan_cache_mode', 'force_generic_plan'),
        ('enable_seqscan', 'off'),
        ('enable_hashjoin', 'off'),
        ('enable_mergejoin', 'off'),
        ('jit', 'off')
) as w (name, value)
join pg_catalog.pg_settings s on s.name = w.name
