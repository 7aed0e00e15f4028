-- From the row that holds the event after $2 onwards.
select run, first_seq, commit_id, committed_at, events
from durable_history
where run = $1 and first_seq >= coalesce(
    (select max(first_seq) from durable_history where run = $1 and first_seq <= $2 + 1), 1
)
order by first_seq
limit $3
