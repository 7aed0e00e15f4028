-- For each key the highest priority that waits, and the first and last tenant with it.
with k as (
    <<all select $2 as kind, concat($1, x'00', $2, x'00', $3) as lane, $4 as version>>
),
p as (
    select k.kind, k.lane, k.version, (
        select t.lane_rank
        from durable_tasks t force index (durable_tasks_stage)
        where t.owner is null and t.call_id is null and t.due_at is null
            and t.lane = k.lane and t.lane_version = k.version
        order by t.lane_rank
        limit 1
    ) as lane_rank
    from k
),
s as (select 0 as fresh union all select 1),
e as (
    select p.kind, p.lane_rank, (
        select t.lane_tenant
        from durable_tasks t force index (durable_tasks_stage)
        where t.owner is null and t.call_id is null and t.due_at is null
            and t.lane = p.lane and t.lane_version = p.version
            and t.lane_rank = p.lane_rank and t.lane_fresh = s.fresh
        order by t.lane_tenant
        limit 1
    ) as foremost, (
        select t.lane_tenant
        from durable_tasks t force index (durable_tasks_stage)
        where t.owner is null and t.call_id is null and t.due_at is null
            and t.lane = p.lane and t.lane_version = p.version
            and t.lane_rank = p.lane_rank and t.lane_fresh = s.fresh
        order by t.lane_tenant desc
        limit 1
    ) as hindmost
    from p
    cross join s
    where p.lane_rank is not null
)
select kind, -lane_rank, foremost, hindmost from e where foremost is not null
