-- What waits has nothing of a lane, so the index has it in this order.
select run, place
from durable_tasks force index (durable_tasks_stage)
where owner is null and call_id is null and due_at <= $1 and lane is null
    and lane_version is null and lane_rank is null and lane_fresh is null and lane_tenant is null
    and lane_order is null and state = 'waiting'
order by due_at, run, place
limit $2
