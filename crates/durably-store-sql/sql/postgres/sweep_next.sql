-- When the next thing is due, and when the next claim is late.
select
    (
        select due_at
        from durable_tasks
        where state = 'waiting' and due_at is not null
        order by due_at
        limit 1
    ),
    (
        select min(case when state = 'claimed' and heartbeat_by < deadline
            then heartbeat_by else deadline end)
        from durable_tasks
        where owner is not null
    )
