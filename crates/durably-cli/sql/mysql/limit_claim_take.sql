update durable_tasks
set state = 'claimed', owner = ?, call_id = ?, claimed_at = ?, deadline = ?,
    claim_number = claim_number + 1
where place = 0 and run in (<<?>>)
