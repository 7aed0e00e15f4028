insert into durable_tasks (
    run, place, kind, name, target, version, queue, tenant, priority, fresh, seq, claim_number,
    state, ready_order, attempt, deaths
) values (
    ?1, 0, 'turn', 'bench-machine', '', 0, 'default', 'default', 0, 1, 1, 0, 'ready', ?2, 0, 0
)
