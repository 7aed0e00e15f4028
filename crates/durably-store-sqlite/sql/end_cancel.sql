update durable_tasks set state = 'cancelling' where run = ?1 and state = 'claimed'
