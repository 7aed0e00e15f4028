-- The rows are there and locked: nothing is inserted, and what cannot change has any value. To
-- update them by their ids is what the server does fastest.
insert into durable_runs (
    id, version, status, head, inbox_last, inbox_used, turn_counter, parked_code, parked_reason,
    parked_times, parked_at, waits, retries, last_error, started_at, ended_at, tenant,
    workflow_type, queue, priority, input_hash, created_at
)
values <<(
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, '', '', '', 0, '', 0
)>>
on duplicate key update
    version = values(version), status = values(status), head = values(head),
    inbox_last = values(inbox_last), inbox_used = values(inbox_used),
    turn_counter = values(turn_counter), parked_code = values(parked_code),
    parked_reason = values(parked_reason), parked_times = values(parked_times),
    parked_at = values(parked_at), waits = values(waits), retries = values(retries),
    last_error = values(last_error), started_at = values(started_at), ended_at = values(ended_at),
    stamp = $17
