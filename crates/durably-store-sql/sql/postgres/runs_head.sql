-- Runs that went on by a step, and nothing else.
update durable_runs r
set head = n.head, stamp = $3
from unnest($1::uuid[], $2::bigint[]) as n (id, head)
where r.id = n.id
