//! Where connections live. Each has a task that reads and writes its socket; were it on the runtime
//! of the user's code, code that blocks would hold up the beats of the process (decision 6).

use std::future::Future;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A thread that reads and writes sockets. It ends, and all connections with it, when this is
/// dropped.
#[derive(Debug)]
pub(crate) struct Home {
    handle: Handle,
    /// Dropped to end the thread.
    _stay: oneshot::Sender<()>,
}

impl Home {
    /// Starts the thread; `name` is what the system shows of it.
    pub(crate) fn start(name: &str) -> std::io::Result<Home> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stay, leave) = oneshot::channel::<()>();
        std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            // Nothing is ever sent: it ends when the other side is dropped.
            let _ = runtime.block_on(leave);
        })?;
        Ok(Home { handle, _stay: stay })
    }

    /// Starts a task there.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.handle.spawn(task)
    }
}
