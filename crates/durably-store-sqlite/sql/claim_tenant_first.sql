-- The first tenant, and the head of its tasks.
select tenant, ready_order, rowid
from durable_tasks indexed by durable_tasks_ready
where state = 'ready' and queue = ?1 and kind = ?2 and name = ?3 and version = ?4
    and priority = ?5 and fresh = ?6
order by tenant, ready_order
limit 1
