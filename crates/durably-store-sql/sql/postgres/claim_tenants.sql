-- For each key the tenants of a level, from one to the next: those after the cursor, or, where
-- $7 is null, from the first one on.
with recursive k (queue, kind, name, version, at) as materialized (
    select * from unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) with ordinality
),
lane (at, tenant, met) as (
    select k.at, t.tenant, 1
    from k
    cross join lateral (
        select tenant
        from durable_tasks
        where state = 'ready' and queue = k.queue and kind = k.kind and name = k.name
            and version = k.version
            and priority = $5 and fresh = $6 and ($7::text is null or tenant > $7)
        order by tenant
        limit 1
    ) t
    union all
    select lane.at, t.tenant, lane.met + 1
    from lane
    join k on k.at = lane.at
    cross join lateral (
        select tenant
        from durable_tasks
        where state = 'ready' and queue = k.queue and kind = k.kind and name = k.name
            and version = k.version
            and priority = $5 and fresh = $6 and tenant > lane.tenant
        order by tenant
        limit 1
    ) t
    where lane.met < $8
)
select at, tenant from lane
