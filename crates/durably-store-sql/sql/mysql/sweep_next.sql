-- When the next thing is due, and when the next claim is late.
select
    (
        select due_at
        from durable_tasks force index (durable_tasks_stage)
        where owner is null and call_id is null and due_at is not null and state = 'waiting'
        order by due_at
        limit 1
    ),
    (
        select min(case when state = 'claimed' and heartbeat_by < deadline
            then heartbeat_by else deadline end)
        from durable_tasks force index (durable_tasks_stage)
        where owner is not null
    )
