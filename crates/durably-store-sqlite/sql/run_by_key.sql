select id, workflow_type, input_hash
from durable_runs
where idempotency_key = ?2 and tenant = ?1
