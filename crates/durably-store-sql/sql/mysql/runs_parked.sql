-- Runs that cannot go on and whose turn rows wait.
select t.run
from durable_runs r force index (durable_runs_status)
straight_join durable_tasks t force index (primary) on t.run = r.id and t.place = 0
where r.status in ('running', 'pending') and r.parked_at is not null and t.state = 'waiting'
order by t.run
