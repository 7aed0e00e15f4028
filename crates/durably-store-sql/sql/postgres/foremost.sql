-- For each key the highest priority that waits, and the first and last tenant with it.
select k.kind, p.priority, f.tenant, l.tenant
from unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) as k (queue, kind, name, version)
cross join lateral (
    select priority
    from durable_tasks
    where state = 'ready' and queue = k.queue and kind = k.kind and name = k.name
        and version = k.version
    order by priority desc
    limit 1
) p
cross join (values (0), (1)) as s (fresh)
cross join lateral (
    select tenant
    from durable_tasks
    where state = 'ready' and queue = k.queue and kind = k.kind and name = k.name
        and version = k.version and priority = p.priority and fresh = s.fresh
    order by tenant, ready_order
    limit 1
) f
cross join lateral (
    select tenant
    from durable_tasks
    where state = 'ready' and queue = k.queue and kind = k.kind and name = k.name
        and version = k.version and priority = p.priority and fresh = s.fresh
    order by tenant desc, ready_order desc
    limit 1
) l
