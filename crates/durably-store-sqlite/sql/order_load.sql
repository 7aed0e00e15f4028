select value from durable_counters where name = 'ready_order'
