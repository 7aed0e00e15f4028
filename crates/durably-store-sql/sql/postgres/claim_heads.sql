-- For each key and tenant the order of its first tasks behind its floor.
select k.at, t.ready_order
from unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::bigint[])
    with ordinality as k (queue, kind, name, version, tenant, floor, at)
cross join lateral (
    select ready_order
    from durable_tasks
    where state = 'ready' and queue = k.queue and kind = k.kind and name = k.name
        and version = k.version
        and priority = $7 and fresh = $8 and tenant = k.tenant and ready_order > k.floor
    order by ready_order
    limit $9
) t
