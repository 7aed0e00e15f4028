insert into durable_tasks (
    run, place, kind, name, target, watched, version, queue, tenant, priority, fresh, seq,
    claim_number, state, ready_order, due_at, owner, call_id, claimed_at, deadline, heartbeat_ms,
    heartbeat_by, unnamed, attempt, deaths, losses, options, trace_context, details, input
)
values <<(
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21,
    $22, $23, $24, $25, $26, $27, $28, $29, $30
)>>
on duplicate key update
    kind = values(kind), name = values(name), target = values(target), watched = values(watched),
    version = values(version), queue = values(queue), tenant = values(tenant),
    priority = values(priority), fresh = values(fresh), seq = values(seq),
    claim_number = values(claim_number), state = values(state), ready_order = values(ready_order),
    due_at = values(due_at), owner = values(owner), call_id = values(call_id),
    claimed_at = values(claimed_at), deadline = values(deadline),
    heartbeat_ms = values(heartbeat_ms), heartbeat_by = values(heartbeat_by),
    unnamed = values(unnamed), attempt = values(attempt), deaths = values(deaths),
    losses = values(losses), options = values(options), trace_context = values(trace_context),
    details = values(details), input = values(input)
