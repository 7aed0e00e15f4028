-- What the call took is used up: a repeat of it does not find the next task at that place.
update durable_tasks set call_id = null where rowid = ?1
