-- Rows whose owners are missing or gone.
select t.run, t.place
from durable_tasks t /*! force index (durable_tasks_stage) */
where t.owner is not null and not exists (
    select 1 from durable_workers w
    where w.id = t.owner and w.status in ('active', 'draining')
)
order by t.run, t.place
limit $1
