select state, owner, seq, claim_number from durable_tasks where run = ?1 and place = ?2
