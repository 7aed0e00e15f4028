-- Runs that begin: what they are known by, and how far they are.
insert into durable_runs (
    id, tenant, workflow_type, version, queue, priority, idempotency_key, input_hash, attributes,
    trace_context, head, turn_counter, created_at, started_at, status, stamp
)
select n.*, $16 from unnest(
    $1::uuid[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::bigint[], $7::text[],
    $8::text[], $9::text[], $10::text[], $11::bigint[], $12::bigint[], $13::bigint[],
    $14::bigint[], $15::text[]
) as n
