-- For each key the tenants of a level, from one to the next: those after the cursor, or, where
-- $7 is null, from the first one on.
with recursive k as (
    <<all select $0 as at, concat($1, x'00', $2, x'00', $3) as lane, $4 as version>>
),
walk as (
    select k.at, 1 as met, (
        select t.lane_tenant
        from durable_tasks t force index (durable_tasks_stage)
        where t.owner is null and t.call_id is null and t.due_at is null
            and t.lane = k.lane and t.lane_version = k.version
            and t.lane_rank = -$5 and t.lane_fresh = $6 and ($7 is null or t.lane_tenant > $7)
        order by t.lane_tenant
        limit 1
    ) as tenant
    from k
    union all
    select k.at, walk.met + 1, (
        select t.lane_tenant
        from durable_tasks t force index (durable_tasks_stage)
        where t.owner is null and t.call_id is null and t.due_at is null
            and t.lane = k.lane and t.lane_version = k.version
            and t.lane_rank = -$5 and t.lane_fresh = $6 and t.lane_tenant > walk.tenant
        order by t.lane_tenant
        limit 1
    )
    from walk
    join k on k.at = walk.at
    where walk.met < $8 and walk.tenant is not null
)
select at, tenant from walk where tenant is not null
