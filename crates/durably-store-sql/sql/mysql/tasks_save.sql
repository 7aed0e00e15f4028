-- The rows are there and locked: nothing is inserted, and what cannot change has any value.
insert into durable_tasks (
    run, place, version, fresh, seq, claim_number, state, ready_order, due_at, owner, call_id,
    claimed_at, deadline, heartbeat_ms, heartbeat_by, unnamed, attempt, deaths, losses, details,
    kind, name, target, queue, tenant, priority
)
values <<(
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20,
    'turn', '', '', '', '', 0
)>>
on duplicate key update
    version = values(version), fresh = values(fresh), seq = values(seq),
    claim_number = values(claim_number), state = values(state), ready_order = values(ready_order),
    due_at = values(due_at), owner = values(owner), call_id = values(call_id),
    claimed_at = values(claimed_at), deadline = values(deadline),
    heartbeat_ms = values(heartbeat_ms), heartbeat_by = values(heartbeat_by),
    unnamed = values(unnamed), attempt = values(attempt), deaths = values(deaths),
    losses = values(losses), details = values(details)
