select run, first_seq, commit_id, committed_at, events
from durable_history
where (run, first_seq) in (<<in ($1, 1)>>)
