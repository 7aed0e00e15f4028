update durable_workers
set last_heartbeat_at = $1
where id in (<<in $3>>) and status in ('active', 'draining') and last_heartbeat_at > $2
