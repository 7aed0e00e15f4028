use super::scene::{Database, ground, insert, load, session};
use crate::postgres::session::Statements;
use crate::session::Session;
use durably_testbed::Pooler;

/// Uses the store from several sessions at once, so that transactions change places.
async fn use_it(url: &str) -> Statements {
    let ground = ground(url).await;
    let work = (0..4_i64).map(|worker| {
        let ground = &ground;
        async move {
            for round in 0..10 {
                let mut session = session(ground).await;
                session.begin(vec![]).await.expect("begins");
                let number = 100 + worker * 100 + round;
                let calls = vec![load(), insert(number), load()];
                session.ask(calls).await.expect("asks");
                session.finish(vec![insert(number + 1000)]).await.expect("finishes");
            }
        }
    });
    futures_util::future::join_all(work).await;
    ground.work.statements()
}

fn through(pooler: &Pooler, database: &Database) -> String {
    [pooler.url(), "?schema=", database.name()].concat()
}

#[tokio::test]
async fn a_pooler_that_refuses_startup_parameters_is_recognised() {
    let database = Database::new("pooled");
    let pooler = Pooler::before(database.server_url(), &[]).expect("a pooler");
    assert_eq!(use_it(&through(&pooler, &database)).await, Statements::Sent);
}

#[tokio::test]
async fn a_pooler_that_ignores_startup_parameters_is_recognised() {
    let database = Database::new("pooled_ignoring");
    let ignores = [("ignore_startup_parameters", "options,extra_float_digits")];
    let pooler = Pooler::before(database.server_url(), &ignores).expect("a pooler");
    assert_eq!(use_it(&through(&pooler, &database)).await, Statements::Sent);
}

#[tokio::test]
async fn without_a_pooler_statements_are_prepared() {
    let database = Database::new("not_pooled");
    assert_eq!(use_it(&database.url()).await, Statements::Prepared);
}
