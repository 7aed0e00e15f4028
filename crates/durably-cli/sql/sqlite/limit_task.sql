insert into durable_tasks (
    run, place, kind, name, target, version, queue, tenant, priority, fresh, seq, claim_number,
    state, ready_order, owner, claimed_at, deadline, attempt, deaths, options, input
) values (
    ?1, 1, 'activity', 'bench-step', 'step-1', 0, 'default', 'default', 0, 0, 3, 1,
    'claimed', 0, ?2, ?3, ?3, 1, 0, '{}', ?4
)
