-- A run begins or ends: its status changes.
insert into durable_runs (
    id, head, status, started_at, ended_at, tenant, workflow_type, queue, priority, input_hash,
    created_at
)
values <<(?, ?, ?, ?, ?, '', '', '', 0, '', 0)>>
on duplicate key update
    head = values(head), status = values(status), started_at = values(started_at),
    ended_at = values(ended_at)
