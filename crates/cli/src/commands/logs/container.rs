//! A log that the Docker Engine keeps.

use futures_util::StreamExt as _;
use zareba_runtime::SandboxId;
use zareba_runtime_docker::{DockerRuntime, LogMode, LogQuery, LogStream};

use super::{DEED, LINE_MAX, print};
use crate::{
    arguments::{LogsArguments, OutputFormat},
    exit::Exit,
    failure::{Failure, OrFail as _},
    sandbox,
};

/// Prints what is there, and what comes if that is wanted.
pub(super) async fn show(
    docker: &DockerRuntime,
    id: &SandboxId,
    arguments: &LogsArguments,
    format: OutputFormat,
) -> Result<Exit, Failure> {
    let query = LogQuery {
        mode: if arguments.follow {
            LogMode::Follow
        } else {
            LogMode::Present
        },
        since: arguments.since,
        tail: arguments.tail,
    };
    let logs = docker.logs(id, query).await;
    let mut logs = logs.map_err(|error| sandbox::failure(&error))?;
    let mut line = Vec::new();
    while let Some(piece) = logs.next().await {
        let piece = piece.or_fail(Exit::Failure, DEED)?;
        // On its standard output the executor says only that it is ready.
        if piece.stream == LogStream::Output {
            continue;
        }
        for byte in piece.bytes {
            line.push(byte);
            if byte == b'\n' || line.len() >= LINE_MAX {
                print(&std::mem::take(&mut line), format)?;
            }
        }
    }
    if !line.is_empty() {
        print(&line, format)?;
    }
    Ok(Exit::Success)
}
