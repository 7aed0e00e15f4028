insert into durable_tasks (
    run, place, kind, name, target, version, queue, tenant, priority, fresh, seq, claim_number,
    state, ready_order, due_at, owner, claimed_at, deadline, attempt, deaths, trace_context
) values (
    ?1, 0, 'turn', ?2, '', ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, 0, 0, ?16
)
