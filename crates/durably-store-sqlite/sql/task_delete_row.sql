delete from durable_tasks where rowid = ?1
