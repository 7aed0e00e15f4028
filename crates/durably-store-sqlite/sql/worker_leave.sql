update durable_workers
set status = 'stopped', current_load = 0
where id = ?1 and status in ('active', 'draining')
