-- One task ended and the next created as claimed, in place, under the claim of this process. The
-- owner is looked at, not looked for: one owner has them all.
update durable_tasks t
set target = $6, seq = n.head + 2, claimed_at = $7::bigint, deadline = $7::bigint + 600000,
    input = n.input
from unnest($1::uuid[], $2::integer[], $3::bigint[], $4::text[]) as n (run, place, head, input)
where t.run = n.run and t.place = n.place and t.seq = n.head and t.state = 'claimed'
    and (t.owner = $5) is true
