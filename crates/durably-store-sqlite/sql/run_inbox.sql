update durable_runs set inbox_last = ?2, turn_counter = ?3 where id = ?1
