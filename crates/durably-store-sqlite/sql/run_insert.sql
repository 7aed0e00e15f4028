insert into durable_runs (
    id, version, head, inbox_used, turn_counter, waits, retries, last_error, started_at, status,
    parked_code, parked_reason, parked_times, parked_at, ended_at,
    tenant, workflow_type, queue, priority, idempotency_key, input_hash, attributes,
    trace_context, created_at
) values (
    ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15,
    ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24
)
