select run, place, deadline <= ?1
from durable_tasks indexed by durable_tasks_owner
where owner is not null
    and (deadline <= ?1 or (heartbeat_by <= ?1 and state = 'claimed'))
order by run, place
limit ?2
