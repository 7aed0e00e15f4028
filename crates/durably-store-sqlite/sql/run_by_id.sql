select id, workflow_type, input_hash
from durable_runs
where id = ?1
