use super::scene::{client, database, ground};
use crate::migrate::migrations;
use crate::mysql::template::Template;
use crate::text::{Dialect, Naming, Sql, Texts};
use mysql_async::prelude::Queryable;

/// What MariaDB has and MySQL 8 has not, or the other way round, and why it is not to be used.
const FOREIGN: [(&str, &str); 23] = [
    ("returning", "MySQL has no RETURNING"),
    ("nextval", "MySQL has no sequences"),
    ("create sequence", "MySQL has no sequences"),
    ("json_value(", "MySQL 8.0.21 and later only"),
    ("json_query", "MariaDB only"),
    ("json_exists", "MariaDB only"),
    ("json_detailed", "MariaDB only"),
    ("json_compact", "MariaDB only"),
    ("set statement", "MariaDB only"),
    ("nopad", "a collation of MariaDB"),
    ("0900", "a collation of MySQL"),
    ("as new on duplicate", "MariaDB has no alias for the new row: values(column)"),
    ("lateral", "MariaDB has none"),
    ("values row(", "MariaDB writes table values in another way"),
    ("for update of", "MariaDB has none"),
    ("for share", "MariaDB has none"),
    ("bin_to_uuid", "MySQL only"),
    ("uuid_to_bin", "MySQL only"),
    ("create or replace table", "MariaDB only, and it drops what is there"),
    ("add column if not exists", "MariaDB only"),
    ("create index if not exists", "MariaDB only"),
    (" rank ", "a reserved word of MySQL 8"),
    (" except ", "MySQL 8.0.31 and later only"),
];

fn check(name: &str, text: &str) {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("--"));
    let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
    let text = words.join(" ").to_lowercase();
    for (word, why) in FOREIGN {
        assert!(!text.contains(word), "{name} has {word:?}: {why}");
    }
    // The driver takes this for the name of a parameter.
    let mut colons = text.match_indices(':');
    assert!(!colons.any(|(at, _)| text[at + 1..].starts_with(char::is_alphabetic)), "{name}");
}

#[test]
fn nothing_is_said_that_one_of_the_servers_does_not_understand() {
    for sql in Sql::ALL {
        check(&format!("{sql:?}"), sql.text(Dialect::Mysql));
    }
    for migration in migrations(Dialect::Mysql) {
        check(migration.name, migration.text);
    }
}

#[tokio::test]
async fn every_statement_is_understood() {
    let database = database("prepare");
    let prefix = Naming { schema: None, prefix: "p_".to_owned() };
    for (params, naming) in [("", Naming::default()), ("?prefix=p_", prefix)] {
        ground(&[database.url(), params].concat()).await;
        let texts = Texts::new(Dialect::Mysql, &naming);
        let mut conn = client(database.url()).await;
        conn.query_drop("set names binary").await.expect("set");
        for sql in Sql::ALL {
            let template = Template::parse(texts.of(*sql)).expect("a statement");
            for size in [1, 2, 4] {
                let text = template.text(size);
                let prepared = conn.prep(text.as_str()).await;
                let statement = prepared.unwrap_or_else(|error| panic!("{sql:?}: {error}\n{text}"));
                conn.close(statement).await.expect("closed");
            }
        }
    }
}
