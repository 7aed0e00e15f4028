select
    run, place, kind, name, target, watched, version, queue, tenant, priority, fresh, seq, claim_number,
    state, ready_order, due_at, owner, call_id, claimed_at, deadline, heartbeat_ms, heartbeat_by,
    unnamed, attempt, deaths, losses, options, details, input
from durable_tasks
where run = ?1 and place = ?2
