update durable_workers
set last_heartbeat_at = ?2, current_load = ?3, beats = ?4
where id = ?1 and beats < ?4
