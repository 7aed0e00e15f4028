select id from durable_runs force index (primary) where id in (<<in $1>>)
