select run, first_seq, commit_id, committed_at, events
from durable_history
where run = any($1) and first_seq = 1
