select t.run
from durable_tasks t /*! force index (durable_tasks_stage) */
join durable_runs r on r.id = t.run
where t.owner = $1 and t.place = 0 and t.state = 'claimed' and r.inbox_last > r.inbox_used
order by t.run
