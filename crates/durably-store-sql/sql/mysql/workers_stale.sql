-- Whoever was silent since $1, but for whoever looks. Only those are locked: a scan with locks
-- would wait for everybody who is at work.
select w.id
from (
    select id
    from durable_workers
    where status in ('active', 'draining') and last_heartbeat_at < $1 and id <> $2
    limit 1000
) s
straight_join durable_workers w force index (primary) on w.id = s.id
where w.status in ('active', 'draining') and w.last_heartbeat_at < $1
order by w.id
for update
