insert into durable_runs (
    id, tenant, workflow_type, version, queue, priority, idempotency_key, input_hash, attributes,
    trace_context, status, head, inbox_last, inbox_used, turn_counter, parked_code,
    parked_reason, parked_times, parked_at, waits, retries, last_error, created_at, started_at,
    ended_at, stamp
)
select n.*, $26 from unnest(
    $1::uuid[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::bigint[], $7::text[],
    $8::text[], $9::text[], $10::text[], $11::text[], $12::bigint[], $13::bigint[],
    $14::bigint[], $15::bigint[], $16::text[], $17::text[], $18::bigint[], $19::bigint[],
    $20::text[], $21::bigint[], $22::text[], $23::bigint[], $24::bigint[], $25::bigint[]
) as n
