-- Tasks that their worker goes on from, to the next one of the same kind. They are there and locked.
insert into durable_tasks (
    run, place, target, seq, claim_number, claimed_at, deadline, attempt, trace_context, input,
    kind, name, version, queue, tenant, priority, fresh, state, ready_order, deaths
)
values <<($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 'turn', '', 0, '', '', 0, 0, 'waiting', 0, 0)>>
on duplicate key update
    target = values(target), seq = values(seq), claim_number = values(claim_number),
    claimed_at = values(claimed_at), deadline = values(deadline), attempt = values(attempt),
    trace_context = values(trace_context), input = values(input)
