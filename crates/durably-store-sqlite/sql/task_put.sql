insert into durable_tasks (
    run, place, kind, name, target, watched, version, queue, tenant, priority, fresh, seq,
    claim_number, state, ready_order, due_at, attempt, deaths, input, options, details,
    trace_context, owner, claimed_at, deadline, heartbeat_ms, heartbeat_by
) values (
    ?1, ?2, ?3, ?4, ?5, ?6, 0, ?7, ?8, ?9, 0, ?10,
    ?20 is not null, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18,
    ?19, ?20, ?21, ?22, ?23, ?24
)
on conflict (run, place) do nothing
