-- Whoever was silent since $1, but for whoever looks.
select id
from durable_workers
where status in ('active', 'draining') and last_heartbeat_at < $1 and id <> $2
order by id
for update
