select rowid
from durable_tasks indexed by durable_tasks_owner
where owner = ?1 and call_id = ?2 and state = 'claimed'
order by ready_order, run, place
