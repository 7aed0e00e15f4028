select number from durable_inbox where run = ?1 and id = ?2
