insert into durable_tasks (
    run, place, kind, name, target, version, queue, tenant, priority, fresh, seq, claim_number,
    state, ready_order, owner, claimed_at, deadline, attempt, deaths, options, input
)
select
    n.run, 1, 'activity', 'bench-step', 'step-1', 0, 'default', 'default', 0, 0, 3, 1,
    'claimed', 0, $3, $4::bigint, $4::bigint + 600000, 1, 0, '{}', n.input
from unnest($1::uuid[], $2::text[]) as n (run, input)
