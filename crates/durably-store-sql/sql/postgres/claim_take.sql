-- For each key and tenant so many of its first tasks behind its floor that nobody has locked.
select
    k.at,
    t.run, t.place, t.kind, t.name, t.target, t.watched, t.version, t.queue, t.priority, t.fresh,
    t.seq, t.claim_number, t.state, t.ready_order, t.due_at, t.owner, t.call_id, t.claimed_at,
    t.deadline, t.heartbeat_ms, t.heartbeat_by, t.unnamed, t.attempt, t.deaths, t.losses,
    t.options, t.details, t.input
from unnest(
    $1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::bigint[], $7::bigint[]
) with ordinality as k (queue, kind, name, version, tenant, floor, most, at)
cross join lateral (
    select *
    from durable_tasks
    where state = 'ready' and queue = k.queue and kind = k.kind and name = k.name
        and version = k.version
        and priority = $8 and fresh = $9 and tenant = k.tenant and ready_order > k.floor
    order by ready_order
    limit k.most
    for update skip locked
) t
