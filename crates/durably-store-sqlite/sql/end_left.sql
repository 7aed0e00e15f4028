select 1 from durable_tasks where run = ?1 limit 1
