//! What people see with an SQL shell: the names and columns that the documents promise.

mod scene;

use durably_kernel::{Event, Payload, RunStatus, Seq, Summary};
use durably_store::{Base, Delivery, RunCommit, Store};
use rusqlite::types::Value;
use scene::{
    claim, commit, commit_id, open, place, register, run_id, running, shell, signal, start, wait,
};
use std::path::Path;

/// The rows of a query as a shell prints them.
fn rows(path: &Path, sql: &str) -> Vec<String> {
    let conn = shell(path);
    let mut statement = conn.prepare(sql).expect("prepares");
    let columns = statement.column_count();
    let mut rows = statement.query([]).expect("reads");
    let mut lines = Vec::new();
    while let Some(row) = rows.next().expect("reads") {
        let values = (0..columns).map(|at| match row.get(at).expect("a value") {
            Value::Null => "null".to_owned(),
            Value::Integer(number) => number.to_string(),
            Value::Text(text) => text,
            other => panic!("{other:?} is not for people"),
        });
        lines.push(values.collect::<Vec<_>>().join(" | "));
    }
    lines
}

const TIME: &str = "2023-11-14T22:13:20.000Z";

#[test]
fn views_show_what_the_documents_name() {
    let (_folder, path) = place();
    let store = open(&path);
    let run = run_id(1);
    wait(async {
        commit(&store, start(1)).await;
        let delivery = Delivery { run, id: "s".to_owned(), fact: signal("s"), claim: None };
        store.deliver(vec![delivery]).await.expect("delivers");
        let who = register(&store, "worker", "here").await;
        assert_eq!(claim(&store, &who, 1).await.len(), 1);
    });
    let instances = rows(
        &path,
        "select id, workflow_type, status, input, result, created_at, started_at, completed_at, \
         trace_id, span_id from durable_workflow_instances",
    );
    let traced = "0af7651916cd43dd8448eb211c80319c | b7ad6b7169203331";
    let shown = format!("{run} | order | running | 1 | null | {TIME} | {TIME} | null | {traced}");
    assert_eq!(instances, [shown]);

    let events = rows(
        &path,
        "select workflow_id, sequence_num, event_type, event_data ->> '$.version', created_at \
         from durable_workflow_events order by sequence_num",
    );
    let begun = format!("{run} | 1 | WorkflowStarted | null | {TIME}");
    let pinned = format!("{run} | 2 | VersionPinned | 1 | {TIME}");
    assert_eq!(events, [begun, pinned]);

    let tasks = rows(
        &path,
        "select workflow_id, activity_id, activity_type, input, status, claimed_by, claimed_at, \
         attempt from durable_task_queue where kind = 'activity'",
    );
    assert_eq!(tasks, [format!("{run} | a | charge | \"in\" | claimed | worker | {TIME} | 1")]);

    let signals = rows(
        &path,
        "select id, workflow_id, signal_type, payload, sent_at, processed, sequence_num \
         from durable_signals",
    );
    assert_eq!(signals, [format!("s | {run} | paid | [1,2] | {TIME} | 0 | 1")]);
}

#[test]
fn a_result_is_shown_once_there_is_one() {
    let (_folder, path) = place();
    let store = open(&path);
    wait(async {
        commit(&store, start(1)).await;
        let result = Payload::from_text("{\"b\":1,\"a\":2}".to_owned()).expect("JSON");
        let done = RunCommit {
            events: vec![Event::WorkflowCompleted { result }],
            summary: Some(Summary { status: RunStatus::Completed, ..running() }),
            ..RunCommit::empty(commit_id(9), run_id(1), Base::Head(Seq(2)))
        };
        commit(&store, done).await;
    });
    let shown = rows(&path, "select status, result from durable_workflow_instances");
    assert_eq!(shown, ["completed | {\"b\":1,\"a\":2}"]);
    for empty in ["durable_task_queue", "durable_signals", "durable_dead_letter_queue"] {
        assert!(rows(&path, &["select * from ", empty].concat()).is_empty(), "{empty}");
    }
}
