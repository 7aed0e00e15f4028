update durable_runs r
set
    version = n.version, status = n.status, head = n.head, inbox_last = n.inbox_last,
    inbox_used = n.inbox_used, turn_counter = n.turn_counter, parked_code = n.parked_code,
    parked_reason = n.parked_reason, parked_times = n.parked_times, parked_at = n.parked_at,
    waits = n.waits, retries = n.retries, last_error = n.last_error, started_at = n.started_at,
    ended_at = n.ended_at, stamp = $17
from unnest(
    $1::uuid[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],
    $8::text[], $9::text[], $10::bigint[], $11::bigint[], $12::text[], $13::bigint[],
    $14::text[], $15::bigint[], $16::bigint[]
) as n (
    id, version, status, head, inbox_last, inbox_used, turn_counter, parked_code, parked_reason,
    parked_times, parked_at, waits, retries, last_error, started_at, ended_at
)
where r.id = n.id
