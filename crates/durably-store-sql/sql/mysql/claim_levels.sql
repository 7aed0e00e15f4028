-- For each key its highest level after one: priority, then started before new. Where a level of the
-- key is known, only those above that.
<<all (
    select $0 as at, -lane_rank, lane_fresh
    from durable_tasks force index (durable_tasks_stage)
    where owner is null and call_id is null and due_at is null
        and lane = concat($1, x'00', $2, x'00', $3) and lane_version = $4
        and ($5 is null or lane_rank < -$5 or (lane_rank = -$5 and lane_fresh < $6))
        and (lane_rank > -$7 or (lane_rank = -$7 and lane_fresh > $8))
    order by lane_rank, lane_fresh
    limit 1
)>>
