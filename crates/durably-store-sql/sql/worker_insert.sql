insert into durable_workers (
    id, worker_group, queues, can, max_concurrency, current_load, status, hostname, version,
    started_at, last_heartbeat_at
) values ($1, $2, $3, $4, $5, 0, 'active', $6, $7, $8, $8)
