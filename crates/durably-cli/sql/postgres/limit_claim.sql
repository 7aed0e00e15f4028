update durable_tasks t
set
    state = 'claimed', owner = $1, call_id = $2, claimed_at = $3::bigint, deadline = $3::bigint + 600000,
    claim_number = t.claim_number + 1
from (
    select run, place
    from durable_tasks
    where state = 'ready' and queue = 'default' and kind = 'turn' and name = 'bench-machine'
        and version = 0 and priority = 0 and fresh = 1 and tenant = 'default'
    order by ready_order
    limit $4
    for update skip locked
) c
where t.run = c.run and t.place = c.place
returning t.run
