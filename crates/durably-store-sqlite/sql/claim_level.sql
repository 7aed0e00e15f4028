-- The highest level of a key, and the first tenant that has it.
select priority, fresh, tenant
from durable_tasks indexed by durable_tasks_ready
where state = 'ready' and queue = ?1 and kind = ?2 and name = ?3 and version = ?4
order by priority desc, fresh, tenant
limit 1
