select
    id, tenant, workflow_type, version, queue, priority, idempotency_key, input_hash, attributes, status,
    head, inbox_last, inbox_used, turn_counter, parked_code, parked_reason, parked_times, parked_at,
    waits, retries, last_error, created_at, started_at, ended_at
from durable_runs indexed by durable_runs_key
where idempotency_key = ?5 and id < coalesce(?1, x'ffffffffffffffffffffffffffffffffff')
    and (?2 is null or tenant = ?2) and (?3 is null or workflow_type = ?3)
order by id desc
limit ?4
