-- The index has those that are parked after the others.
(
    select
        id, tenant, workflow_type, version, queue, priority, idempotency_key, input_hash,
        attributes, status, head, inbox_last, inbox_used, turn_counter, parked_code,
        parked_reason, parked_times, parked_at, waits, retries, last_error, created_at,
        started_at, ended_at
    from durable_runs force index (durable_runs_status)
    where status = $5 and parked_at is null and ($1 is null or id < $1)
        and ($2 is null or tenant = $2) and ($3 is null or workflow_type = $3)
    order by id desc
    limit $4
)
union all
(
    select
        id, tenant, workflow_type, version, queue, priority, idempotency_key, input_hash,
        attributes, status, head, inbox_last, inbox_used, turn_counter, parked_code,
        parked_reason, parked_times, parked_at, waits, retries, last_error, created_at,
        started_at, ended_at
    from durable_runs force index (durable_runs_status)
    where status = $5 and parked_at is not null and ($1 is null or id < $1)
        and ($2 is null or tenant = $2) and ($3 is null or workflow_type = $3)
    order by id desc
    limit $4
)
order by id desc
limit $4
