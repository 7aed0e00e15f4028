-- Tasks of runs that begin.
insert into durable_tasks (
    run, place, kind, name, target, watched, version, queue, tenant, priority, fresh, seq,
    claim_number, state, ready_order, due_at, owner, call_id, claimed_at, deadline, heartbeat_ms,
    heartbeat_by, unnamed, attempt, deaths, losses, options, trace_context, details, input
)
select * from unnest(
    $1::uuid[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[],
    $8::text[], $9::text[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[],
    $14::text[], $15::bigint[], $16::bigint[], $17::text[], $18::uuid[], $19::bigint[],
    $20::bigint[], $21::bigint[], $22::bigint[], $23::bigint[], $24::bigint[], $25::bigint[],
    $26::text[], $27::text[], $28::text[], $29::text[], $30::text[]
)
