insert into durable_runs (
    id, tenant, workflow_type, version, queue, priority, input_hash, status, head, created_at
)
select n.id, 'default', 'bench-machine', 1, 'default', 0, $2, $3, $4, $5
from unnest($1::uuid[]) as n (id)
