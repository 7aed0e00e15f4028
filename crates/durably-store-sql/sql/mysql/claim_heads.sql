-- For each key and tenant the order of its first tasks behind its floor.
<<all (
    select $0 as at, lane_order
    from durable_tasks force index (durable_tasks_stage)
    where owner is null and call_id is null and due_at is null
        and lane = concat($1, x'00', $2, x'00', $3) and lane_version = $4
        and lane_rank = -$7 and lane_fresh = $8 and lane_tenant = $5 and lane_order > $6
    order by lane_order
    limit $9
)>>
