select id, workflow_id, kind, activity_id, activity_type, input, attempts, error_history, dead_at
from durable_dead_letter_queue
where workflow_id = $2
order by id desc
limit $1
