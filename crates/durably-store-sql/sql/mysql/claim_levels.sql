-- For each key its highest level after one: priority, then started before new.
<<all (
    select $0 as at, -lane_rank, lane_fresh
    from durable_tasks force index (durable_tasks_stage)
    where owner is null and call_id is null and due_at is null
        and lane = concat($1, x'00', $2, x'00', $3) and lane_version = $4
        and (lane_rank > -$5 or (lane_rank = -$5 and lane_fresh > $6))
    order by lane_rank, lane_fresh
    limit 1
)>>
