//! Ways to damage a store, each done to a run of its own, and what doctor says to it.

/// What a run is like before it is damaged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Like {
    /// Completed, after a step.
    Done,
    /// Failed, with a dead letter.
    Failed,
    /// Waits for an activity that nobody hosts, after a step.
    Queued,
    /// Sleeps for a day.
    Asleep,
    /// Waits for a signal.
    Listening,
    /// Waits for another signal than the two that wait for it.
    Unread,
    /// Waits for somebody who has its code.
    Pending,
}

/// One way to damage a run.
pub(crate) struct Damage {
    /// The run's idempotency key.
    pub(crate) key: &'static str,
    pub(crate) like: Like,
    /// `{run}` is the run's id.
    pub(crate) sql: &'static [&'static str],
    /// What doctor says: the invariant, and a part of the text.
    pub(crate) says: (Option<&'static str>, &'static str),
}

const fn damage(
    key: &'static str,
    like: Like,
    sql: &'static [&'static str],
    invariant: &'static str,
    says: &'static str,
) -> Damage {
    Damage { key, like, sql, says: (Some(invariant), says) }
}

const fn unreadable(
    key: &'static str,
    like: Like,
    sql: &'static [&'static str],
    says: &'static str,
) -> Damage {
    Damage { key, like, sql, says: (None, says) }
}

/// The statements that make checks and indexes go which keep some of the damage out.
pub(crate) fn let_in(scheme: &str) -> &'static [&'static str] {
    match scheme {
        "sqlite" => &["pragma ignore_check_constraints = 1", "drop index durable_runs_key"],
        "mysql" => &[
            "alter table durable_runs drop constraint durable_runs_status_known",
            "alter table durable_tasks drop constraint durable_tasks_owned",
            "alter table durable_tasks drop constraint durable_tasks_state_known",
            "alter table durable_runs drop index durable_runs_key",
        ],
        _ => &[
            "alter table durable_runs drop constraint durable_runs_status_known",
            "alter table durable_tasks drop constraint durable_tasks_owned",
            "alter table durable_tasks drop constraint durable_tasks_state_known",
            "drop index durable_runs_key",
        ],
    }
}

/// What is wrong afterwards.
pub(crate) const DAMAGES: &[Damage] = &[
    damage(
        "a gap in the history",
        Like::Done,
        &["delete from durable_history where run = {run} and first_seq = (
            select second from (
                select min(first_seq) as second from durable_history
                where run = {run} and first_seq > 1
            ) as h
        )"],
        "I1",
        "events are not numbered 1..n",
    ),
    damage(
        "the beginning is missing",
        Like::Done,
        &["delete from durable_history where run = {run} and first_seq = 1"],
        "I1",
        "where 1 should be",
    ),
    damage(
        "a wrong count",
        Like::Asleep,
        &["update durable_history set count = count + 1 where run = {run} and first_seq = 1"],
        "I1",
        "the rows of the history count",
    ),
    damage(
        "a wrong head",
        Like::Asleep,
        &["update durable_runs set head = head + 3 where id = {run}"],
        "I2",
        "the head is",
    ),
    damage(
        "a second end",
        Like::Done,
        &[
            "insert into durable_history (run, first_seq, count, commit_id, committed_at, events)
            select id, head + 1, 1, id, 9000000000000,
                '[{\"type\":\"WorkflowCompleted\",\"data\":{\"result\":1}}]'
            from durable_runs where id = {run}",
            "update durable_runs set head = head + 1 where id = {run}",
        ],
        "I3",
        "comes after the end",
    ),
    damage(
        "a wrong status",
        Like::Done,
        &["update durable_runs set status = 'running', ended_at = null where id = {run}"],
        "I4",
        "the status is running, by the events it is completed",
    ),
    damage(
        "wrong retries",
        Like::Asleep,
        &["update durable_runs set retries = 7 where id = {run}"],
        "I4",
        "7 retries are counted",
    ),
    damage(
        "a missing task",
        Like::Queued,
        &["delete from durable_tasks where run = {run} and kind = 'activity'"],
        "I5",
        "activity elsewhere has neither a row nor an outcome",
    ),
    damage(
        "a missing timer",
        Like::Asleep,
        &["delete from durable_tasks where run = {run} and kind = 'timer'"],
        "I5",
        "has neither a row nor an entry",
    ),
    damage(
        "a task too many",
        Like::Listening,
        &[TASK],
        "I5",
        "nothing in the history asks for place 9 (activity forged, ready)",
    ),
    damage(
        "a doubled outcome",
        Like::Asleep,
        &[
            "insert into durable_history (run, first_seq, count, commit_id, committed_at, events)
            select id, head + 1, 1, id, 9000000000000,
                '[{\"type\":\"ActivityCompleted\",\"data\":{\"activity_id\":\"first\",\"result\":1,\
                 \"attempt\":{\"number\":1,\"worker\":\"w\",\"started_at\":1},\"at\":1}}]'
            from durable_runs where id = {run}",
            "update durable_runs set head = head + 1 where id = {run}",
        ],
        "I6",
        "activity first has two outcomes",
    ),
    damage(
        "claimed without an owner",
        Like::Queued,
        &["update durable_tasks set state = 'claimed' where run = {run} and kind = 'activity'"],
        "I9",
        "claimed without an owner",
    ),
    damage(
        "a task of an ended run",
        Like::Done,
        &[TASK],
        "I10",
        "a live row of an ended run: place 9",
    ),
    damage(
        "unread entries without a turn row",
        Like::Unread,
        &["delete from durable_tasks where run = {run} and place = 0"],
        "I11",
        "2 unread inbox entries without a turn row",
    ),
    damage(
        "a beginning without a turn row",
        Like::Pending,
        &["delete from durable_tasks where run = {run}"],
        "I11",
        "an open run that waits for nothing",
    ),
    damage(
        "a timer fired early",
        Like::Asleep,
        &[
            "insert into durable_history (run, first_seq, count, commit_id, committed_at, events)
            select id, head + 1, 1, id, created_at + 60000,
                '[{\"type\":\"TimerFired\",\"data\":{\"timer_id\":\"sleep\",\"at\":1}}]'
            from durable_runs where id = {run}",
            "update durable_runs set head = head + 1 where id = {run}",
        ],
        "I13",
        "timer sleep fired before its time",
    ),
    damage(
        "an inbox gap",
        Like::Unread,
        &["delete from durable_inbox where run = {run} and number = 1"],
        "I14",
        "inbox numbers have gaps: 1 is missing",
    ),
    damage(
        "more read than came",
        Like::Unread,
        &["update durable_runs set inbox_used = 9 where id = {run}"],
        "I14",
        "9 entries are used up, 2 were delivered",
    ),
    damage(
        "a missing dead letter",
        Like::Failed,
        &["delete from durable_dead_letter_queue where workflow_id = {run}"],
        "I17",
        "activity broken was given up and has no dead letter",
    ),
    damage(
        "a wrong tenant",
        Like::Queued,
        &["update durable_tasks set tenant = 'other' where run = {run} and kind = 'activity'"],
        "I27",
        "1 tasks are not of the run's tenant",
    ),
    unreadable(
        "an unknown event",
        Like::Listening,
        &["update durable_history set events = '[{\"type\":\"Frobnicated\",\"v\":9,\"data\":{}}]'
            where run = {run} and first_seq = 1"],
        "Frobnicated",
    ),
    unreadable(
        "no JSON",
        Like::Listening,
        &["update durable_history set events = 'nonsense' where run = {run} and first_seq = 1"],
        "durable_history",
    ),
    unreadable(
        "an unknown status",
        Like::Asleep,
        &["update durable_runs set status = 'frozen' where id = {run}"],
        "frozen",
    ),
    unreadable(
        "an unknown state",
        Like::Queued,
        &["update durable_tasks set state = 'lazy' where run = {run} and kind = 'activity'"],
        "lazy",
    ),
    unreadable(
        "a claim without a deadline",
        Like::Queued,
        &["update durable_tasks set state = 'claimed', owner = 'w', claimed_at = 1
            where run = {run} and kind = 'activity'"],
        "durable_tasks",
    ),
    unreadable(
        "no run any more",
        Like::Queued,
        &["delete from durable_runs where id = {run}"],
        "1 rows in durable_tasks belong to no run",
    ),
    damage(
        "twins",
        Like::Listening,
        &["update durable_runs set idempotency_key = 'twins', tenant = (
            select tenant from (select tenant from durable_runs where id = {run}) as r
        ) where idempotency_key = 'not damaged: 3'"],
        "I19",
        "1 other runs of",
    ),
];

const TASK: &str = "insert into durable_tasks (
        run, place, kind, name, target, version, queue, tenant, priority, fresh, seq,
        claim_number, state, ready_order, attempt, deaths
    )
    select id, 9, 'activity', 'forged', 'forged', 0, queue, tenant, 0, 0, 2, 0, 'ready', 1, 0, 0
    from durable_runs where id = {run}";

/// What is not damaged and worth a note.
pub(crate) const NOTES: &[Damage] = &[
    unreadable(
        "a claim of a process that is gone",
        Like::Queued,
        &["update durable_tasks set state = 'claimed', owner = 'gone-1-x', claimed_at = 1,
            deadline = 2, claim_number = 1, attempt = 1 where run = {run} and kind = 'activity'"],
        "claimed by gone-1-x, which is gone",
    ),
    unreadable(
        "parked",
        Like::Listening,
        &["update durable_runs set parked_code = 'DUR-0002', parked_reason = 'no such step',
            parked_times = 4, parked_at = 1 where id = {run}"],
        "parked (DUR-0002, 4 times): no such step",
    ),
];
