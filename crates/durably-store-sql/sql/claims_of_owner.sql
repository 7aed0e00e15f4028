select run, place, seq, claim_number, state
from durable_tasks /*! force index (durable_tasks_stage) */
where owner = $1
order by run, place
