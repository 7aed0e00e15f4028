-- What every step changes; no indexed column is among them.
update durable_runs
set version = ?2, head = ?3, inbox_used = ?4, turn_counter = ?5, waits = ?6, retries = ?7,
    last_error = ?8, started_at = ?9
where id = ?1
