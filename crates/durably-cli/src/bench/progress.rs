//! A sign of life on a terminal.

use super::Workload;
use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::Duration;

/// Shows on a terminal that something goes on.
pub(super) struct Progress(ProgressBar);

impl Progress {
    pub(super) fn new() -> Progress {
        let target = match std::io::stderr().is_terminal() {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(None, target);
        bar.set_style(ProgressStyle::default_spinner());
        bar.enable_steady_tick(Duration::from_millis(200));
        Progress(bar)
    }

    pub(super) fn begin(&self, workload: Workload) {
        let name = workload.to_possible_value().map(|value| value.get_name().to_owned());
        self.0.set_message(format!("{}: warming up", name.unwrap_or_default()));
    }

    pub(super) fn note(&self, what: String) {
        self.0.set_message(what);
    }

    pub(super) fn advance(&self, what: String) {
        self.0.inc(1);
        self.0.set_message(format!("{what}: {} passes", self.0.position()));
    }

    pub(super) fn clear(&self) {
        self.0.reset();
        self.0.set_message("");
    }
}
