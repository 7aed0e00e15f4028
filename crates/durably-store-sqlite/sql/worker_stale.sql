update durable_workers set status = 'stale' where id = ?1
