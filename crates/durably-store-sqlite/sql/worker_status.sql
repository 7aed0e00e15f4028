select status from durable_workers where id = ?1
