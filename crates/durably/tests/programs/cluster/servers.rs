//! The clusters: who is written to, who takes its place, and how the killed one comes back.

use durably_testbed::{Database, Galera, Server, ServerOptions, ask, execute};
use std::time::{Duration, Instant};

const WAIT_MAX: Duration = Duration::from_secs(60);

/// The nodes of a Galera cluster.
const NODES: usize = 3;
/// How many transactions a node has sent to the others.
const SENT: &str = "select variable_value from information_schema.global_status \
                    where variable_name = 'wsrep_replicated'";

enum Kind {
    /// A primary and its standby, whichever is which.
    Postgres(Box<[Server; 2]>, Replication),
    Galera(Galera),
}

/// Whether a commit waits for the standby.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Replication {
    Synchronous,
    /// It does not, and the standby is behind when the primary is killed.
    Behind,
}

/// The servers of a cluster.
pub(crate) struct Servers {
    kind: Kind,
    /// A place of their own for the tables.
    database: Database,
    /// The one that is written to.
    writer: usize,
    /// The one that was killed.
    killed: usize,
}

impl Servers {
    pub(crate) fn postgres(replication: Replication) -> Servers {
        let options = ServerOptions::default();
        let primary = Server::postgres(&options).unwrap();
        let standby = Server::standby_of(&primary, &options).unwrap();
        if replication == Replication::Synchronous {
            wait_for_standby(&primary);
        }
        let database = Database::on(&primary.url(), "cluster").unwrap();
        let kind = Kind::Postgres(Box::new([primary, standby]), replication);
        Servers { kind, database, writer: 0, killed: 0 }
    }

    pub(crate) fn galera() -> Servers {
        let galera = Galera::start(NODES, &ServerOptions::default()).unwrap();
        let database = Database::on(&galera.nodes()[0].url(), "cluster").unwrap();
        Servers { kind: Kind::Galera(galera), database, writer: 0, killed: 0 }
    }

    fn all(&self) -> &[Server] {
        match &self.kind {
            Kind::Postgres(servers, _) => servers.as_slice(),
            Kind::Galera(galera) => galera.nodes(),
        }
    }

    fn name(&self, at: usize) -> String {
        match &self.kind {
            Kind::Postgres(..) => format!("PostgreSQL {}", at + 1),
            Kind::Galera(_) => format!("node n{}", at + 1),
        }
    }

    pub(crate) fn names(&self) -> String {
        let names: Vec<String> = (0..self.all().len()).map(|at| self.name(at)).collect();
        names.join(", ")
    }

    /// Who is written to.
    pub(crate) fn writer(&self) -> String {
        self.name(self.writer)
    }

    /// What a store takes: all of them, in order.
    pub(crate) fn url(&self) -> String {
        let place = |server: &Server| format!("127.0.0.1:{}", server.port());
        let places: Vec<String> = self.all().iter().map(place).collect();
        self.database.url().replacen(&places[0], &places.join(","), 1)
    }

    /// Whether a failover loses what was acknowledged.
    pub(crate) fn lose(&self) -> bool {
        matches!(self.kind, Kind::Postgres(_, Replication::Behind))
    }

    /// Lets a standby that nobody waits for fall behind.
    pub(crate) fn fall_behind(&self, stretch: Duration) -> Option<String> {
        let Kind::Postgres(servers, Replication::Behind) = &self.kind else { return None };
        let standby = (self.writer + 1) % servers.len();
        let hear_nothing = "alter system set primary_conninfo = ''";
        execute(&servers[standby].url(), &[hear_nothing, "select pg_reload_conf()"]).unwrap();
        std::thread::sleep(stretch); // tidy: so much load is lost
        Some(format!("{} has heard nothing for {stretch:?}", self.name(standby)))
    }

    /// Kills the one that is written to. A standby is promoted; nodes know by themselves.
    pub(crate) fn fail_over(&mut self) {
        self.killed = self.writer;
        self.all()[self.killed].kill().unwrap();
        self.writer = (self.writer + 1) % self.all().len();
        if let Kind::Postgres(servers, _) = &self.kind {
            let promoted = &servers[self.writer];
            assert_eq!(ask(&promoted.url(), "select pg_promote()").unwrap().as_deref(), Some("t"));
        }
    }

    /// The killed one comes back, and catches up.
    pub(crate) fn rejoin(&mut self) -> String {
        let began = Instant::now();
        let name = self.name(self.killed);
        match &self.kind {
            Kind::Postgres(servers, _) => {
                let (primary, standby) = (&servers[self.writer], &servers[self.killed]);
                standby.follow(primary).unwrap();
                wait_for_standby(primary);
                let recovery = ask(&standby.url(), "select pg_is_in_recovery()").unwrap();
                assert_eq!(recovery.as_deref(), Some("t"), "the old primary must not be written");
            }
            Kind::Galera(galera) => galera.rejoin(self.killed, NODES).unwrap(),
        }
        format!("{name} is back, as one that follows, and in sync after {:.1?}", began.elapsed())
    }

    /// Looks for a while at who is written to.
    pub(crate) fn watch(&mut self, stretch: Duration) -> Option<String> {
        let Kind::Galera(galera) = &self.kind else { return None };
        let sent = || -> Vec<u64> {
            let ask = |node: &Server| ask(&node.url(), SENT).unwrap().unwrap().parse().unwrap();
            galera.nodes().iter().map(ask).collect()
        };
        let before = sent();
        std::thread::sleep(stretch); // tidy: what is done in a time is counted
        let written: Vec<u64> =
            sent().iter().zip(before).map(|(after, before)| after - before).collect();
        let most = written.iter().max().unwrap();
        self.writer = written.iter().position(|sent| sent == most).unwrap();
        let others = written.iter().filter(|sent| **sent > 0).count() - 1;
        assert_eq!(others, 0, "several nodes are written to: {written:?}");
        Some(format!("transactions on each node in the {stretch:?} since: {written:?}"))
    }
}

/// From now on a commit waits for the standby.
fn wait_for_standby(primary: &Server) {
    execute(
        &primary.url(),
        &["alter system set synchronous_standby_names = '*'", "select pg_reload_conf()"],
    )
    .unwrap();
    let began = Instant::now();
    let state = "select sync_state from pg_stat_replication where state = 'streaming'";
    while ask(&primary.url(), state).unwrap().as_deref() != Some("sync") {
        assert!(began.elapsed() < WAIT_MAX, "the standby does not follow");
        std::thread::sleep(Duration::from_millis(20)); // tidy: polls for a condition
    }
}
