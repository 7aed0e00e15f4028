//! A cluster of MariaDB nodes that replicate to each other.

use crate::programs::galera;
use crate::supervisor::{Address, Birth, free_port, log_of};
use crate::{Kind, Server, ServerOptions, TestbedError, ask};
use std::time::{Duration, Instant};

/// A node that was away gets what it lacks, or a whole copy.
const SYNCED_MAX: Duration = Duration::from_secs(90);
const STARTS_MAX: usize = 3;

/// What a node says of itself.
const STATE: &str = "SELECT GROUP_CONCAT(variable_value ORDER BY variable_name SEPARATOR ' nodes, ') \
                     FROM information_schema.global_status \
                     WHERE variable_name IN ('wsrep_cluster_size', 'wsrep_local_state_comment')";

/// A Galera cluster. Dropping it stops all nodes and removes their data.
#[derive(Debug)]
pub struct Galera {
    nodes: Vec<Server>,
}

impl Galera {
    /// Starts so many nodes, one after the other, and returns when all are part of the cluster.
    /// They are called `n1`, `n2` and so on, and have the same users.
    ///
    /// # Errors
    ///
    /// If Galera or rsync is not installed, or a node does not start.
    pub fn start(nodes: usize, options: &ServerOptions) -> Result<Galera, TestbedError> {
        let mut tries = 1;
        loop {
            match Galera::start_once(nodes, options) {
                // Somebody else may have taken one of the ports that the nodes have among themselves.
                Err(TestbedError::NotStarted { .. } | TestbedError::NotSynced { .. })
                    if tries < STARTS_MAX =>
                {
                    tries += 1;
                }
                answer => return answer,
            }
        }
    }

    fn start_once(nodes: usize, options: &ServerOptions) -> Result<Galera, TestbedError> {
        let library = galera()?.display().to_string();
        let ports = (0..nodes).map(|_| free_port()).collect::<Result<Vec<u16>, _>>()?;
        let places: Vec<String> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        let options = options
            .clone()
            .set("wsrep_on", "ON")
            .set("wsrep_provider", &library)
            .set("wsrep_cluster_address", &format!("gcomm://{}", places.join(",")))
            .set("wsrep_sst_method", "rsync")
            .set("binlog_format", "ROW")
            .set("innodb_autoinc_lock_mode", "2");
        let mut cluster = Galera { nodes: Vec::new() };
        for at in 0..nodes {
            let node = cluster.node(at, &places, &options)?;
            cluster.nodes.push(node);
            cluster.synced(at, at + 1)?;
        }
        Ok(cluster)
    }

    fn node(
        &self,
        at: usize,
        places: &[String],
        options: &ServerOptions,
    ) -> Result<Server, TestbedError> {
        let provider = format!(
            "gmcast.listen_addr=tcp://{};ist.recv_addr=127.0.0.1:{}",
            places[at],
            free_port()?
        );
        // Whoever sends a whole copy cannot be written meanwhile: the last one is written to least.
        let last = places.len();
        let options = options
            .clone()
            .set("wsrep_node_name", &format!("n{}", at + 1))
            .set("wsrep_node_address", &places[at])
            .set("wsrep_sst_receive_address", &format!("127.0.0.1:{}", free_port()?))
            .set("wsrep_sst_donor", &format!("n{last},"))
            .set("wsrep_provider_options", &provider);
        match self.nodes.first() {
            None => {
                let birth = Birth { origin: None, once: Some("--wsrep-new-cluster") };
                Server::born(Kind::Mysql, &options, birth, Address::draw)
            }
            Some(first) => {
                let birth = Birth { origin: Some("the cluster".to_owned()), once: None };
                Server::born(Kind::Mysql, &options, birth, || first.address().draw_another())
            }
        }
    }

    /// The nodes, in the order in which they were started.
    pub fn nodes(&self) -> &[Server] {
        &self.nodes
    }

    /// Starts a node that was killed, and returns when it is a synced part of a cluster of so many.
    ///
    /// # Errors
    ///
    /// If it does not start, or does not catch up.
    pub fn rejoin(&self, at: usize, size: usize) -> Result<(), TestbedError> {
        self.nodes[at].start_again()?;
        self.synced(at, size)
    }

    /// Waits until a node is a synced part of a cluster of so many.
    fn synced(&self, at: usize, size: usize) -> Result<(), TestbedError> {
        let began = Instant::now();
        let wanted = format!("{size} nodes, Synced");
        loop {
            let state = match ask(&self.nodes[at].url(), STATE) {
                Ok(state) => state.unwrap_or_default(),
                Err(error) => error.to_string(),
            };
            if state == wanted {
                return Ok(());
            }
            if began.elapsed() > SYNCED_MAX {
                let (node, seconds) = (format!("n{}", at + 1), SYNCED_MAX.as_secs());
                let log = log_of(self.nodes[at].folder());
                return Err(TestbedError::NotSynced { node, seconds, state, log });
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
