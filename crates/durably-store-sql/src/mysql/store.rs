//! Where the commands get their sessions.

use crate::error::Trouble;
use crate::mysql::open::Ground;
use crate::mysql::session::MySession;
use crate::postgres::home::Home;
use crate::store::{Purpose, Server};
use durably_store::Gathered;
use std::time::Duration;

impl Server for Ground {
    type Session = MySession;

    fn kind(&self) -> &'static str {
        "mysql"
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

    async fn session(&self, purpose: Purpose) -> Result<MySession, Trouble> {
        match purpose {
            Purpose::Work => self.work.session().await,
            Purpose::People => self.read.session().await,
        }
    }

    /// The server cannot tell other processes; they ask from time to time.
    fn tell(&self, _: &Gathered) {}
}
