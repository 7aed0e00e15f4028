insert into durable_history (run, first_seq, count, commit_id, committed_at, events)
select n.run, n.head + 1, $5, n.commit_id, $6, n.events
from unnest($1::uuid[], $2::bigint[], $3::uuid[], $4::text[]) as n (run, head, commit_id, events)
