-- The rows are there and locked: nothing is inserted, and what does not change has any value.
insert into durable_runs (
    id, head, tenant, workflow_type, queue, priority, input_hash, status, created_at
)
values <<(?, ?, '', '', '', 0, '', 'running', 0)>>
on duplicate key update head = values(head)
