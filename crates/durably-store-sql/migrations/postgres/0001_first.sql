-- Runs, their histories, their live tasks, their inboxes; work that was given up; processes
-- and who of them leads.
-- Times are milliseconds since 1970 UTC, JSON is text as it was written. Text that is compared has
-- the collation "C": what differs by case or accent is not the same. The views at the end show
-- times as people read them.

create table durable_runs (
    id uuid not null primary key,
    tenant text collate "C" not null,
    workflow_type text collate "C" not null,
    version bigint,
    queue text collate "C" not null,
    priority integer not null,
    idempotency_key text collate "C",
    input_hash text collate "C" not null,
    attributes text,
    trace_context text,
    status text collate "C" not null constraint durable_runs_status_known check (
        status in ('running', 'completed', 'pending', 'failed', 'cancelled', 'terminated',
            'continued')
    ),
    head bigint not null,
    inbox_last bigint not null default 0,
    inbox_used bigint not null default 0,
    turn_counter bigint not null default 0,
    paused smallint not null default 0 check (paused in (0, 1)),
    stamp bigint not null default 0,
    parked_code text,
    parked_reason text,
    parked_times bigint,
    parked_at bigint,
    waits text,
    retries bigint not null default 0,
    last_error text,
    created_at bigint not null,
    started_at bigint,
    ended_at bigint
) with (fillfactor = 50);

create unique index durable_runs_key on durable_runs (idempotency_key, tenant)
where idempotency_key is not null;

-- A status changes a few times in a run's life, not with every step.
create index durable_runs_status on durable_runs (status, id);

create index durable_runs_parked on durable_runs (id) where parked_code is not null;

-- One row per commit (decision 3); rows are inserted and never changed.
create table durable_history (
    run uuid not null,
    first_seq bigint not null check (first_seq >= 1),
    count integer not null check (count >= 1),
    commit_id uuid not null,
    committed_at bigint not null,
    trace_context text,
    events text not null,
    primary key (run, first_seq)
);

-- Live tasks only; a place is reused, and its claim number goes on.
create table durable_tasks (
    run uuid not null,
    place integer not null check (place >= 0),
    kind text collate "C" not null constraint durable_tasks_kind_known check (
        kind in ('activity', 'turn', 'timer', 'retry', 'timeout')
    ),
    name text collate "C" not null,
    target text collate "C" not null,
    watched integer,
    version bigint not null,
    queue text collate "C" not null,
    tenant text collate "C" not null,
    priority integer not null,
    fresh smallint not null check (fresh in (0, 1)),
    seq bigint not null,
    claim_number bigint not null,
    state text collate "C" not null constraint durable_tasks_state_known check (
        state in ('claimed', 'ready', 'waiting', 'cancelling', 'gated')
    ),
    ready_order bigint not null,
    due_at bigint,
    owner text collate "C",
    call_id uuid,
    claimed_at bigint,
    deadline bigint,
    heartbeat_ms bigint,
    heartbeat_by bigint,
    unnamed integer not null default 0,
    attempt bigint not null,
    deaths bigint not null,
    losses text,
    options text,
    trace_context text,
    details text,
    input text,
    primary key (run, place),
    constraint durable_tasks_owned check (
        (owner is not null) = (state in ('claimed', 'cancelling'))
    )
) with (fillfactor = 50);

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
    run uuid not null,
    number bigint not null check (number >= 1),
    id text collate "C" not null,
    fact_type text collate "C" not null,
    at bigint not null,
    fact text not null,
    primary key (run, number),
    unique (run, id)
);

create table durable_dead_letter_queue (
    id bigint generated always as identity primary key,
    workflow_id uuid not null,
    kind text collate "C" not null constraint durable_dead_letter_queue_kind_known check (
        kind in ('activity', 'unread')
    ),
    activity_id text not null,
    activity_type text not null,
    input text not null,
    attempts bigint not null,
    last_error text not null,
    error_history text not null,
    dead_at bigint not null,
    requeued_at bigint,
    requeue_count bigint not null default 0
);

create index durable_dead_letter_queue_run on durable_dead_letter_queue (workflow_id);

create table durable_workers (
    id text collate "C" not null primary key,
    birth bigint generated always as identity,
    worker_group text not null,
    queues text not null,
    can text not null,
    max_concurrency bigint not null,
    current_load bigint not null,
    status text collate "C" not null constraint durable_workers_status_known check (
        status in ('active', 'draining', 'stopped', 'stale')
    ),
    hostname text not null,
    version text not null,
    started_at bigint not null,
    last_heartbeat_at bigint not null,
    beats bigint not null default 0
) with (fillfactor = 50);

create index durable_workers_status on durable_workers (status, last_heartbeat_at);

-- Who does what one process is enough for, and until when; one row, which is always there.
create table durable_leader (
    id smallint not null primary key check (id = 1),
    leader text collate "C",
    term bigint not null,
    renewed_at bigint not null,
    lease_ms bigint not null
);

insert into durable_leader (id, leader, term, renewed_at, lease_ms) values (1, null, 0, 0, 0);

create view durable_workflow_instances as
select
    r.id,
    r.tenant,
    r.workflow_type,
    r.version,
    r.queue,
    r.priority,
    r.idempotency_key,
    r.status,
    (select h.events::json -> 0 -> 'data' -> 'input' from durable_history h
        where h.run = r.id and h.first_seq = 1) as input,
    case r.status when 'completed' then
        (select h.events::json -> -1 -> 'data' -> 'result' from durable_history h
            where h.run = r.id order by h.first_seq desc limit 1)
    end as result,
    r.last_error::json -> 'error' as error,
    r.attributes::json as attributes,
    r.head,
    r.paused,
    r.parked_code,
    r.parked_reason,
    to_timestamp(r.created_at / 1000.0) as created_at,
    (select to_timestamp(h.committed_at / 1000.0) from durable_history h
        where h.run = r.id order by h.first_seq desc limit 1) as updated_at,
    to_timestamp(r.started_at / 1000.0) as started_at,
    to_timestamp(r.ended_at / 1000.0) as completed_at,
    substr(r.trace_context, 4, 32) as trace_id,
    substr(r.trace_context, 37, 16) as span_id
from durable_runs r;

create view durable_workflow_events as
select
    h.run as workflow_id,
    h.first_seq + e.at - 1 as sequence_num,
    e.event ->> 'type' as event_type,
    e.event -> 'data' as event_data,
    to_timestamp(h.committed_at / 1000.0) as created_at,
    substr(h.trace_context, 4, 32) as trace_id,
    substr(h.trace_context, 37, 16) as span_id
from durable_history h
cross join lateral json_array_elements(h.events::json) with ordinality as e (event, at);

create view durable_task_queue as
select
    t.run::text || '/' || t.place as id,
    t.run as workflow_id,
    t.kind,
    t.target as activity_id,
    t.name as activity_type,
    t.input,
    t.options,
    t.state as status,
    t.queue,
    t.tenant,
    t.priority,
    to_timestamp(t.due_at / 1000.0) as visible_at,
    t.owner as claimed_by,
    to_timestamp(t.claimed_at / 1000.0) as claimed_at,
    to_timestamp(t.deadline / 1000.0) as deadline,
    to_timestamp((t.heartbeat_by - t.heartbeat_ms) / 1000.0) as heartbeat_at,
    t.attempt,
    case t.kind when 'activity' then
        coalesce((t.options::json -> 'retry' ->> 'attempts')::bigint, 3)
    end as max_attempts,
    (t.options::json ->> 'schedule_to_start_ms')::bigint as schedule_to_start_timeout,
    case t.kind when 'activity' then
        coalesce((t.options::json ->> 'start_to_close_ms')::bigint, 600000)
    end as start_to_close_timeout,
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
    i.run as workflow_id,
    i.fact::json -> 'data' ->> 'signal_type' as signal_type,
    i.fact::json -> 'data' -> 'payload' as payload,
    to_timestamp(i.at / 1000.0) as sent_at,
    i.number <= r.inbox_used as processed,
    i.number as sequence_num
from durable_inbox i
join durable_runs r on r.id = i.run
where i.fact_type = 'Signal';
