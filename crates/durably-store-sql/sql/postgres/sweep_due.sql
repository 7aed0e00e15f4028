select run, place
from durable_tasks
where state = 'waiting' and due_at <= $1
order by due_at, run, place
limit $2
