-- Owners of rows that are missing or gone: a walk from one owner to the next.
with recursive owners (owner) as (
    select min(owner) from durable_tasks where owner is not null
    union all
    select (select min(t.owner) from durable_tasks t where t.owner > owners.owner)
    from owners
    where owners.owner is not null
)
select owner
from owners
where owner is not null and not exists (
    select 1 from durable_workers w
    where w.id = owners.owner and w.status in ('active', 'draining')
)
