update durable_workers
set last_heartbeat_at = ?2, current_load = ?3
where id = ?1 and status in ('active', 'draining')
