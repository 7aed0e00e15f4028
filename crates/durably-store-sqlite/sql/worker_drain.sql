update durable_workers set status = 'draining' where id = ?1 and status = 'active'
