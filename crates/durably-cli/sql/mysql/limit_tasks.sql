insert into durable_tasks (
    run, owner, claimed_at, deadline, input, place, kind, name, target, version, queue, tenant,
    priority, fresh, seq, claim_number, state, ready_order, attempt, deaths, options
)
values <<(
    ?, ?, ?, ?, ?, 1, 'activity', 'bench-step', 'step-1', 0, 'default', 'default', 0, 0, 3, 1,
    'claimed', 0, 1, 0, '{}'
)>>
