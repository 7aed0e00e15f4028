select run
from durable_tasks force index (durable_tasks_stage)
where owner is null and call_id is null and due_at is null
    and lane = concat('default', x'00', 'turn', x'00', 'bench-machine') and lane_version = 0
    and lane_rank = 0 and lane_fresh = 1 and lane_tenant = 'default'
order by lane_order
limit ?
for update skip locked
