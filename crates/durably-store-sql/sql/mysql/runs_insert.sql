insert into durable_runs (
    id, tenant, workflow_type, version, queue, priority, idempotency_key, input_hash, attributes,
    trace_context, status, head, inbox_last, inbox_used, turn_counter, parked_code,
    parked_reason, parked_times, parked_at, waits, retries, last_error, created_at, started_at,
    ended_at, stamp
)
values <<(
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21,
    $22, $23, $24, $25, $26
)>>
