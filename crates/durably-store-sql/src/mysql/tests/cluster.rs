//! Nodes of a cluster that all take writes: one of them is written to.

use super::scene::{client, ground, insert, kind, session};
use crate::error::Kind;
use crate::mysql::open::Ground;
use crate::session::Session;
use durably_testbed::{Database, Galera, ServerOptions};
use mysql_async::prelude::Queryable;

/// The node on which a transaction takes place.
async fn node(ground: &Ground) -> String {
    let mut session = session(ground).await;
    session.begin(vec![]).await.expect("begins");
    session.finish(vec![]).await.expect("finished");
    session.node().expect("a node").to_owned()
}

/// The node that stands in the database, once the asked one has caught up.
async fn recorded(url: &str) -> String {
    let mut conn = client(url).await;
    conn.query_drop("set session wsrep_sync_wait = 1").await.expect("set");
    let question = "select checksum from durable_schema where version = 0";
    let answer: Option<String> = conn.query_first(question).await.expect("an answer");
    conn.disconnect().await.expect("disconnects");
    answer.expect("a row")
}

/// Changes what stands in the database, and waits until all nodes know.
async fn record(nodes: &[String; 2], node: &str) {
    let mut conn = client(&nodes[0]).await;
    let text = "update durable_schema set checksum = ? where version = 0";
    conn.exec_drop(text, (node,)).await.expect("written");
    conn.disconnect().await.expect("disconnects");
    for url in nodes {
        assert_eq!(recorded(url).await, node);
    }
}

#[tokio::test]
async fn all_write_to_the_node_that_is_recorded() {
    let galera = Galera::start(2, &ServerOptions::default()).expect("a cluster");
    let [first, second] = galera.nodes() else { panic!("two nodes") };
    let database = Database::on(&first.url(), "cluster").expect("a database");
    let [one, two] = [first, second].map(|node| format!("127.0.0.1:{}", node.port()));
    let url = |hosts: &[&str]| database.url().replace(&one, &hosts.join(","));
    let nodes = [url(&[&one]), url(&[&two])];
    let early = ground(&url(&[&one, &two])).await;
    assert_eq!((node(&early).await, recorded(&nodes[1]).await), ("n1".into(), "n1".into()));
    let late = ground(&url(&[&two, &one])).await;
    assert_eq!(node(&late).await, "n1", "whatever comes first in its URL");
    // An administrator moves everybody.
    record(&nodes, "n2").await;
    assert_eq!((node(&early).await, node(&late).await), ("n2".into(), "n2".into()));
    // What began before goes on, unless it collides with what others have done.
    let (mut harmless, mut colliding) = (session(&early).await, session(&early).await);
    harmless.begin(vec![]).await.expect("begins");
    colliding.begin(vec![]).await.expect("begins");
    colliding.ask(vec![insert(5)]).await.expect("written, and not committed");
    record(&nodes, "n1").await;
    let mut other = session(&late).await;
    other.begin(vec![]).await.expect("begins");
    assert_eq!(other.node(), Some("n1"));
    other.finish(vec![insert(5)]).await.expect("finished: the other node knows nothing of it");
    assert_eq!(recorded(&nodes[1]).await, "n1", "and has it now");
    let trouble = colliding.finish(vec![]).await.expect_err("somebody else was quicker");
    assert_eq!(kind(trouble), Kind::Repeat);
    harmless.finish(vec![]).await.expect("finished");
    drop((harmless, colliding, other));
    assert_eq!((node(&early).await, node(&late).await), ("n1".into(), "n1".into()));
    // One that is out of reach is replaced by the first that is not, for all.
    record(&nodes, "gone").await;
    let taken = node(&late).await;
    assert_eq!((node(&early).await, recorded(&nodes[0]).await), (taken.clone(), taken));
}
