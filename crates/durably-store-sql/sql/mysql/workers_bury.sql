update durable_workers
set status = 'stale'
where id in (<<in $1>>)
