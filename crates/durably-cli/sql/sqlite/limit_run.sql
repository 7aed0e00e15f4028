insert into durable_runs (
    id, tenant, workflow_type, version, queue, priority, input_hash, status, head, created_at,
    started_at
) values (?1, 'default', 'bench-machine', 1, 'default', 0, ?2, ?4, ?5, ?3, ?3)
