-- For each key, and from tenant to tenant within each of its gaps, the tenants of a level. A gap is
-- what lies between two tenants, or before the first, or behind the last. (Only one of the first
-- two branches is ever read: the index cannot be entered at a condition with an "or".)
with recursive k (queue, kind, name, version, low, high, key, at) as materialized (
    select queue, kind, name, version, low, coalesce(high, repeat(chr(1114111), 9)), key, at
    from unnest(
        $1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::bigint[]
    ) with ordinality as g (queue, kind, name, version, low, high, key, at)
),
lane (at, key, tenant, met) as (
    select k.at, k.key, t.tenant, 1
    from k
    cross join lateral (
        (
            select tenant
            from durable_tasks
            where k.low is null
                and state = 'ready' and queue = k.queue and kind = k.kind and name = k.name
                and version = k.version
                and priority = $8 and fresh = $9 and tenant < k.high
            order by tenant
            limit 1
        )
        union all
        (
            select tenant
            from durable_tasks
            where state = 'ready' and queue = k.queue and kind = k.kind and name = k.name
                and version = k.version
                and priority = $8 and fresh = $9 and tenant > k.low and tenant < k.high
            order by tenant
            limit 1
        )
    ) t
    union all
    select lane.at, lane.key, t.tenant, lane.met + 1
    from lane
    join k on k.at = lane.at
    cross join lateral (
        select tenant
        from durable_tasks
        where state = 'ready' and queue = k.queue and kind = k.kind and name = k.name
            and version = k.version
            and priority = $8 and fresh = $9 and tenant > lane.tenant and tenant < k.high
        order by tenant
        limit 1
    ) t
    where lane.met < $10
)
select key, tenant from lane
