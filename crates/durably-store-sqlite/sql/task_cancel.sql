update durable_tasks
set state = 'cancelling'
where run = ?1 and place = ?2 and state in ('claimed', 'cancelling')
