-- A run begins or ends: its status changes.
update durable_runs r
set head = n.head + 2, status = $3, started_at = coalesce(r.started_at, $4::bigint), ended_at = $5
from unnest($1::uuid[], $2::bigint[]) as n (id, head)
where r.id = n.id and r.head = n.head
