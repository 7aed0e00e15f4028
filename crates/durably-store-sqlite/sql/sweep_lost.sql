select run, place
from durable_tasks indexed by durable_tasks_owner
where owner = ?1
order by run, place
limit ?2
