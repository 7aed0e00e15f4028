use super::scene::{Database, ground};
use crate::postgres::sql;
use crate::text::{Dialect, Naming, Sql, Texts, render};

#[tokio::test]
async fn every_statement_fits_the_schema() {
    for prefix in ["", "app_"] {
        let database = Database::new("statements");
        let naming = Naming { schema: Some(database.name().to_owned()), prefix: prefix.to_owned() };
        let url = match prefix {
            "" => database.url(),
            prefix => database.url_with(&["prefix=", prefix].concat()),
        };
        ground(&url).await;
        let client = database.client().await;
        let texts = Texts::new(Dialect::Postgres, &naming);
        for sql in Sql::ALL {
            let prepared = client.prepare(texts.of(*sql)).await;
            prepared.unwrap_or_else(|error| panic!("{sql:?}: {error:?}"));
        }
        for (file, text) in sql::ALL {
            let prepared = client.prepare(&render(text, Dialect::Postgres, &naming)).await;
            prepared.unwrap_or_else(|error| panic!("{file}: {error:?}"));
        }
    }
}
