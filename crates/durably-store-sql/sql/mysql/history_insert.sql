insert into durable_history (
    run, first_seq, count, commit_id, committed_at, trace_context, events
)
values <<($1, $2, $3, $4, $5, $6, $7)>>
