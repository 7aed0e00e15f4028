-- Runs that went on by a step, and nothing else. They are there and locked.
insert into durable_runs (
    id, head, status, tenant, workflow_type, queue, priority, input_hash, created_at
)
values <<($1, $2, 'running', '', '', '', 0, '', 0)>>
on duplicate key update head = values(head), stamp = $3
