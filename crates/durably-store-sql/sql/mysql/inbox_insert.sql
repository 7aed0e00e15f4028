insert into durable_inbox (run, number, id, fact_type, at, fact)
values <<($1, $2, $3, $4, $5, $6)>>
