select
    id, tenant, workflow_type, version, queue, priority, idempotency_key, input_hash, attributes,
    status, head, inbox_last, inbox_used, turn_counter, parked_code, parked_reason, parked_times,
    parked_at, waits, retries, last_error, created_at, started_at, ended_at,
    stamp
from durable_runs force index (primary)
where id in (<<in $1>>)
