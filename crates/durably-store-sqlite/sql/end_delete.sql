delete from durable_tasks
where run = ?1 and (place = 0 or (state <> 'claimed' and state <> 'cancelling'))
