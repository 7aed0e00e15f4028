select
    t.run, t.place, t.kind, t.name, t.target, t.watched, t.version, t.queue, t.priority, t.fresh,
    t.seq, t.claim_number, t.state, t.ready_order, t.due_at, t.owner, t.call_id, t.claimed_at,
    t.deadline, t.heartbeat_ms, t.heartbeat_by, t.unnamed, t.attempt, t.deaths, t.losses,
    t.options, t.details, t.input
from durable_tasks t force index (primary)
where t.run in (<<in $1>>)
order by t.run, t.place
for update
