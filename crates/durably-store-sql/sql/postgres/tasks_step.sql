-- Tasks that their worker goes on from, to the next one of the same kind.
update durable_tasks t
set
    target = n.target, seq = n.seq, claim_number = n.claim_number, claimed_at = n.claimed_at,
    deadline = n.deadline, attempt = n.attempt, trace_context = n.trace_context, input = n.input
from unnest(
    $1::uuid[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],
    $8::bigint[], $9::text[], $10::text[]
) as n (
    run, place, target, seq, claim_number, claimed_at, deadline, attempt, trace_context, input
)
where t.run = n.run and t.place = n.place
