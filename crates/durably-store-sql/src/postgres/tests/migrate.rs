use super::scene::{Database, clock, ground, refusal, run, url_of};
use crate::migrate::{Migration, migrations};
use crate::postgres::migrate::Schema;
use crate::text::{Dialect, Naming};
use durably_kernel::Code;
use durably_store::StoreError;
use std::collections::BTreeSet;

/// Everything that the catalogue says about the tables, indexes, constraints and views of a schema,
/// without the names of schema and prefix.
async fn catalogue(database: &Database, naming: &Naming) -> BTreeSet<String> {
    let client = database.client().await;
    let schema = naming.schema.as_deref().unwrap_or("public");
    let rows = client.query(include_str!("catalogue.sql"), &[&schema]).await.expect("reads");
    let quoted = format!("{schema}.");
    let facts = rows.iter().map(|row| row.get::<_, String>(0));
    facts.map(|fact| fact.replace(&quoted, "").replace(&naming.prefix, "")).collect()
}

fn naming(database: &Database, prefix: &str) -> Naming {
    Naming { schema: Some(database.name().to_owned()), prefix: prefix.to_owned() }
}

#[tokio::test]
async fn a_migrated_schema_equals_a_fresh_one() {
    let all = migrations(Dialect::Postgres);
    let fresh = Database::new("fresh");
    ground(&fresh.url()).await;
    let wanted = catalogue(&fresh, &naming(&fresh, "")).await;
    assert!(wanted.len() > 50, "{wanted:?}");
    for end in 1..all.len() + 1 {
        let migrated = Database::new("migrated");
        let naming = naming(&migrated, "app_");
        let client = migrated.client().await;
        let schema = Schema { client: &client, naming: &naming, clock: &clock() };
        schema.migrate_to(&all[..end]).await.expect("migrates to an older version");
        ground(&migrated.url_with("prefix=app_")).await;
        assert_eq!(catalogue(&migrated, &naming).await, wanted, "from version {end}");
    }
}

#[tokio::test]
async fn many_that_start_at_once_migrate_once() {
    for isolation in ["read-committed", "serializable"] {
        let database = Database::new("at_once");
        let url = database.url_with(&format!("listen=off&isolation={isolation}"));
        futures_util::future::join_all((0..8).map(|_| ground(&url))).await;
        let naming = naming(&database, "");
        assert!(!catalogue(&database, &naming).await.is_empty());
    }
}

#[tokio::test]
async fn a_schema_of_the_future_is_refused() {
    let database = Database::new("future");
    ground(&database.url()).await;
    let client = database.client().await;
    let schema = database.name();
    run(&client, "set search_path = SCHEMA", "", schema).await;
    client
        .batch_execute("insert into durable_schema values (99, 'later', '', 0)")
        .await
        .expect("writes");
    let known = u32::try_from(migrations(Dialect::Postgres).len()).expect("few");
    assert_eq!(refusal(&database.url()).await, StoreError::SchemaNewer { found: 99, known });
    client.batch_execute("delete from durable_schema where version = 99").await.expect("writes");
    client.batch_execute("update durable_schema set checksum = 'x'").await.expect("writes");
    let error = refusal(&database.url()).await;
    assert_eq!(error.code(), Code::STORE_CORRUPT);
    assert!(error.to_string().contains("migration 1 (first)"), "{error}");
}

#[tokio::test]
async fn what_is_half_migrated_goes_on() {
    let database = Database::new("half");
    let naming = naming(&database, "");
    let client = database.client().await;
    let schema = Schema { client: &client, naming: &naming, clock: &clock() };
    let good = Migration { version: 1, name: "good", text: "create table durable_a (x int)" };
    let bad =
        Migration { version: 2, name: "bad", text: "create table durable_b (x int); nonsense" };
    schema.migrate_to(&[good, bad]).await.expect_err("nonsense");
    client.batch_execute("rollback").await.expect("ends the transaction");
    let facts = catalogue(&database, &naming).await;
    assert!(facts.iter().any(|fact| fact.contains("durable_a")), "{facts:?}");
    assert!(!facts.iter().any(|fact| fact.contains("durable_b")), "{facts:?}");
    let repaired = Migration { text: "create table durable_b (x int)", ..bad };
    schema.migrate_to(&[good, repaired]).await.expect("goes on");
    schema.migrate_to(&[good, repaired]).await.expect("finds everything done");
    let facts = catalogue(&database, &naming).await;
    assert!(facts.iter().any(|fact| fact.contains("durable_b")), "{facts:?}");
}

#[tokio::test]
async fn a_user_who_may_only_write_rows_opens_what_is_there() {
    let database = Database::new("writer");
    ground(&database.url()).await;
    let admin = database.client().await;
    let (schema, role) = (database.name(), format!("{}_role", database.name()));
    let grants = "create role ROLE login password 'x'; grant usage on schema SCHEMA to ROLE;
        grant select, insert, update, delete on all tables in schema SCHEMA to ROLE";
    run(&admin, grants, &role, schema).await;
    let url = url_of(&database.url(), &role, "x");
    ground(&url).await;
    let error = refusal(&url.replace("schema=", "schema=b_")).await;
    assert!(error.to_string().contains("42501"), "{error}");
    assert!(error.to_string().contains("grant"), "{error}");
    run(&admin, "drop owned by ROLE; drop role ROLE", &role, schema).await;
}
