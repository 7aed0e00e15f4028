-- Waiting turn rows of parked runs, by run.
select t.run, t.name, t.version
from durable_runs r indexed by durable_runs_parked
join durable_tasks t on t.run = r.id and t.place = 0
where r.parked_code is not null and t.state = 'waiting'
order by r.id
