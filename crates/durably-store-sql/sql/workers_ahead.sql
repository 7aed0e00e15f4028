-- Beats later than $1 are of before the clock was set back.
select id
from durable_workers
where status in ('active', 'draining') and last_heartbeat_at > $1
order by id
