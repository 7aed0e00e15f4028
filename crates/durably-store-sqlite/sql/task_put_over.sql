-- Writes over the row at a place: its claim number goes on, and what its attempt said last stays if
-- it is still the same task.
update durable_tasks
set details = coalesce(?18, case when kind = ?3 and target = ?5 then details end),
    kind = ?3, name = ?4, target = ?5, watched = ?6, version = 0, queue = ?7, tenant = ?8,
    priority = ?9, fresh = 0, seq = ?10, claim_number = claim_number + (?20 is not null),
    state = ?11, ready_order = ?12, due_at = ?13,
    owner = ?20, call_id = null, claimed_at = ?21, deadline = ?22, heartbeat_ms = ?23,
    heartbeat_by = ?24, unnamed = 0, attempt = ?14, deaths = ?15, losses = null, input = ?16,
    options = ?17, trace_context = ?19
where run = ?1 and place = ?2
