select id from durable_runs where id = any($1)
