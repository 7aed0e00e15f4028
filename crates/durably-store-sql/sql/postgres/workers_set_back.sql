update durable_workers
set last_heartbeat_at = $1
where id = any($3) and status in ('active', 'draining') and last_heartbeat_at > $2
