-- A place that is there is written over: its claim number goes on, and what its attempt said last
-- stays if it is still the same task.
insert into durable_tasks (
    run, place, kind, name, target, watched, version, queue, tenant, priority, fresh, seq,
    claim_number, state, ready_order, due_at, attempt, deaths, input, options, details,
    trace_context
) values (
    ?1, ?2, ?3, ?4, ?5, ?6, 0, ?7, ?8, ?9, 0, ?10,
    0, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18,
    ?19
)
on conflict (run, place) do update set
    details = coalesce(
        excluded.details,
        case when kind = excluded.kind and target = excluded.target then details end
    ),
    kind = excluded.kind, name = excluded.name, target = excluded.target,
    watched = excluded.watched, version = 0, queue = excluded.queue,
    priority = excluded.priority, fresh = 0, seq = excluded.seq, state = excluded.state,
    ready_order = excluded.ready_order, due_at = excluded.due_at, owner = null, call_id = null,
    claimed_at = null, deadline = null, heartbeat_ms = null, heartbeat_by = null, unnamed = 0,
    attempt = excluded.attempt, deaths = excluded.deaths, losses = null, input = excluded.input,
    options = excluded.options, trace_context = excluded.trace_context
