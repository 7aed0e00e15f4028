-- Runs, their histories, their live tasks, their inboxes; work that was given up; processes
-- and who of them leads.
-- Ids are 16 bytes, times are milliseconds since 1970 UTC, JSON is text as it was written. The
-- views at the end show ids and times as people read them. Checks of names are written with OR:
-- SQLite would build a table for an IN list with every statement.

create table durable_counters (
    name text not null primary key,
    value integer not null
) strict;

insert into durable_counters (name, value) values ('ready_order', 0);

create table durable_runs (
    id blob not null unique check (length(id) = 16),
    tenant text not null,
    workflow_type text not null,
    version integer,
    queue text not null,
    priority integer not null,
    idempotency_key text,
    input_hash text not null,
    attributes text,
    trace_context text,
    status text not null check (
        status = 'running' or status = 'completed' or status = 'pending' or status = 'failed'
        or status = 'cancelled' or status = 'terminated' or status = 'continued'
    ),
    head integer not null,
    inbox_last integer not null default 0,
    inbox_used integer not null default 0,
    turn_counter integer not null default 0,
    paused integer not null default 0 check (paused in (0, 1)),
    parked_code text,
    parked_reason text,
    parked_times integer,
    parked_at integer,
    waits text,
    retries integer not null default 0,
    last_error text,
    created_at integer not null,
    started_at integer,
    ended_at integer
) strict;

-- The key comes first, so that a run is found by its key alone as well.
create unique index durable_runs_key on durable_runs (idempotency_key, tenant)
where idempotency_key is not null;

-- A status changes a few times in a run's life, not with every step.
create index durable_runs_status on durable_runs (status, id);

create index durable_runs_parked on durable_runs (id) where parked_code is not null;

-- One row per commit (decision 3); rows are inserted and never changed.
create table durable_history (
    run blob not null,
    first_seq integer not null check (first_seq >= 1),
    count integer not null check (count >= 1),
    commit_id blob not null check (length(commit_id) = 16),
    committed_at integer not null,
    trace_context text,
    events text not null,
    primary key (run, first_seq)
) strict;

-- Live tasks only; a place is reused, and its claim number goes on.
create table durable_tasks (
    run blob not null,
    place integer not null check (place >= 0),
    kind text not null check (
        kind = 'activity' or kind = 'turn' or kind = 'timer' or kind = 'retry' or kind = 'timeout'
    ),
    name text not null,
    target text not null,
    watched integer,
    version integer not null,
    queue text not null,
    tenant text not null,
    priority integer not null,
    fresh integer not null check (fresh in (0, 1)),
    seq integer not null,
    claim_number integer not null,
    state text not null check (
        state = 'claimed' or state = 'ready' or state = 'waiting' or state = 'cancelling'
        or state = 'gated'
    ),
    ready_order integer not null,
    due_at integer,
    owner text,
    call_id blob,
    claimed_at integer,
    deadline integer,
    heartbeat_ms integer,
    heartbeat_by integer,
    unnamed integer not null default 0,
    attempt integer not null,
    deaths integer not null,
    losses text,
    options text,
    trace_context text,
    details text,
    input text,
    primary key (run, place),
    check ((owner is not null) = (state = 'claimed' or state = 'cancelling'))
) strict;

-- A claim walks this index from one tenant's head to the next.
create index durable_tasks_ready on durable_tasks (
    queue, kind, name, version, priority desc, fresh, tenant, ready_order
) where state = 'ready';

create index durable_tasks_due on durable_tasks (due_at, run, place) where state = 'waiting';

-- A step changes none of these columns. The call finds what a repeated claim took before.
create index durable_tasks_owner on durable_tasks (owner, call_id, run, place)
where owner is not null;

-- What reached a run from outside. Used-up entries stay, so that a repeat is recognised.
create table durable_inbox (
    run blob not null,
    number integer not null check (number >= 1),
    id text not null,
    fact_type text not null,
    at integer not null,
    fact text not null,
    primary key (run, number),
    unique (run, id)
) strict;

create table durable_dead_letter_queue (
    id integer primary key autoincrement,
    workflow_id blob not null,
    kind text not null check (kind in ('activity', 'unread')),
    activity_id text not null,
    activity_type text not null,
    input text not null,
    attempts integer not null,
    last_error text not null,
    error_history text not null,
    dead_at integer not null,
    requeued_at integer,
    requeue_count integer not null default 0
) strict;

create index durable_dead_letter_queue_run on durable_dead_letter_queue (workflow_id);

create table durable_workers (
    birth integer primary key,
    id text not null unique,
    worker_group text not null,
    queues text not null,
    can text not null,
    max_concurrency integer not null,
    current_load integer not null,
    status text not null check (status in ('active', 'draining', 'stopped', 'stale')),
    hostname text not null,
    version text not null,
    -- Whether the process holds a lock file; only then does a free or missing one prove its death.
    locked integer not null check (locked in (0, 1)),
    started_at integer not null,
    last_heartbeat_at integer not null,
    beats integer not null default 0
) strict;

-- Who does what one process is enough for, and until when; one row, which is always there.
create table durable_leader (
    id integer primary key check (id = 1),
    leader text,
    term integer not null,
    renewed_at integer not null,
    lease_ms integer not null
) strict;

insert into durable_leader (id, leader, term, renewed_at, lease_ms) values (1, null, 0, 0, 0);

create view durable_workflow_instances as
select
    lower(substr(hex(r.id), 1, 8) || '-' || substr(hex(r.id), 9, 4) || '-'
        || substr(hex(r.id), 13, 4) || '-' || substr(hex(r.id), 17, 4) || '-'
        || substr(hex(r.id), 21)) as id,
    r.tenant,
    r.workflow_type,
    r.version,
    r.queue,
    r.priority,
    r.idempotency_key,
    r.status,
    (select h.events -> '$[0].data.input' from durable_history h
        where h.run = r.id and h.first_seq = 1) as input,
    case r.status when 'completed' then
        (select h.events -> '$[#-1].data.result' from durable_history h
            where h.run = r.id order by h.first_seq desc limit 1)
    end as result,
    r.last_error -> '$.error' as error,
    r.attributes,
    r.head,
    r.paused,
    r.parked_code,
    r.parked_reason,
    strftime('%Y-%m-%dT%H:%M:%fZ', r.created_at / 1000.0, 'unixepoch') as created_at,
    (select strftime('%Y-%m-%dT%H:%M:%fZ', h.committed_at / 1000.0, 'unixepoch')
        from durable_history h
        where h.run = r.id order by h.first_seq desc limit 1) as updated_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', r.started_at / 1000.0, 'unixepoch') as started_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', r.ended_at / 1000.0, 'unixepoch') as completed_at,
    substr(r.trace_context, 4, 32) as trace_id,
    substr(r.trace_context, 37, 16) as span_id
from durable_runs r;

create view durable_workflow_events as
select
    lower(substr(hex(h.run), 1, 8) || '-' || substr(hex(h.run), 9, 4) || '-'
        || substr(hex(h.run), 13, 4) || '-' || substr(hex(h.run), 17, 4) || '-'
        || substr(hex(h.run), 21)) as workflow_id,
    h.first_seq + e.key as sequence_num,
    e.value ->> '$.type' as event_type,
    e.value -> '$.data' as event_data,
    strftime('%Y-%m-%dT%H:%M:%fZ', h.committed_at / 1000.0, 'unixepoch') as created_at,
    substr(h.trace_context, 4, 32) as trace_id,
    substr(h.trace_context, 37, 16) as span_id
from durable_history h, json_each(h.events) e;

create view durable_task_queue as
select
    lower(substr(hex(t.run), 1, 8) || '-' || substr(hex(t.run), 9, 4) || '-'
        || substr(hex(t.run), 13, 4) || '-' || substr(hex(t.run), 17, 4) || '-'
        || substr(hex(t.run), 21)) || '/' || t.place as id,
    lower(substr(hex(t.run), 1, 8) || '-' || substr(hex(t.run), 9, 4) || '-'
        || substr(hex(t.run), 13, 4) || '-' || substr(hex(t.run), 17, 4) || '-'
        || substr(hex(t.run), 21)) as workflow_id,
    t.kind,
    t.target as activity_id,
    t.name as activity_type,
    t.input,
    t.options,
    t.state as status,
    t.queue,
    t.tenant,
    t.priority,
    strftime('%Y-%m-%dT%H:%M:%fZ', t.due_at / 1000.0, 'unixepoch') as visible_at,
    t.owner as claimed_by,
    strftime('%Y-%m-%dT%H:%M:%fZ', t.claimed_at / 1000.0, 'unixepoch') as claimed_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', t.deadline / 1000.0, 'unixepoch') as deadline,
    strftime('%Y-%m-%dT%H:%M:%fZ', (t.heartbeat_by - t.heartbeat_ms) / 1000.0, 'unixepoch')
        as heartbeat_at,
    t.attempt,
    case t.kind when 'activity' then coalesce(t.options ->> '$.retry.attempts', 3) end
        as max_attempts,
    t.options -> '$.schedule_to_start_ms' as schedule_to_start_timeout,
    case t.kind when 'activity' then coalesce(t.options ->> '$.start_to_close_ms', 600000) end
        as start_to_close_timeout,
    t.heartbeat_ms as heartbeat_timeout,
    t.deaths,
    t.losses,
    t.details,
    substr(t.trace_context, 4, 32) as trace_id,
    substr(t.trace_context, 37, 16) as span_id
from durable_tasks t;

create view durable_signals as
select
    i.id,
    lower(substr(hex(i.run), 1, 8) || '-' || substr(hex(i.run), 9, 4) || '-'
        || substr(hex(i.run), 13, 4) || '-' || substr(hex(i.run), 17, 4) || '-'
        || substr(hex(i.run), 21)) as workflow_id,
    i.fact ->> '$.data.signal_type' as signal_type,
    i.fact -> '$.data.payload' as payload,
    strftime('%Y-%m-%dT%H:%M:%fZ', i.at / 1000.0, 'unixepoch') as sent_at,
    i.number <= r.inbox_used as processed,
    i.number as sequence_num
from durable_inbox i
join durable_runs r on r.id = i.run
where i.fact_type = 'Signal';
