update durable_tasks
set heartbeat_ms = ?3, heartbeat_by = ?4, details = coalesce(?5, details)
where run = ?1 and place = ?2
