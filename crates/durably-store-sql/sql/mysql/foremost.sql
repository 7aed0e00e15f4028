-- For each key the highest priority that waits, and the first and last tenant with it.
with k as (
    <<all select $2 as kind, concat($1, x'00', $2, x'00', $3) as lane, $4 as version>>
),
p as (
    select k.kind, k.lane, k.version, (
        select t.precedence
        from durable_tasks t force index (durable_tasks_stage)
        where t.owner is null and t.call_id is null and t.due_at is null
            and t.lane = k.lane and t.version = k.version
        order by t.precedence
        limit 1
    ) as precedence
    from k
),
s as (select 0 as fresh union all select 1),
e as (
    select p.kind, p.precedence, (
        select t.tenant
        from durable_tasks t force index (durable_tasks_stage)
        where t.owner is null and t.call_id is null and t.due_at is null
            and t.lane = p.lane and t.version = p.version
            and t.precedence = p.precedence and t.fresh = s.fresh
        order by t.tenant
        limit 1
    ) as foremost, (
        select t.tenant
        from durable_tasks t force index (durable_tasks_stage)
        where t.owner is null and t.call_id is null and t.due_at is null
            and t.lane = p.lane and t.version = p.version
            and t.precedence = p.precedence and t.fresh = s.fresh
        order by t.tenant desc
        limit 1
    ) as hindmost
    from p
    cross join s
    where p.precedence is not null
)
select kind, -precedence, foremost, hindmost from e where foremost is not null
