select
    t.run, t.place, t.kind, t.name, t.target, t.watched, t.version, t.queue, t.priority, t.fresh,
    t.seq, t.claim_number, t.state, t.ready_order, t.due_at, t.owner, t.call_id, t.claimed_at,
    t.deadline, t.heartbeat_ms, t.heartbeat_by, t.unnamed, t.attempt, t.deaths, t.losses,
    t.options, t.details, t.input
from unnest($1::uuid[], $2::bigint[]) as p (run, place)
join durable_tasks t on t.run = p.run and t.place = p.place
order by t.run, t.place
for update of t
