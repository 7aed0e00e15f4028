-- First turns that wait to be claimed.
insert into durable_tasks (
    run, name, version, queue, tenant, priority, seq, ready_order, trace_context, place, kind,
    target, fresh, claim_number, state, attempt, deaths
)
values <<($1, $2, $3, $4, $5, $6, $7, $8, $9, 0, 'turn', '', 1, 0, 'ready', 0, 0)>>
