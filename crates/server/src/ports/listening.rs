//! Which ports programs in a sandbox listen on, as the kernel there says.

use std::{collections::BTreeSet, time::Duration};

use zareba_runtime::{RuntimeError, Sandbox as _};
use zareba_session::{AdmittedSandbox, ProgramPurpose};
use zareba_wire::program::{ProgramEvent, ProgramLine, ProgramRequest};

/// How long the sandbox may take to tell.
const PATIENCE: Duration = Duration::from_secs(5);
/// What it may tell, at the most; a line has 150 bytes.
const TABLE_BYTES_MAX: usize = 1024 * 1024;
/// Ports that are told, at the most.
const PORTS_MAX: usize = 1000;
/// The kernel's number for a socket that listens.
const LISTENING: &str = "0A";

/// The ports, or `None` when that cannot be found out.
///
/// # Errors
/// When the guard denies it.
pub(super) async fn ports(
    sandbox: &AdmittedSandbox,
) -> Result<Option<BTreeSet<u16>>, RuntimeError> {
    let table = tokio::time::timeout(PATIENCE, table(sandbox)).await;
    match table {
        Ok(Ok(table)) => Ok(table.map(|table| parse(&table))),
        Ok(Err(error @ RuntimeError::Denied { .. })) => Err(error),
        Ok(Err(_)) | Err(_) => Ok(None),
    }
}

/// The tables are read by a program inside, since they show whoever reads them its own network.
async fn table(sandbox: &AdmittedSandbox) -> Result<Option<String>, RuntimeError> {
    let words = ["cat", "/proc/net/tcp", "/proc/net/tcp6"].map(str::to_owned);
    let request = ProgramRequest::new(ProgramLine::Argv(words.into()));
    let sandbox = sandbox.with_purpose(ProgramPurpose::PortTable);
    let program = sandbox.start_program(request).await?;
    let (_input, mut events) = program.split();
    let mut table = Vec::new();
    while let Some(event) = events.next().await {
        match event {
            ProgramEvent::Stdout(bytes) => table.extend_from_slice(&bytes),
            ProgramEvent::Stderr(_) => {}
            // The table for the newer protocol may be missing.
            ProgramEvent::Exit(_) => break,
            ProgramEvent::Error(_) => return Ok(None),
        }
        if table.len() > TABLE_BYTES_MAX {
            break;
        }
    }
    Ok(Some(String::from_utf8_lossy(&table).into_owned()))
}

/// Lines are `N: ADDRESS:PORT REMOTE:PORT STATE …`, in hexadecimal. Whatever is not is skipped:
/// anybody may have written it (G-1).
fn parse(table: &str) -> BTreeSet<u16> {
    let ports = table.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace().skip(1);
        let (local, _remote, state) = (words.next()?, words.next()?, words.next()?);
        if state != LISTENING {
            return None;
        }
        let (_, port) = local.rsplit_once(':')?;
        u16::from_str_radix(port, 16).ok().filter(|port| *port > 0)
    });
    let mut found = BTreeSet::new();
    for port in ports {
        if found.len() == PORTS_MAX {
            break;
        }
        found.insert(port);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sockets_that_listen_are_found() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when\n\
             0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000\n\
             1: 0100007F:0050 0100007F:1F90 01 00000000:00000000 00:00000000\n\
             0: 00000000000000000000000000000000:0BB8 0000:0000 0A 0\n\
             2: 0100007F:0000 00000000:0000 0A\n\
             garbage\n3: x 0A 0A\n4: :zz y 0A\n";
        assert_eq!(parse(table), BTreeSet::from([8080, 3000]));
    }
}
