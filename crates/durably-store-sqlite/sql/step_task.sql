-- The next task at a place whose owner stays the same: neither state nor owner change, so no index
-- does.
update durable_tasks
set details = coalesce(?2, case when target = ?4 then details end),
    name = ?3, target = ?4, queue = ?5, priority = ?6, seq = ?7, claim_number = ?8,
    claimed_at = ?9, deadline = ?10, heartbeat_ms = ?11, heartbeat_by = ?12, unnamed = 0,
    attempt = ?13, deaths = ?14, losses = null, input = ?15, options = ?16, trace_context = ?17,
    watched = null
where rowid = ?1
