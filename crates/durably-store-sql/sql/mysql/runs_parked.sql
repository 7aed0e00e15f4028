-- Runs that cannot go on and whose turn rows wait: those are few, since they wait for no time.
select t.run
from durable_tasks t force index (durable_tasks_stage)
straight_join durable_runs r on r.id = t.run
where t.owner is null and t.call_id is null and t.due_at is null and t.lane is null
    and t.place = 0 and t.state = 'waiting' and r.parked_code is not null
order by t.run
