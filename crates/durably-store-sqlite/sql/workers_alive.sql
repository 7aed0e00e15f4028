select id, hostname, locked, last_heartbeat_at
from durable_workers
where status in ('active', 'draining')
order by id
