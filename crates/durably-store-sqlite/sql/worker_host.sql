select hostname from durable_workers where id = ?1
