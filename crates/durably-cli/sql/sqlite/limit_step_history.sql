insert into durable_history (run, first_seq, count, commit_id, committed_at, events)
values (?1, ?2 + 1, ?6, ?3, ?4, ?5)
