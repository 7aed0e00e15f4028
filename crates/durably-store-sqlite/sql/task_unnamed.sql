update durable_tasks set unnamed = ?3 where run = ?1 and place = ?2
