-- Whether there is a store: by the schema (null: the one that tables are made in) and prefix.
select exists (
    select from pg_catalog.pg_tables
    where schemaname = coalesce($1, current_schema()) and tablename = $2 || 'durable_runs'
)
