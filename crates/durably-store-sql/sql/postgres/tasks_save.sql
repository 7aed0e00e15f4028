update durable_tasks t
set
    version = n.version, fresh = n.fresh, seq = n.seq, claim_number = n.claim_number,
    state = n.state, ready_order = n.ready_order, due_at = n.due_at, owner = n.owner,
    call_id = n.call_id, claimed_at = n.claimed_at, deadline = n.deadline,
    heartbeat_ms = n.heartbeat_ms, heartbeat_by = n.heartbeat_by, unnamed = n.unnamed,
    attempt = n.attempt, deaths = n.deaths, losses = n.losses, details = n.details
from unnest(
    $1::uuid[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::text[],
    $8::bigint[], $9::bigint[], $10::text[], $11::uuid[], $12::bigint[], $13::bigint[],
    $14::bigint[], $15::bigint[], $16::bigint[], $17::bigint[], $18::bigint[], $19::text[],
    $20::text[]
) as n (
    run, place, version, fresh, seq, claim_number, state, ready_order, due_at, owner, call_id,
    claimed_at, deadline, heartbeat_ms, heartbeat_by, unnamed, attempt, deaths, losses, details
)
where t.run = n.run and t.place = n.place
