select min(due) from (
    select (
        select due_at
        from durable_tasks indexed by durable_tasks_due
        where state = 'waiting' and due_at is not null
        order by due_at limit 1
    ) as due
    union all
    select (
        select min(case when state = 'claimed' and heartbeat_by is not null
            then min(deadline, heartbeat_by) else deadline end)
        from durable_tasks indexed by durable_tasks_owner
        where owner is not null
    )
)
