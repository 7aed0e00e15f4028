select run, place, seq, claim_number, state
from durable_tasks
where owner = $1
order by run, place
