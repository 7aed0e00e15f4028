insert into durable_runs (
    id, input_hash, status, head, created_at, tenant, workflow_type, version, queue, priority
)
values <<(?, ?, ?, ?, ?, 'default', 'bench-machine', 1, 'default', 0)>>
