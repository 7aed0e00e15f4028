delete from durable_tasks where (run, place) in (<<(?, ?)>>)
