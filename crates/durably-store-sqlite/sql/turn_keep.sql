-- The holder goes on: neither state nor owner change, so no index does.
update durable_tasks set deadline = ?2, deaths = 0, losses = null where run = ?1 and place = 0
