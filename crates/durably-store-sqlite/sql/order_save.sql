update durable_counters set value = ?1 where name = 'ready_order'
