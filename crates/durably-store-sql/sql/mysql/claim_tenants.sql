-- For each key the tenants of a level, from one to the next: those after the cursor, or, where
-- $7 is null, from the first one on. All columns of the index up to the tenant are named, so that
-- the server goes from one tenant's first entry to the next one's, and it stops at the limit since
-- no order is asked for: that of the index is the one wanted.
<<all (
    select $0 as at, d.lane_tenant
    from (
        select distinct
            owner, call_id, due_at, lane, lane_version, lane_rank, lane_fresh, lane_tenant
        from durable_tasks force index (durable_tasks_stage)
        where owner is null and call_id is null and due_at is null
            and lane = concat($1, x'00', $2, x'00', $3) and lane_version = $4
            and lane_rank = -$5 and lane_fresh = $6 and ($7 is null or lane_tenant > $7)
        limit $8
    ) d
)>>
