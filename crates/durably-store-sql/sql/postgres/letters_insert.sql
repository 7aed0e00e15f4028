insert into durable_dead_letter_queue (
    workflow_id, kind, activity_id, activity_type, input, attempts, last_error, error_history,
    dead_at
)
select * from unnest(
    $1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::text[],
    $8::text[], $9::bigint[]
)
