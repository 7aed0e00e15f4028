-- Plans as they are for large tables, from the first batch on.
select
    set_config('enable_seqscan', 'off', false),
    set_config('enable_hashjoin', 'off', false),
    set_config('enable_mergejoin', 'off', false)
