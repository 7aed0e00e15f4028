select ready_order, rowid
from durable_tasks indexed by durable_tasks_ready
where state = 'ready' and queue = ?1 and kind = ?2 and name = ?3 and version = ?4
    and priority = ?5 and fresh = ?6 and tenant = ?7 and ready_order > ?8
order by ready_order
limit ?9
