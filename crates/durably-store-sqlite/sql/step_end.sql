update durable_runs
set head = ?2, version = ?3, started_at = ?4, waits = ?5, retries = ?6, last_error = ?7,
    status = ?8, ended_at = ?9
where rowid = ?1
