-- What every step changes; no indexed column is among them.
update durable_runs
set head = ?2, version = ?3, started_at = ?4, waits = ?5, retries = ?6, last_error = ?7
where rowid = ?1
