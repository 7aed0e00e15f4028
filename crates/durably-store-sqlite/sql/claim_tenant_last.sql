-- The last tenant of a level.
select tenant
from durable_tasks indexed by durable_tasks_ready
where state = 'ready' and queue = ?1 and kind = ?2 and name = ?3 and version = ?4
    and priority = ?5 and fresh = ?6
order by tenant desc
limit 1
