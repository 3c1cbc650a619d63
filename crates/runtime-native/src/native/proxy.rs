//! The process that a sandbox's traffic passes when only some of the world may be reached.
//!
//! It is a child of the supervisor, outside of the sandbox and of its limits, and gets nothing
//! but the sockets that were made inside, the rules, and two files to write to. When it ends,
//! for whatever reason, the sockets are closed and everything is refused (EG-9).

use std::{
    io,
    os::fd::{AsRawFd as _, OwnedFd},
    path::Path,
    process::{Child, Command, Stdio},
};

use rustix::io::{FdFlags, fcntl_setfd};
use zareba_confine::network::NetworkSockets;
use zareba_egress::Policy;

/// Where decisions are written, in the sandbox's directory.
pub(crate) const DECISIONS: &str = "egress.jsonl";
/// Where their numbers are.
pub(crate) const COUNTERS: &str = "egress.json";

/// A running proxy, which ends with this value.
#[derive(Debug)]
pub(super) struct Proxy(Child);

impl Proxy {
    /// Starts it. The calling process must have a single thread: for a moment its descriptors
    /// are inherited by whatever is started.
    pub(super) fn start(
        directory: &Path,
        sockets: NetworkSockets,
        policy: &Policy,
    ) -> io::Result<Self> {
        let mut command = Command::new("/proc/self/exe");
        command
            .arg("egress")
            .arg("--decisions")
            .arg(directory.join(DECISIONS))
            .arg("--counters")
            .arg(directory.join(COUNTERS))
            .arg("--policy")
            .arg(serde_json::to_string(policy)?);
        for (_, socket) in &sockets.tcp {
            hand_over(&mut command, "--tcp-fd", socket)?;
        }
        for socket in &sockets.udp {
            hand_over(&mut command, "--udp-fd", socket)?;
        }
        let child = command
            // Its end tells the proxy of ours.
            .stdin(Stdio::piped())
            // Ours says that the executor is ready.
            .stdout(Stdio::null())
            .current_dir("/")
            .env_clear()
            .spawn()?;
        Ok(Self(child))
    }
}

fn hand_over(command: &mut Command, flag: &str, socket: &OwnedFd) -> io::Result<()> {
    fcntl_setfd(socket, FdFlags::empty())?;
    command.arg(flag).arg(socket.as_raw_fd().to_string());
    Ok(())
}

/// It has nothing to put in order, and is not waited for politely.
impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
