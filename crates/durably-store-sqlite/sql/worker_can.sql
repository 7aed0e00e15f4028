select status, queues, can from durable_workers where id = ?1
