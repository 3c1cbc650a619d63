//! Starting a container that is made, until the executor in it can run actions.
//!
//! The executor blocks on its standard input until it gets its key. Between the start and that
//! moment the kernel is asked what holds it, so that nothing runs inside before the walls were
//! seen. Readiness is a word on its standard output; nobody polls (DK-4).

use std::{fmt::Write as _, time::Duration};

use bollard::{container::LogOutput, models::ContainerInspectResponse};
use futures_util::StreamExt as _;
use tokio::io::AsyncWriteExt as _;

use crate::{
    EngineError, ExitReason,
    door::{DoorError, Doorway, Link},
    ending::Condition,
    engine::{Attached, Engine, EngineKind},
    kernel::{self, Held, HoldError, Wanted},
    pin::Pinned,
    podman,
};

/// How long an executor may take until it is ready. Its first shell reads start-up files, and the
/// disk may be busy.
pub(crate) const START_MAX: Duration = Duration::from_secs(60);

/// What an executor writes once it can run actions.
const READY: &[u8] = b"ready\n";

/// How much of what it says instead is kept.
const COMPLAINTS_BYTES_MAX: usize = 4096;

/// A running executor.
#[derive(Debug)]
pub(crate) struct Awake {
    pub(crate) link: Link,
    pub(crate) key: String,
    /// What the kernel said, when it could be asked.
    pub(crate) held: Option<Held>,
    /// What is weaker than it could be, and was not asked for.
    pub(crate) loose: Vec<String>,
    pub(crate) container: ContainerInspectResponse,
}

/// What it is woken for.
#[derive(Debug)]
pub(crate) struct Wake<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) container: &'a str,
    pub(crate) doorway: &'a Doorway,
    pub(crate) wanted: Wanted,
    /// What is mounted from this machine.
    pub(crate) pinned: &'a [Pinned],
    pub(crate) networks: &'a [String],
}

/// Why there is no running executor.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WakeError {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Door(#[from] DoorError),
    #[error(transparent)]
    Hold(#[from] HoldError),
    #[error("the executor ended before it was ready: {reason}{complaints}")]
    EndedEarly {
        reason: ExitReason,
        complaints: String,
    },
    #[error("the executor was not ready in time")]
    Late,
}

/// Starts a container and waits for its executor.
pub(crate) async fn wake(wake: Wake<'_>) -> Result<Awake, WakeError> {
    let Wake {
        engine, container, ..
    } = wake;
    let streams = engine.attach(container).await?;
    engine.start(container).await?;
    for network in wake.networks {
        engine.join_network(network, container).await?;
    }
    let seen = engine.inspect(container).await?;
    let (held, loose) = look(&wake, &seen)?;
    let key: String = rand::random::<[u8; 32]>()
        .iter()
        .fold(String::new(), |mut text, byte| {
            // Writing to a text does not fail.
            let _ = write!(text, "{byte:02x}");
            text
        });
    let ready = tokio::time::timeout(START_MAX, ready(streams, &key)).await;
    match ready {
        Ok(Ok(())) => {}
        Ok(Err(complaints)) => {
            let found = engine.find(container).await?;
            let reason = match Condition::of(found.as_ref()) {
                Condition::Ended(reason) => reason,
                // It closed its output and still runs: no executor of ours.
                _ => ExitReason::Code(0),
            };
            return Err(WakeError::EndedEarly { reason, complaints });
        }
        Err(_) => return Err(WakeError::Late),
    }
    let link = wake.doorway.open(engine, container, &key)?;
    if let Err(error) = wake.doorway.shut() {
        tracing::warn!(%error, container, "the directory of a socket stays open to its sandbox");
    }
    Ok(Awake {
        link,
        key,
        held,
        loose,
        container: seen,
    })
}

fn look(
    wake: &Wake<'_>,
    seen: &ContainerInspectResponse,
) -> Result<(Option<Held>, Vec<String>), HoldError> {
    let is_podman = wake.engine.kind() == EngineKind::Podman;
    let pid = seen.state.as_ref().and_then(|state| state.pid);
    let held = pid.and_then(|pid| Some((pid, kernel::read(pid, wake.container)?)));
    let Some((pid, held)) = held else {
        return match is_podman {
            true => Err(HoldError::Unseen(podman::ELSEWHERE)),
            false => Ok((None, Vec::new())),
        };
    };
    held.check(wake.wanted)?;
    kernel::check_crashes()?;
    kernel::check_mounts(pid, wake.pinned)?;
    let loose = match is_podman {
        true => podman::check(pid)?,
        false => Vec::new(),
    };
    Ok((Some(held), loose))
}

/// Hands the key over and waits for the word; otherwise what was said instead.
async fn ready(streams: Attached, key: &str) -> Result<(), String> {
    let Attached {
        mut output,
        mut input,
    } = streams;
    let handed_over = async {
        input.write_all(key.as_bytes()).await?;
        // The end of the stream is the end of the key.
        input.shutdown().await
    };
    if let Err(error) = handed_over.await {
        return Err(format!("; its key could not be handed over: {error}"));
    }
    let mut word = Vec::new();
    let mut complaints = Vec::new();
    while let Some(Ok(piece)) = output.next().await {
        match piece {
            LogOutput::StdOut { message } => {
                word.extend_from_slice(&message);
                if word.starts_with(READY) {
                    return Ok(());
                }
                word.truncate(READY.len());
            }
            LogOutput::StdErr { message } => {
                let room = COMPLAINTS_BYTES_MAX.saturating_sub(complaints.len());
                complaints.extend(message.iter().take(room));
            }
            LogOutput::StdIn { .. } | LogOutput::Console { .. } => {}
        }
    }
    let complaints = String::from_utf8_lossy(&complaints);
    Err(match complaints.trim() {
        "" => String::new(),
        text => format!("; it said: {text}"),
    })
}
