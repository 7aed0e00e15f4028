-- How much the tables hold under each id that is in any of them, from $1 on.
select
    i.run,
    case when r.id is null then 0 else 1 end,
    (select count(*) from durable_history h where h.run = i.run),
    (select coalesce(sum(h.count), 0)::bigint from durable_history h where h.run = i.run),
    (select count(*) from durable_tasks t where t.run = i.run),
    (select count(*) from durable_tasks t where t.run = i.run and t.tenant <> r.tenant),
    (select count(*) from durable_inbox e where e.run = i.run),
    (select coalesce(max(e.number), 0) from durable_inbox e where e.run = i.run),
    (select count(*) from durable_dead_letter_queue d where d.workflow_id = i.run),
    (
        select count(*) from durable_runs o
        where o.idempotency_key = r.idempotency_key and o.tenant = r.tenant and o.id <> r.id
    )
from (
    (select id as run from durable_runs where id >= $1 order by id limit $2)
    union
    (select distinct run as run from durable_history where run >= $1 order by run limit $2)
    union
    (select distinct run as run from durable_tasks where run >= $1 order by run limit $2)
    union
    (select distinct run as run from durable_inbox where run >= $1 order by run limit $2)
    union
    (select distinct workflow_id as run from durable_dead_letter_queue where workflow_id >= $1 order by workflow_id limit $2)
    order by run
    limit $2
) i
left join durable_runs r on r.id = i.run
order by i.run
