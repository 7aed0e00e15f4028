use super::scene::{client, count, database, ground, refusal, run};
use durably_store::StoreError;
use futures_util::future::join_all;
use mysql_async::prelude::Queryable;

/// The tables and views of a database, as the server describes them.
async fn described(url: &str) -> Vec<(String, String, String)> {
    let mut conn = client(url).await;
    let columns = "select concat(table_name, '.', column_name), column_type, \
                   concat_ws(' ', is_nullable, collation_name, extra, generation_expression) \
                   from information_schema.columns where table_schema = database() order by 1";
    let indexes = "select concat(table_name, '.', index_name, '.', seq_in_index), column_name, \
                   cast(non_unique as char) from information_schema.statistics \
                   where table_schema = database() order by 1";
    let checks = "select concat(table_name, '.', constraint_name), check_clause, '' \
                  from information_schema.check_constraints \
                  where constraint_schema = database() order by 1";
    let mut all = Vec::new();
    for question in [columns, indexes, checks] {
        let rows: Vec<(String, String, String)> = conn.query(question).await.expect("an answer");
        assert!(!rows.is_empty(), "{question}");
        all.extend(rows);
    }
    all
}

#[tokio::test]
async fn of_many_that_start_at_once_one_migrates() {
    let database = database("many");
    let opened = join_all((0..8).map(|_| ground(database.url()))).await;
    assert_eq!(count(&opened[0]).await, 1);
}

#[tokio::test]
async fn an_interrupted_migration_is_applied_again() {
    let (whole, broken) = (database("whole"), database("broken"));
    ground(whole.url()).await;
    ground(broken.url()).await;
    run(
        broken.url(),
        "delete from durable_schema; drop view durable_signals; drop view durable_task_queue; \
         drop table durable_workers; drop table durable_inbox",
    )
    .await;
    assert_eq!(count(&ground(broken.url()).await).await, 1);
    assert_eq!(described(whole.url()).await, described(broken.url()).await);
}

#[tokio::test]
async fn stores_with_other_prefixes_live_side_by_side() {
    let database = database("prefix");
    let plain = ground(database.url()).await;
    let other = ground(&[database.url(), "?prefix=other_"].concat()).await;
    assert_eq!((count(&plain).await, count(&other).await), (1, 1));
    run(database.url(), "select * from other_durable_task_queue").await;
}

#[tokio::test]
async fn a_schema_from_the_future_is_left_alone() {
    let database = database("future");
    ground(database.url()).await;
    run(database.url(), "insert into durable_schema values (9, 'later', 'x', 0)").await;
    let error = refusal(database.url()).await;
    assert_eq!(error, StoreError::SchemaNewer { found: 9, known: 1 });
    run(database.url(), "delete from durable_schema where version = 9").await;
    run(database.url(), "update durable_schema set checksum = 'x'").await;
    assert!(matches!(refusal(database.url()).await, StoreError::Corrupt { .. }));
}
