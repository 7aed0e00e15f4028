select priority, fresh
from durable_tasks indexed by durable_tasks_ready
where state = 'ready' and queue = ?1 and kind = ?2 and name = ?3 and version = ?4
order by priority desc, fresh
limit 1
