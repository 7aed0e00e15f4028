-- Tasks of runs that begin.
insert into durable_tasks (
    run, place, kind, name, target, watched, version, queue, tenant, priority, fresh, seq,
    claim_number, state, ready_order, due_at, owner, call_id, claimed_at, deadline, heartbeat_ms,
    heartbeat_by, unnamed, attempt, deaths, losses, options, trace_context, details, input
)
values <<(
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21,
    $22, $23, $24, $25, $26, $27, $28, $29, $30
)>>
