update durable_tasks
set version = ?3, fresh = ?4, claim_number = ?5, state = ?6, ready_order = ?7, due_at = ?8,
    owner = ?9, call_id = ?10, claimed_at = ?11, deadline = ?12, heartbeat_ms = ?13,
    heartbeat_by = ?14, unnamed = ?15, attempt = ?16, deaths = ?17, losses = ?18
where run = ?1 and place = ?2
