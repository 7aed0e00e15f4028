select count(*) from information_schema.tables
where table_schema = ? and table_name = concat(?, 'durable_runs')
