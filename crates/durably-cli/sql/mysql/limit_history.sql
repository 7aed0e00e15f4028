insert into durable_history (run, first_seq, count, commit_id, committed_at, events)
values <<(?, ?, ?, ?, ?, ?)>>
