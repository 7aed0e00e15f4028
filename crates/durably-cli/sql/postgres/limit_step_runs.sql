update durable_runs r
set head = n.head + 2
from unnest($1::uuid[], $2::bigint[]) as n (id, head)
where r.id = n.id and r.head = n.head
