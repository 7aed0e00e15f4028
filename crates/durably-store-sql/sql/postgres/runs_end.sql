-- Runs that ended, and nothing else.
update durable_runs r
set head = n.head, status = n.status, ended_at = n.ended_at, stamp = $5
from unnest($1::uuid[], $2::bigint[], $3::text[], $4::bigint[]) as n (id, head, status, ended_at)
where r.id = n.id
