-- For each key, and from tenant to tenant within each of its gaps, the tenants of a level. A gap is
-- what lies between two tenants, or before the first, or behind the last. All columns of the index
-- up to the tenant are named, so that the server goes from one tenant's first entry to the next
-- one's, and it stops at the limit since no order is asked for: that of the index is the one wanted.
<<all (
    select $7 as at, d.lane_tenant
    from (
        select distinct
            owner, call_id, due_at, lane, lane_version, lane_rank, lane_fresh, lane_tenant
        from durable_tasks force index (durable_tasks_stage)
        where owner is null and call_id is null and due_at is null
            and lane = concat($1, x'00', $2, x'00', $3) and lane_version = $4
            and lane_rank = -$8 and lane_fresh = $9
            and ($5 is null or lane_tenant > $5) and ($6 is null or lane_tenant < $6)
        limit $10
    ) d
)>>
