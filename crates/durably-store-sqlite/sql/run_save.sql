update durable_runs
set version = ?2, head = ?3, inbox_used = ?4, turn_counter = ?5, waits = ?6, retries = ?7,
    last_error = ?8, started_at = ?9, status = ?10, parked_code = ?11, parked_reason = ?12,
    parked_times = ?13, parked_at = ?14, ended_at = ?15
where id = ?1
