select run, place
from (
    select due_at, run, place
    from durable_tasks force index (durable_tasks_stage)
    where owner is null and call_id is null and due_at <= $1 and state = 'waiting'
    order by due_at
    limit $2
) d
order by due_at, run, place
