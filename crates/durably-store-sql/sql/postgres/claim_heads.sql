-- For each key and tenant the order of its first tasks.
select k.at, t.ready_order
from unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[]) with ordinality
    as k (queue, kind, name, version, tenant, at)
cross join lateral (
    select ready_order
    from durable_tasks
    where state = 'ready' and queue = k.queue and kind = k.kind and name = k.name
        and version = k.version
        and priority = $6 and fresh = $7 and tenant = k.tenant
    order by ready_order
    limit $8
) t
