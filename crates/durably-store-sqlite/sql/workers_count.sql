select count(*) from durable_workers where status in ('active', 'draining')
