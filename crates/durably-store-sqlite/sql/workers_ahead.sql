-- Beats later than ?2 are of before the clock was set back.
update durable_workers
set last_heartbeat_at = ?1
where status in ('active', 'draining') and last_heartbeat_at > ?2
