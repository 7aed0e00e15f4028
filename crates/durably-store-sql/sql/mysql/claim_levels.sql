-- For each key its highest level after one: priority, then started before new.
<<all (
    select $0 as at, priority, fresh
    from durable_tasks force index (durable_tasks_stage)
    where owner is null and call_id is null and due_at is null
        and lane = concat($1, x'00', $2, x'00', $3) and version = $4
        and (precedence > -$5 or (precedence = -$5 and fresh > $6))
    order by precedence, fresh
    limit 1
)>>
