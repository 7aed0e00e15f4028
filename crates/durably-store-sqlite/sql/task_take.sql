-- A ready row comes into the hands of a process.
update durable_tasks
set claim_number = ?2, state = 'claimed', owner = ?3, call_id = ?4, claimed_at = ?5, deadline = ?6,
    heartbeat_ms = ?7, heartbeat_by = ?8, unnamed = 0, attempt = ?9, due_at = null
where rowid = ?1
