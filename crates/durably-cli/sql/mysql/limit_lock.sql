select id, head from durable_runs force index (primary) where id in (<<?>>) order by id for update
