select run, place
from durable_tasks /*! force index (durable_tasks_stage) */
where owner is not null and (deadline <= $1 or (heartbeat_by <= $1 and state = 'claimed'))
order by run, place
limit $2
