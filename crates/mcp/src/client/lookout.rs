//! Looking at a server without waiting for it longer than it is worth.

use std::{sync::Arc, time::Duration};

use tokio::{task::JoinHandle, time::timeout};

use super::Server;

/// How long the one who has a server looked at waits for that, once it was tried before. One that
/// is there answers in this time, and one that hangs costs no more.
const GRACE: Duration = Duration::from_secs(1);

/// A server, and the one task that looks at it. What that finds is among the server's news.
pub(super) struct Lookout {
    pub(super) server: Arc<Server>,
    task: Option<Task>,
    /// It was looked at, whatever came of that.
    is_tried: bool,
}

/// A task that ends with whoever has it.
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Lookout {
    pub(super) fn new(server: Server) -> Self {
        Self {
            server: Arc::new(server),
            task: None,
            is_tried: false,
        }
    }

    /// Has the server looked at where that may bring news. The first time nobody goes on before
    /// that is done, as the tools of a server are expected to be there; later it goes on without
    /// them. The server bounds how long it takes.
    pub(super) async fn look(&mut self) {
        if self.task.as_ref().is_some_and(|it| it.0.is_finished()) {
            (self.task, self.is_tried) = (None, true);
        }
        let is_new = self.task.is_none();
        if is_new {
            if !self.server.is_due() {
                return;
            }
            let server = Arc::clone(&self.server);
            let task = tokio::spawn(async move { server.look().await });
            self.task = Some(Task(task));
        }
        let Some(Task(task)) = &mut self.task else {
            return;
        };
        let is_done = match (self.is_tried, is_new) {
            (false, _) => {
                // Nobody asks how a task ended that has put all it found among the news.
                let _ended = task.await;
                true
            }
            (true, true) => timeout(GRACE, task).await.is_ok(),
            (true, false) => false,
        };
        if is_done {
            (self.task, self.is_tried) = (None, true);
        }
    }

    /// Ends its connection. The next call makes a new one.
    pub(super) async fn close(&self) {
        if let Some(Task(task)) = &self.task {
            task.abort();
        }
        self.server.close().await;
    }
}
