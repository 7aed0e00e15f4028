use super::scene::{Database, ground};
use crate::postgres::sql;
use crate::text::{Dialect, Naming, Sql, Texts, render};
use futures_util::future::{BoxFuture, FutureExt};
use tokio_postgres::Client;
use tokio_postgres::types::Type;

/// Prepares a statement. Where the server cannot tell the type of a parameter it is told one; the
/// session knows it from the value.
fn prepare(client: &Client, text: String, types: Vec<Type>) -> BoxFuture<'_, Result<(), String>> {
    async move {
        let Err(error) = client.prepare_typed(&text, &types).await else { return Ok(()) };
        let answer = error.as_db_error().expect("the server's answer");
        let place = answer.message().rsplit_once('$').map(|(_, place)| place.parse::<usize>());
        let (true, Some(Ok(place))) = (answer.code().code() == "42P08", place) else {
            return Err(answer.to_string());
        };
        let mut last = String::new();
        for guess in [Type::TEXT, Type::INT8, Type::UUID] {
            let mut types = types.clone();
            types.resize(types.len().max(place), Type::UNKNOWN);
            types[place - 1] = guess;
            match prepare(client, text.clone(), types).await {
                Ok(()) => return Ok(()),
                Err(problem) => last = problem,
            }
        }
        Err(last)
    }
    .boxed()
}

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
            let prepared = prepare(&client, texts.of(*sql).to_owned(), vec![]).await;
            prepared.unwrap_or_else(|problem| panic!("{sql:?}: {problem}"));
        }
        for (file, text) in sql::ALL {
            let text = render(text, Dialect::Postgres, &naming);
            let prepared = prepare(&client, text, vec![]).await;
            prepared.unwrap_or_else(|problem| panic!("{file}: {problem}"));
        }
    }
}
