-- Runs that begin: what they are known by, and how far they are.
insert into durable_runs (
    id, tenant, workflow_type, version, queue, priority, idempotency_key, input_hash, attributes,
    trace_context, head, turn_counter, created_at, started_at, status, stamp
)
values <<($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)>>
