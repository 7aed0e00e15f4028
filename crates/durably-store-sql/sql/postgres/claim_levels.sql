-- For each key its highest level after one: priority, then started before new. Where a level of the
-- key is known, only those above that.
select k.at, p.priority, p.fresh
from unnest(
    $1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[]
) with ordinality as k (queue, kind, name, version, known_priority, known_fresh, at)
cross join lateral (
    (
        select priority, fresh
        from durable_tasks
        where k.known_priority is null
            and state = 'ready' and queue = k.queue and kind = k.kind and name = k.name
            and version = k.version
            and (priority < $7 or (priority = $7 and fresh > $8))
        order by priority desc, fresh
        limit 1
    )
    union all
    (
        select priority, fresh
        from durable_tasks
        where state = 'ready' and queue = k.queue and kind = k.kind and name = k.name
            and version = k.version and priority > k.known_priority
            and (priority < $7 or (priority = $7 and fresh > $8))
        order by priority desc, fresh
        limit 1
    )
    union all
    (
        select priority, fresh
        from durable_tasks
        where state = 'ready' and queue = k.queue and kind = k.kind and name = k.name
            and version = k.version and priority = k.known_priority and fresh < k.known_fresh
            and (priority < $7 or (priority = $7 and fresh > $8))
        order by priority desc, fresh
        limit 1
    )
) p
