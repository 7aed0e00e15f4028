select count(*) from sqlite_schema where type = 'table' and name = 'durable_runs'
