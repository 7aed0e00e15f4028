-- Runs that ended, and nothing else. They are there and locked.
insert into durable_runs (
    id, head, status, ended_at, tenant, workflow_type, queue, priority, input_hash, created_at
)
values <<($1, $2, $3, $4, '', '', '', 0, '', 0)>>
on duplicate key update
    head = values(head), status = values(status), ended_at = values(ended_at), stamp = $5
