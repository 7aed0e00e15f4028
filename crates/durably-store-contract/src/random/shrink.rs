//! Makes a failing sequence shorter.

use super::command::Command;
use super::{Failure, Scene};
use crate::world::World;

/// So many shorter sequences are tried.
const TRIES_MAX: usize = 400;

/// A shorter sequence that fails in the same way, and how.
pub(super) async fn shrink(
    world: &World,
    mut sequence: Vec<Command>,
    mut failure: Failure,
) -> (Vec<Command>, Failure) {
    let (mut tries, mut chunk) = (0, sequence.len().div_ceil(2));
    while chunk > 0 && tries < TRIES_MAX {
        let mut at = 0;
        let mut shorter = false;
        while at < sequence.len() && tries < TRIES_MAX {
            let mut candidate = sequence.clone();
            candidate.drain(at..(at + chunk).min(sequence.len()));
            tries += 1;
            match replay(world, &candidate).await {
                Some((failed, length)) if failed.kind == failure.kind => {
                    candidate.truncate(length);
                    (sequence, failure, shorter) = (candidate, failed, true);
                }
                _ => at += chunk,
            }
        }
        if !shorter {
            chunk /= 2;
        }
    }
    (sequence, failure)
}

/// Whether and after how many commands a sequence fails.
async fn replay(world: &World, sequence: &[Command]) -> Option<(Failure, usize)> {
    let mut scene = Scene::open(world).await;
    for (at, command) in sequence.iter().enumerate() {
        if let Err(failure) = scene.step(command, true).await {
            return Some((failure, at + 1));
        }
    }
    None
}
