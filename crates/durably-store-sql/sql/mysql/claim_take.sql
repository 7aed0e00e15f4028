-- For each key and tenant so many of its first tasks behind its floor that nobody has locked.
<<all (
    select
        $0 as at, t.run, t.place, t.kind, t.name, t.target, t.watched, t.version, t.queue,
        t.priority, t.fresh, t.seq, t.claim_number, t.state, t.ready_order, t.due_at, t.owner,
        t.call_id, t.claimed_at, t.deadline, t.heartbeat_ms, t.heartbeat_by, t.unnamed,
        t.attempt, t.deaths, t.losses, t.options, t.details, t.input
    from durable_tasks t force index (durable_tasks_stage)
    where t.owner is null and t.call_id is null and t.due_at is null
        and t.lane = concat($1, x'00', $2, x'00', $3) and t.lane_version = $4
        and t.lane_rank = -$8 and t.lane_fresh = $9 and t.lane_tenant = $5
        and t.lane_order > $6
    order by t.lane_order
    limit $7
    for update skip locked
)>>
