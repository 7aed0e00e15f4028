update durable_leader
set leader = ?1, term = ?2, renewed_at = ?3, lease_ms = ?4
where id = 1
