//! Work that takes a while: the client is told that it goes on, and may call it off.

use std::time::Duration;

use rmcp::{RoleServer, model::ProgressNotificationParam, service::RequestContext};
use tokio::time::{Instant, interval_at};

/// How often a client that wants to know is told that something still runs.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// Waits for work; `None` when the client has called it off before.
pub(super) async fn until_cancelled<T>(
    work: &mut (impl Future<Output = T> + Unpin),
    context: &RequestContext<RoleServer>,
) -> Option<T> {
    let token = context.meta.get_progress_token();
    let started = Instant::now();
    let mut ticks = interval_at(started + PROGRESS_EVERY, PROGRESS_EVERY);
    loop {
        tokio::select! {
            biased;
            done = &mut *work => return Some(done),
            () = context.ct.cancelled() => return None,
            _ = ticks.tick(), if token.is_some() => {
                let Some(token) = token.clone() else { continue };
                let seconds = started.elapsed().as_secs();
                let progress = ProgressNotificationParam::new(token, started.elapsed().as_secs_f64())
                    .with_message(format!("it has been running for {seconds} s"));
                // A client that is gone has called it off as well.
                let _ = context.peer.notify_progress(progress).await;
            }
        }
    }
}
