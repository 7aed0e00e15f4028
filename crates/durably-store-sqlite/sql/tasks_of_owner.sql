select run, place, state, seq, claim_number, unnamed
from durable_tasks indexed by durable_tasks_owner
where owner = ?1
order by run, place
