//! Who locks what. A small table that is scanned because that seems cheaper would make everybody
//! wait for everybody.

use super::scene::{client, database, ground, session};
use crate::mysql::open::Ground;
use crate::session::{Call, Param, Session};
use crate::text::Sql;
use durably_testbed::Database;
use mysql_async::prelude::Queryable;
use uuid::Uuid;

fn run_id(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

fn words(text: &str, count: usize) -> Param {
    Param::Texts(vec![Some(text.to_owned()); count])
}

fn numbers(value: i64, count: usize) -> Param {
    Param::Ints(vec![Some(value); count])
}

/// Ready tasks, one for each of some runs.
async fn with_tasks(database: &Database, runs: std::ops::Range<u128>) -> Ground {
    let ground = ground(&[database.url(), "?lock_timeout=1"].concat()).await;
    let mut conn = client(database.url()).await;
    for run in runs {
        let run = run_id(run);
        let text = "insert into durable_tasks (run, place, kind, name, target, version, queue, \
                    tenant, priority, fresh, seq, claim_number, state, ready_order, attempt, \
                    deaths) values (?, 1, 'activity', 'n', 't', 0, 'q', 'a', 0, 0, 1, 0, 'ready', \
                    1, 0, 0)";
        conn.exec_drop(text, (run.as_bytes().as_slice(),)).await.expect("inserted");
    }
    ground
}

fn ids(runs: std::ops::Range<u128>) -> Param {
    Param::Ids(runs.map(|run| Some(run_id(run))).collect())
}

fn take(most: i64) -> Call {
    let key = vec![words("q", 1), words("activity", 1), words("n", 1), numbers(0, 1)];
    let lane = vec![words("a", 1), numbers(0, 1), numbers(most, 1)];
    let level = vec![Param::Int(Some(0)), Param::Int(Some(0))];
    Call { sql: Sql::ClaimTake, params: [key, lane, level].concat() }
}

#[tokio::test]
async fn claims_skip_what_others_have_taken() {
    let database = database("skip");
    let ground = with_tasks(&database, 0..10).await;
    let (mut first, mut second) = (session(&ground).await, session(&ground).await);
    first.begin(vec![]).await.expect("begins");
    second.begin(vec![]).await.expect("begins");
    for session in [&mut first, &mut second] {
        let taken = session.ask(vec![take(3)]).await.expect("tasks").remove(0).len();
        assert_eq!(taken, 3);
    }
    // Whoever has locked a row finds it again.
    let rest = second.ask(vec![take(100)]).await.expect("tasks").remove(0).len();
    assert_eq!(rest, 7, "all but the other's three");
}

#[tokio::test]
async fn nobody_waits_for_rows_that_he_does_not_name() {
    let database = database("scan");
    let ground = with_tasks(&database, 0..20).await;
    let mut holder = session(&ground).await;
    holder.begin(vec![]).await.expect("begins");
    let lock = |runs: std::ops::Range<u128>| {
        let count = runs.clone().count();
        Call { sql: Sql::TasksLock, params: vec![ids(runs), numbers(1, count)] }
    };
    assert_eq!(holder.ask(vec![lock(5..6)]).await.expect("a row")[0].len(), 1);
    let delete = |runs: std::ops::Range<u128>| Call { sql: Sql::TasksDelete, ..lock(runs) };
    let whole = |runs| Call { sql: Sql::TasksLockAll, params: vec![ids(runs)] };
    // Rows before and after, and many that are not there.
    for call in [
        lock(4..5),
        lock(6..7),
        lock(100..400),
        lock(100..1000),
        whole(4..5),
        whole(0..5),
        whole(6..600),
        delete(4..5),
        delete(0..4),
        delete(6..8),
        delete(100..1000),
    ] {
        let mut session = session(&ground).await;
        session.begin(vec![]).await.expect("begins");
        let asked = format!("{call:?}");
        let answer = session.ask(vec![call]).await;
        assert!(answer.is_ok(), "{}: {:?}", &asked[..100.min(asked.len())], answer.err());
        session.roll_back().await;
    }
}
