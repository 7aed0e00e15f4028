-- For each key its highest level after one: priority, then started before new.
select k.at, p.priority, p.fresh
from unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) with ordinality
    as k (queue, kind, name, version, at)
cross join lateral (
    select priority, fresh
    from durable_tasks
    where state = 'ready' and queue = k.queue and kind = k.kind and name = k.name
        and version = k.version
        and (priority < $5 or (priority = $5 and fresh > $6))
    order by priority desc, fresh
    limit 1
) p
