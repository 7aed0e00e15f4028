-- The check of the head and the run's row in one: no row changes if somebody was faster.
update durable_runs set head = ?2 + 2 where id = ?1 and head = ?2
