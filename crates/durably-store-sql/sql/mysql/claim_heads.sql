-- For each key and tenant the order of its first tasks.
<<all (
    select $0 as at, ready_order
    from durable_tasks force index (durable_tasks_stage)
    where owner is null and call_id is null and due_at is null
        and lane = concat($1, x'00', $2, x'00', $3) and version = $4
        and precedence = -$6 and fresh = $7 and tenant = $5
    order by lane_order
    limit $8
)>>
