//! The options of activities and steps: the same words wherever work is asked for.

use durably_kernel::ActivityOptions;
use std::sync::{Arc, LazyLock};

/// Implements the options on a builder that has `options_mut`.
macro_rules! activity_options {
    ([$($generics:tt)*] $builder:ty) => {
        impl<$($generics)*> $builder {
            /// When to try again.
            pub fn retry(mut self, retry: durably_kernel::Retry) -> Self {
                self.options_mut().retry = Some(retry);
                self
            }

            /// Longest attempt (start-to-close); 10 minutes where none is set.
            pub fn timeout(mut self, timeout: std::time::Duration) -> Self {
                self.options_mut().start_to_close = Some(timeout);
                self
            }

            /// Longest time from scheduling to the end, retries included (schedule-to-close).
            pub fn deadline(mut self, deadline: std::time::Duration) -> Self {
                self.options_mut().schedule_to_close = Some(deadline);
                self
            }

            /// Longest wait for the first worker (schedule-to-start); none where none is set.
            pub fn start_timeout(mut self, timeout: std::time::Duration) -> Self {
                self.options_mut().schedule_to_start = Some(timeout);
                self
            }

            /// Longest silence of an attempt (heartbeat).
            pub fn heartbeat_timeout(mut self, timeout: std::time::Duration) -> Self {
                self.options_mut().heartbeat = Some(timeout);
                self
            }

            /// Higher first; the run's where none is set.
            pub fn priority(mut self, priority: i32) -> Self {
                self.options_mut().priority = Some(priority);
                self
            }

            /// Where it waits for a worker; the run's queue where none is set.
            pub fn queue(mut self, queue: &str) -> Self {
                self.options_mut().queue = Some(queue.into());
                self
            }

            /// What it is limited by, together with others of the same key.
            pub fn key(mut self, key: impl Into<String>) -> Self {
                self.options_mut().key = Some(key.into());
                self
            }

            /// How many workers may die over it before it fails; 3 where none is set.
            pub fn deaths_max(mut self, deaths: u32) -> Self {
                self.options_mut().deaths_max = Some(deaths);
                self
            }
        }
    };
}
pub(crate) use activity_options;

/// The options of work that says nothing: one for all.
pub(crate) fn defaults() -> Arc<ActivityOptions> {
    static DEFAULTS: LazyLock<Arc<ActivityOptions>> = LazyLock::new(Arc::default);
    DEFAULTS.clone()
}
