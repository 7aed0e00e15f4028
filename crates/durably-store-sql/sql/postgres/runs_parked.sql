-- Runs that cannot go on and whose turn rows wait.
select t.run
from durable_runs r
join durable_tasks t on t.run = r.id and t.place = 0
where r.parked_code is not null and t.state = 'waiting'
order by t.run
