//! Makes a failing sequence shorter.

use super::command::Command;
use super::{Failure, Scene};
use crate::world::World;
use durably_kernel::CommitId;
use std::collections::BTreeSet;

/// So many shorter sequences are tried.
const TRIES_MAX: usize = 400;

/// A shorter sequence that fails in the same way, and how.
pub(super) async fn shrink(
    world: &World,
    sequence: Vec<Command>,
    failure: Failure,
    made: BTreeSet<CommitId>,
) -> (Vec<Command>, Failure) {
    let mut shortest = Shortest { sequence, failure, made, tries: 0 };
    let mut chunk = shortest.sequence.len().div_ceil(2);
    while chunk > 0 && shortest.tries < TRIES_MAX {
        let mut at = 0;
        let mut shorter = false;
        while at < shortest.sequence.len() {
            let mut candidate = shortest.sequence.clone();
            candidate.drain(at..(at + chunk).min(candidate.len()));
            match shortest.improve(world, candidate).await {
                true => shorter = true,
                false => at += chunk,
            }
        }
        if !shorter {
            chunk /= 2;
        }
    }
    shortest.thin_batches(world).await;
    (shortest.sequence, shortest.failure)
}

struct Shortest {
    sequence: Vec<Command>,
    failure: Failure,
    /// Commits that the whole sequence made.
    made: BTreeSet<CommitId>,
    tries: usize,
}

impl Shortest {
    /// Whether a shorter sequence fails in the same way; if so, it is the shortest now.
    async fn improve(&mut self, world: &World, mut candidate: Vec<Command>) -> bool {
        if self.tries >= TRIES_MAX {
            return false;
        }
        self.tries += 1;
        match self.replay(world, &candidate).await {
            Some((failed, length)) if failed.kind == self.failure.kind => {
                candidate.truncate(length);
                (self.sequence, self.failure) = (candidate, failed);
                true
            }
            _ => false,
        }
    }

    /// Whether and after how many commands a sequence fails.
    ///
    /// What a decided run looks like means nothing once a commit is made that was refused before:
    /// others were decided without it.
    async fn replay(&self, world: &World, sequence: &[Command]) -> Option<(Failure, usize)> {
        let mut scene = Scene::open(world).await;
        for (at, command) in sequence.iter().enumerate() {
            if let Err(failure) = scene.step(command, true).await {
                return Some((failure, at + 1));
            }
            if self.failure.of_runs && !scene.made.is_subset(&self.made) {
                return None;
            }
        }
        None
    }

    /// Takes members out of batches.
    async fn thin_batches(&mut self, world: &World) {
        let mut at = 0;
        while at < self.sequence.len() {
            let mut member = 0;
            while member < batch_len(&self.sequence[at]) && batch_len(&self.sequence[at]) > 1 {
                let mut candidate = self.sequence.clone();
                match &mut candidate[at] {
                    Command::Commit(_, batch) => drop(batch.remove(member)),
                    Command::Deliver(batch) => drop(batch.remove(member)),
                    Command::HandBack(_, batch) => drop(batch.remove(member)),
                    _ => {}
                }
                if !self.improve(world, candidate).await {
                    member += 1;
                }
            }
            at += 1;
        }
    }
}

fn batch_len(command: &Command) -> usize {
    match command {
        Command::Commit(_, batch) => batch.len(),
        Command::Deliver(batch) => batch.len(),
        Command::HandBack(_, batch) => batch.len(),
        _ => 0,
    }
}
