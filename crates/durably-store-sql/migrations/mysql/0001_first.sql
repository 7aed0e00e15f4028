-- Runs, their histories, their live tasks, their inboxes; work that was given up; processes
-- and who of them leads.
-- Times are milliseconds since 1970 UTC, JSON is text as it was written. Text that is compared is
-- bytes: what differs by case, accent or a space at its end is not the same, whatever the server's
-- collations do. The views at the end show ids, text and times as people read them.
-- DDL commits by itself here, so all of this may be applied again after it was interrupted.

create table if not exists durable_runs (
    id binary(16) not null primary key,
    tenant varbinary(512) not null,
    workflow_type varbinary(512) not null,
    version bigint,
    queue varbinary(512) not null,
    priority integer not null,
    idempotency_key varbinary(1024),
    input_hash varbinary(255) not null,
    attributes longtext,
    trace_context text,
    status varbinary(16) not null,
    head bigint not null,
    inbox_last bigint not null default 0,
    inbox_used bigint not null default 0,
    turn_counter bigint not null default 0,
    paused smallint not null default 0,
    stamp bigint not null default 0,
    parked_code text,
    parked_reason longtext,
    parked_times bigint,
    parked_at bigint,
    waits longtext,
    retries bigint not null default 0,
    last_error longtext,
    created_at bigint not null,
    started_at bigint,
    ended_at bigint,
    -- Every run is in it, those without a key one after the other at its beginning.
    unique index durable_runs_key (idempotency_key, tenant),
    -- A status changes a few times in a run's life, not with every step. Nearly no run is parked.
    index durable_runs_status (status, parked_at),
    constraint durable_runs_status_known check (
        status in ('running', 'completed', 'pending', 'failed', 'cancelled', 'terminated',
            'continued')
    ),
    constraint durable_runs_paused_known check (paused in (0, 1))
) engine = innodb default character set utf8mb4 collate utf8mb4_bin;

-- One row per commit (decision 3); rows are inserted and never changed.
create table if not exists durable_history (
    run binary(16) not null,
    first_seq bigint not null,
    count integer not null,
    commit_id binary(16) not null,
    committed_at bigint not null,
    trace_context text,
    events longtext not null,
    primary key (run, first_seq),
    constraint durable_history_counted check (first_seq >= 1 and count >= 1)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin;

-- Live tasks only; a place is reused, and its claim number goes on. A task is ready, or waits for
-- a time, or is somebody's. There are no indexes on a part of a table here, so one index serves
-- all three: columns are null where they say nothing, and a step by the same process changes none
-- of them, whatever it does to names and queues.
create table if not exists durable_tasks (
    run binary(16) not null,
    place integer not null,
    kind varbinary(16) not null,
    name varbinary(512) not null,
    target varbinary(1024) not null,
    watched integer,
    version bigint not null,
    queue varbinary(512) not null,
    tenant varbinary(512) not null,
    priority integer not null,
    fresh smallint not null,
    seq bigint not null,
    claim_number bigint not null,
    state varbinary(16) not null,
    ready_order bigint not null,
    due_at bigint,
    owner varbinary(512),
    call_id binary(16),
    claimed_at bigint,
    deadline bigint,
    heartbeat_ms bigint,
    heartbeat_by bigint,
    unnamed integer not null default 0,
    attempt bigint not null,
    deaths bigint not null,
    losses longtext,
    options longtext,
    trace_context text,
    details longtext,
    input longtext,
    -- Who may claim it, and in which order, while it is ready. Names have no control characters, so
    -- a lane is said in one way only. The highest priority comes first; indexes that run downwards
    -- are not to be had everywhere.
    lane varbinary(1100) generated always as (
        case when state = 'ready' then concat(queue, x'00', kind, x'00', name) end
    ) stored,
    lane_version bigint generated always as (case when state = 'ready' then version end) stored,
    lane_rank bigint generated always as (case when state = 'ready' then -priority end) stored,
    lane_fresh smallint generated always as (case when state = 'ready' then fresh end) stored,
    lane_tenant varbinary(512) generated always as (case when state = 'ready' then tenant end)
        stored,
    lane_order bigint generated always as (case when state = 'ready' then ready_order end) stored,
    primary key (run, place),
    index durable_tasks_stage (
        owner, call_id, due_at, lane, lane_version, lane_rank, lane_fresh, lane_tenant, lane_order
    ),
    constraint durable_tasks_kind_known check (
        kind in ('activity', 'turn', 'timer', 'retry', 'timeout')
    ),
    constraint durable_tasks_state_known check (
        state in ('claimed', 'ready', 'waiting', 'cancelling', 'gated')
    ),
    constraint durable_tasks_placed check (place >= 0 and fresh in (0, 1)),
    constraint durable_tasks_owned check (
        case when state in ('claimed', 'cancelling') then owner is not null else owner is null end
    )
) engine = innodb default character set utf8mb4 collate utf8mb4_bin;

-- What reached a run from outside. Used-up entries stay, so that a repeat is recognised.
create table if not exists durable_inbox (
    run binary(16) not null,
    number bigint not null,
    id varbinary(1024) not null,
    fact_type varbinary(255) not null,
    at bigint not null,
    fact longtext not null,
    primary key (run, number),
    unique index durable_inbox_id (run, id),
    constraint durable_inbox_numbered check (number >= 1)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin;

create table if not exists durable_dead_letter_queue (
    id bigint not null auto_increment primary key,
    workflow_id binary(16) not null,
    kind varbinary(16) not null,
    activity_id text not null,
    activity_type text not null,
    input longtext not null,
    attempts bigint not null,
    last_error longtext not null,
    error_history longtext not null,
    dead_at bigint not null,
    requeued_at bigint,
    requeue_count bigint not null default 0,
    index durable_dead_letter_queue_run (workflow_id),
    constraint durable_dead_letter_queue_kind_known check (kind in ('activity', 'unread'))
) engine = innodb default character set utf8mb4 collate utf8mb4_bin;

create table if not exists durable_workers (
    id varbinary(512) not null primary key,
    birth bigint not null auto_increment,
    worker_group text not null,
    queues longtext not null,
    can longtext not null,
    max_concurrency bigint not null,
    current_load bigint not null,
    status varbinary(16) not null,
    hostname text not null,
    version text not null,
    started_at bigint not null,
    last_heartbeat_at bigint not null,
    beats bigint not null default 0,
    unique index durable_workers_birth (birth),
    constraint durable_workers_status_known check (
        status in ('active', 'draining', 'stopped', 'stale')
    )
) engine = innodb default character set utf8mb4 collate utf8mb4_bin;

-- Who does what one process is enough for, and until when; one row, which is always there.
create table if not exists durable_leader (
    id smallint not null primary key,
    leader varbinary(512),
    term bigint not null,
    renewed_at bigint not null,
    lease_ms bigint not null,
    constraint durable_leader_one check (id = 1)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin;

insert ignore into durable_leader (id, leader, term, renewed_at, lease_ms)
values (1, null, 0, 0, 0);

create or replace sql security invoker view durable_workflow_instances as
select
    insert(insert(insert(insert(
        lower(hex(r.id)), 21, 0, '-'), 17, 0, '-'), 13, 0, '-'), 9, 0, '-') as id,
    convert(r.tenant using utf8mb4) as tenant,
    convert(r.workflow_type using utf8mb4) as workflow_type,
    r.version,
    convert(r.queue using utf8mb4) as queue,
    r.priority,
    convert(r.idempotency_key using utf8mb4) as idempotency_key,
    convert(r.status using utf8mb4) as status,
    (select json_extract(h.events, '$[0].data.input') from durable_history h
        where h.run = r.id and h.first_seq = 1) as input,
    case when r.status = 'completed' then
        (select json_extract(h.events, concat('$[', json_length(h.events) - 1, '].data.result'))
            from durable_history h
            where h.run = r.id order by h.first_seq desc limit 1)
    end as result,
    json_extract(r.last_error, '$.error') as error,
    r.attributes,
    r.head,
    r.paused,
    r.parked_code,
    r.parked_reason,
    cast('1970-01-01' as datetime(3)) + interval r.created_at * 1000 microsecond as created_at,
    (select cast('1970-01-01' as datetime(3)) + interval h.committed_at * 1000 microsecond
        from durable_history h
        where h.run = r.id order by h.first_seq desc limit 1) as updated_at,
    cast('1970-01-01' as datetime(3)) + interval r.started_at * 1000 microsecond as started_at,
    cast('1970-01-01' as datetime(3)) + interval r.ended_at * 1000 microsecond as completed_at,
    substr(r.trace_context, 4, 32) as trace_id,
    substr(r.trace_context, 37, 16) as span_id
from durable_runs r;

create or replace sql security invoker view durable_workflow_events as
select
    insert(insert(insert(insert(
        lower(hex(h.run)), 21, 0, '-'), 17, 0, '-'), 13, 0, '-'), 9, 0, '-') as workflow_id,
    h.first_seq + e.at - 1 as sequence_num,
    json_unquote(json_extract(h.events, concat('$[', e.at - 1, '].type'))) as event_type,
    json_extract(h.events, concat('$[', e.at - 1, '].data')) as event_data,
    cast('1970-01-01' as datetime(3)) + interval h.committed_at * 1000 microsecond as created_at,
    substr(h.trace_context, 4, 32) as trace_id,
    substr(h.trace_context, 37, 16) as span_id
from durable_history h
cross join json_table(h.events, '$[*]' columns (at for ordinality)) e;

create or replace sql security invoker view durable_task_queue as
select
    concat(insert(insert(insert(insert(
        lower(hex(t.run)), 21, 0, '-'), 17, 0, '-'), 13, 0, '-'), 9, 0, '-'), '/', t.place) as id,
    insert(insert(insert(insert(
        lower(hex(t.run)), 21, 0, '-'), 17, 0, '-'), 13, 0, '-'), 9, 0, '-') as workflow_id,
    convert(t.kind using utf8mb4) as kind,
    convert(t.target using utf8mb4) as activity_id,
    convert(t.name using utf8mb4) as activity_type,
    t.input,
    t.options,
    convert(t.state using utf8mb4) as status,
    convert(t.queue using utf8mb4) as queue,
    convert(t.tenant using utf8mb4) as tenant,
    t.priority,
    cast('1970-01-01' as datetime(3)) + interval t.due_at * 1000 microsecond as visible_at,
    convert(t.owner using utf8mb4) as claimed_by,
    cast('1970-01-01' as datetime(3)) + interval t.claimed_at * 1000 microsecond as claimed_at,
    cast('1970-01-01' as datetime(3)) + interval t.deadline * 1000 microsecond as deadline,
    cast('1970-01-01' as datetime(3))
        + interval (t.heartbeat_by - t.heartbeat_ms) * 1000 microsecond as heartbeat_at,
    t.attempt,
    case when t.kind = 'activity' then
        coalesce(cast(json_unquote(json_extract(t.options, '$.retry.attempts')) as signed), 3)
    end as max_attempts,
    cast(json_unquote(json_extract(t.options, '$.schedule_to_start_ms')) as signed)
        as schedule_to_start_timeout,
    case when t.kind = 'activity' then
        coalesce(
            cast(json_unquote(json_extract(t.options, '$.start_to_close_ms')) as signed), 600000
        )
    end as start_to_close_timeout,
    t.heartbeat_ms as heartbeat_timeout,
    t.deaths,
    t.losses,
    t.details,
    substr(t.trace_context, 4, 32) as trace_id,
    substr(t.trace_context, 37, 16) as span_id
from durable_tasks t;

create or replace sql security invoker view durable_signals as
select
    convert(i.id using utf8mb4) as id,
    insert(insert(insert(insert(
        lower(hex(i.run)), 21, 0, '-'), 17, 0, '-'), 13, 0, '-'), 9, 0, '-') as workflow_id,
    json_unquote(json_extract(i.fact, '$.data.signal_type')) as signal_type,
    json_extract(i.fact, '$.data.payload') as payload,
    cast('1970-01-01' as datetime(3)) + interval i.at * 1000 microsecond as sent_at,
    i.number <= r.inbox_used as processed,
    i.number as sequence_num
from durable_inbox i
join durable_runs r on r.id = i.run
where i.fact_type = 'Signal';
