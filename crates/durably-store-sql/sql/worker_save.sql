update durable_workers
set status = $2, current_load = $3, last_heartbeat_at = $4, beats = $5
where id = $1
