select 1 from durable_history where run = $1 and commit_id = $2
