-- One task ended and the next created as claimed, in place.
insert into durable_tasks (
    run, target, seq, owner, claimed_at, deadline, input, place, kind, name, version, queue,
    tenant, priority, fresh, claim_number, state, ready_order, attempt, deaths
)
values <<(
    ?, ?, ?, ?, ?, ?, ?, 1, 'activity', '', 0, '', '', 0, 0, 1, 'claimed', 0, 1, 0
)>>
on duplicate key update
    target = values(target), seq = values(seq), claimed_at = values(claimed_at),
    deadline = values(deadline), input = values(input)
