select
    id, worker_group, status, max_concurrency, current_load, queues, can, hostname, version,
    started_at, last_heartbeat_at, beats
from durable_workers
where id = any($1)
