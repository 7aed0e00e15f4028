//! Where the commands get their sessions, and whom they tell.

use crate::error::Trouble;
use crate::postgres::home::Home;
use crate::postgres::open::Ground;
use crate::postgres::session::PgSession;
use crate::store::{Purpose, Server};
use durably_store::Gathered;
use std::time::Duration;

impl Server for Ground {
    type Session = PgSession;

    fn kind(&self) -> &'static str {
        "postgres"
    }

    fn name(&self) -> &str {
        &self.store
    }

    fn claim_margin(&self) -> Duration {
        self.claim_margin
    }

    fn home(&self) -> &Home {
        &self.home
    }

    async fn session(&self, purpose: Purpose) -> Result<PgSession, Trouble> {
        match purpose {
            Purpose::Work => self.work.session().await,
            Purpose::People => self.read.session().await,
        }
    }

    fn tell(&self, hints: &Gathered) {
        if let Some(herald) = &self.herald {
            herald.pass_on(hints);
        }
    }
}
