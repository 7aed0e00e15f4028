select events from durable_history where run = ?1 and first_seq = 1
