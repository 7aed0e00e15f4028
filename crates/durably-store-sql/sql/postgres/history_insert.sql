insert into durable_history (
    run, first_seq, count, commit_id, committed_at, trace_context, events
)
select * from unnest(
    $1::uuid[], $2::bigint[], $3::bigint[], $4::uuid[], $5::bigint[], $6::text[], $7::text[]
)
