insert into durable_inbox (run, number, id, fact_type, at, fact)
select * from unnest(
    $1::uuid[], $2::bigint[], $3::text[], $4::text[], $5::bigint[], $6::text[]
)
