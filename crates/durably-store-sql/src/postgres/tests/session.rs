use super::scene::{Database, ground, insert, load, session, through};
use crate::error::{Context, Kind, Phase, Trouble};
use crate::postgres::open::Ground;
use crate::session::{Fields, Session};
use durably_store::Class;
use durably_testbed::Direction;
use std::future::poll_fn;
use std::pin::pin;

fn kind(trouble: &Trouble) -> Kind {
    match trouble {
        Trouble::Server { kind, .. } => *kind,
        other => panic!("{other:?}"),
    }
}

/// The versions in `durable_schema` that tests wrote.
async fn versions(ground: &Ground) -> Vec<i64> {
    let mut session = session(ground).await;
    session.begin(vec![]).await.expect("begins");
    let rows = session.ask(vec![load()]).await.expect("reads").remove(0);
    session.finish(vec![]).await.expect("finishes");
    let versions = rows.into_iter().map(|mut row| row.int().expect("a number").expect("one"));
    versions.filter(|version| *version >= 100).collect()
}

#[tokio::test]
async fn a_transaction_begins_asks_and_finishes() {
    for mode in ["direct", "pooled"] {
        let database = Database::new("session");
        let ground = ground(&database.url_with(&format!("mode={mode}"))).await;
        let mut session = session(&ground).await;
        let (began, _) = session.begin(vec![]).await.expect("begins");
        assert_eq!(began.now.0, began.micros / 1000);
        let answers = session.ask(vec![load(), insert(100), load()]).await.expect("asks");
        let counts: Vec<usize> = answers.iter().map(Vec::len).collect();
        assert_eq!(counts, [2, 0, 3], "each statement sees what was done before");
        // More than any driver would take for a few.
        session.finish((101..180).map(insert).collect()).await.expect("finishes");
        drop(session);
        assert_eq!(versions(&ground).await, (100..180).collect::<Vec<_>>());
        assert_eq!(ground.work.size().0, 1, "the connection was used again");
    }
}

#[tokio::test]
async fn limits_hold_in_both_modes() {
    for mode in ["direct", "pooled"] {
        let database = Database::new("limits");
        let ground = ground(&database.url_with(&format!("mode={mode}&lock_timeout=1"))).await;
        let mut first = session(&ground).await;
        first.begin(vec![]).await.expect("begins");
        first.ask(vec![insert(100)]).await.expect("writes");
        let mut second = session(&ground).await;
        second.begin(vec![]).await.expect("begins");
        let trouble = second.ask(vec![insert(100)]).await.expect_err("the first has the key");
        assert_eq!(kind(&trouble), Kind::Busy, "{trouble:?}");
        second.roll_back().await;
        second.begin(vec![]).await.expect("begins again on the same connection");
        second.roll_back().await;
        first.roll_back().await;
        drop((first, second));
        assert_eq!(ground.work.size().0, 2, "both connections are as good as new");
        assert!(versions(&ground).await.is_empty());
    }
}

#[tokio::test]
async fn of_several_statements_the_first_that_fails_is_named_and_nothing_is_done() {
    let database = Database::new("fails");
    let ground = ground(&database.url()).await;
    let mut session = session(&ground).await;
    session.begin(vec![]).await.expect("begins");
    let trouble = session.finish(vec![insert(100), insert(100), insert(101)]).await;
    let trouble = trouble.expect_err("the key is there twice");
    let context = Context { store: "x", operation: "commit", phase: Phase::Commit };
    let error = trouble.into_error(context);
    assert!(error.to_string().contains("23505"), "{error}");
    assert!(matches!(error.class(), Class::Transient { .. }), "nothing was done: {error}");
    drop(session);
    assert!(versions(&ground).await.is_empty());
}

#[tokio::test]
async fn after_a_failure_nothing_goes_on() {
    let database = Database::new("goes_on");
    let ground = ground(&database.url()).await;
    let mut session = session(&ground).await;
    session.begin(vec![]).await.expect("begins");
    session.ask(vec![insert(100), insert(100)]).await.expect_err("the key is there twice");
    session.finish(vec![]).await.expect_err("there is nothing to finish");
    drop(session);
    assert!(versions(&ground).await.is_empty());
}

#[tokio::test]
async fn a_transaction_that_is_dropped_is_taken_back() {
    let database = Database::new("dropped");
    let ground = ground(&database.url_with("pool=2")).await;
    let mut open = session(&ground).await;
    open.begin(vec![]).await.expect("begins");
    open.ask(vec![insert(100)]).await.expect("writes");
    drop(open);
    assert_eq!(ground.work.size().0, 0, "the connection was given up");
    // Whoever comes next does not see it, and gets the lock.
    let mut next = session(&ground).await;
    next.begin(vec![]).await.expect("begins");
    next.finish(vec![insert(100)]).await.expect("writes");
    drop(next);
    assert_eq!(versions(&ground).await, [100]);
}

/// Polls a future once, which sends what it has to say, and drops it.
async fn drop_midway(future: impl Future) {
    let mut future = pin!(future);
    let pending =
        poll_fn(|context| std::task::Poll::Ready(future.as_mut().poll(context).is_pending()));
    assert!(pending.await, "it was over too early");
}

#[tokio::test]
async fn a_future_that_is_dropped_midway_poisons_nothing() {
    let database = Database::new("midway");
    let ground = ground(&database.url_with("pool=2")).await;
    for version in 100..120 {
        let mut session = super::scene::session(&ground).await;
        drop_midway(session.begin(vec![])).await;
        drop(session);
        let mut session = super::scene::session(&ground).await;
        session.begin(vec![]).await.expect("begins");
        drop_midway(session.ask(vec![load(), insert(version)])).await;
        drop(session);
        assert_eq!(ground.work.size().0, 0, "the connection was given up");
        let mut session = super::scene::session(&ground).await;
        session.begin(vec![]).await.expect("begins");
        drop_midway(session.finish(vec![insert(version)])).await;
        drop(session);
    }
    assert_eq!(ground.work.size().0, 0);
    versions(&ground).await;
}

#[tokio::test]
async fn a_lost_answer_to_commit_is_told_from_a_refusal() {
    let database = Database::new("lost");
    let proxy = database.proxy().await;
    let url = database.url_with("answer_timeout=1&listen=off");
    let ground = ground(&through(&proxy, &url)).await;
    let context = Context { store: "x", operation: "commit", phase: Phase::Commit };
    for (lost, version) in [(Direction::ToClient, 100), (Direction::ToServer, 110)] {
        let mut session = session(&ground).await;
        session.begin(vec![]).await.expect("begins");
        session.ask(vec![insert(version)]).await.expect("writes");
        proxy.black_hole(lost);
        let trouble = session.finish(vec![insert(version + 1)]).await.expect_err("no answer");
        let error = trouble.into_error(context);
        assert_eq!(error.class(), Class::Ambiguous, "{lost:?}: {error}");
        drop(session);
        proxy.cut().await;
        proxy.forward(lost);
    }
    assert_eq!(
        versions(&ground).await,
        [100, 101],
        "all was sent at once, and then the answer lost"
    );
}

#[tokio::test]
async fn what_breaks_before_the_end_is_sent_is_not_ambiguous() {
    let database = Database::new("before");
    let proxy = database.proxy().await;
    let url = database.url_with("answer_timeout=1&listen=off");
    let ground = ground(&through(&proxy, &url)).await;
    let mut session = session(&ground).await;
    session.begin(vec![]).await.expect("begins");
    proxy.black_hole(Direction::ToClient);
    // This connection has not seen the statement: it is prepared first.
    let trouble = session.finish(vec![insert(100)]).await.expect_err("no answer");
    drop(session);
    let context = Context { store: "x", operation: "commit", phase: Phase::Commit };
    let error = trouble.into_error(context);
    assert!(matches!(error.class(), Class::Transient { .. }), "{error}");
    proxy.cut().await;
    proxy.forward(Direction::ToClient);
    assert!(versions(&ground).await.is_empty());
}

#[tokio::test]
async fn a_server_that_ends_a_connection_is_away_and_comes_back() {
    let database = Database::new("ended");
    let ground = ground(&database.url()).await;
    let mut session = session(&ground).await;
    session.begin(vec![]).await.expect("begins");
    session.ask(vec![insert(100)]).await.expect("writes");
    let client = database.client().await;
    client
        .execute(
            "select pg_terminate_backend(pid) from pg_stat_activity
             where state = 'idle in transaction' and query like '%' || $1 || '%'",
            &[&database.name()],
        )
        .await
        .expect("terminates");
    let trouble = session.finish(vec![insert(101)]).await.expect_err("the connection is gone");
    let context = Context { store: "x", operation: "commit", phase: Phase::Commit };
    let class = trouble.into_error(context).class();
    assert!(matches!(class, Class::Transient { .. } | Class::Ambiguous), "{class:?}");
    drop(session);
    assert!(versions(&ground).await.is_empty(), "on a new connection");
}

#[tokio::test]
async fn a_server_that_may_only_be_read_is_left_for_the_next() {
    let database = Database::new("standby");
    let ground = ground(&database.url()).await;
    let mut session = session(&ground).await;
    session.begin(vec![]).await.expect("begins");
    // As after a failover: the connection stays, and the server is a standby now.
    session.read_only().await;
    let trouble = session.finish(vec![insert(100)]).await.expect_err("read only");
    assert_eq!(kind(&trouble), Kind::Away, "{trouble:?}");
    drop(session);
    assert_eq!(ground.work.size().0, 0, "the connection was given up");
}

#[tokio::test]
async fn a_pool_that_is_empty_says_so() {
    let database = Database::new("empty");
    let ground = ground(&database.url_with("pool=2&answer_timeout=1")).await;
    let held = (session(&ground).await, session(&ground).await);
    let trouble = ground.work.session().await.err().expect("there are only two");
    assert_eq!(kind(&trouble), Kind::Busy, "{trouble:?}");
    drop(held);
    session(&ground).await;
}

#[tokio::test]
async fn a_deadlock_may_be_repeated() {
    let database = Database::new("deadlock");
    let ground = ground(&database.url()).await;
    let (mut one, mut two) = (session(&ground).await, session(&ground).await);
    one.begin(vec![]).await.expect("begins");
    two.begin(vec![]).await.expect("begins");
    one.ask(vec![insert(100)]).await.expect("writes");
    two.ask(vec![insert(101)]).await.expect("writes");
    let (first, second) = tokio::join!(
        async {
            let answer = one.ask(vec![insert(101)]).await;
            one.roll_back().await;
            answer
        },
        async {
            let answer = two.ask(vec![insert(100)]).await;
            two.roll_back().await;
            answer
        }
    );
    let troubles: Vec<Trouble> = [first.err(), second.err()].into_iter().flatten().collect();
    assert_eq!(troubles.len(), 1, "{troubles:?}");
    assert!(troubles[0].repeats(), "{troubles:?}");
    drop((one, two));
    assert_eq!(ground.work.size().0, 2, "both connections are as good as new");
}
