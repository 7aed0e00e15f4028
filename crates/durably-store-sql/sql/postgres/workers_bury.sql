update durable_workers
set status = 'stale'
where id = any($1)
