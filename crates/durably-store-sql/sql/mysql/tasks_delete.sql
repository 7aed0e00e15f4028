delete from durable_tasks
where (run, place) in (<<in ($1, $2)>>)
