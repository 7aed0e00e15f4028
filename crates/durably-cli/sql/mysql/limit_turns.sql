insert into durable_tasks (
    run, ready_order, place, kind, name, target, version, queue, tenant, priority, fresh, seq,
    claim_number, state, attempt, deaths
)
values <<(
    ?, ?, 0, 'turn', 'bench-machine', '', 0, 'default', 'default', 0, 1, 1, 0, 'ready', 0, 0
)>>
