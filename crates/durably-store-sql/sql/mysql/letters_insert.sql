insert into durable_dead_letter_queue (
    workflow_id, kind, activity_id, activity_type, input, attempts, last_error, error_history,
    dead_at
)
values <<($1, $2, $3, $4, $5, $6, $7, $8, $9)>>
