-- First turns that wait to be claimed.
insert into durable_tasks (
    run, name, version, queue, tenant, priority, seq, ready_order, trace_context, place, kind,
    target, fresh, claim_number, state, attempt, deaths
)
select n.*, 0, 'turn', '', 1, 0, 'ready', 0, 0 from unnest(
    $1::uuid[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::bigint[], $7::bigint[],
    $8::bigint[], $9::text[]
) as n
