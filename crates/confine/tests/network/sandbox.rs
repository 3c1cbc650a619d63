//! A sandbox with a puppet in it, for the life of one test.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream, UdpSocket},
    os::{fd::AsFd as _, unix::net::UnixStream},
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::process::{Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid};
use zareba_confine::{
    Access, Confined, Entry, EntryKind, Hooks, Identity, LaunchError, MemoryCap, Network,
    Ownership, Permissions, Policy, Program, RestrictError, Root, SeccompProfile, Step,
    cgroup::Entrance,
    drop_all_capabilities, launch,
    network::{Doorway, NetworkSockets},
};

use crate::puppet;

/// Far more than anything takes; only a failure waits that long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Nobody else's, and not one that real sandboxes get.
const OUTSIDE_WHEN_ROOT: u32 = 2_000_200_000;

const CAP: MemoryCap = MemoryCap {
    bytes: 1 << 20,
    inodes: 100,
};

pub(crate) struct Sandbox {
    pub(crate) confined: Confined,
    orders: UnixStream,
    answers: BufReader<UnixStream>,
}

/// With listeners on 80, 443 and 8443.
pub(crate) fn filtered() -> Sandbox {
    let tcp_ports = vec![80, 443, 8443];
    start(Network::Filtered { tcp_ports }).unwrap()
}

pub(crate) fn start(network: Network) -> Result<Sandbox, LaunchError> {
    let (ours, theirs) = UnixStream::pair().unwrap();
    ours.set_read_timeout(Some(PATIENCE)).unwrap();
    let program = Program {
        shown: "puppet",
        run: &|| {
            puppet::obey();
            0
        },
        directory: PathBuf::from("/"),
        descriptors: vec![
            (theirs.as_fd().try_clone_to_owned().unwrap(), 0),
            (theirs.into(), 1),
        ],
    };
    let confined = launch(
        &policy(network),
        program,
        &Hooks {
            birthplace: None,
            groups: &|| Ok(Entrance::default()),
            meanwhile: &|| {},
            confirm: &|_| Ok(()),
            restrict: &restrict,
        },
    )?;
    Ok(Sandbox {
        confined,
        answers: BufReader::new(ours.try_clone().unwrap()),
        orders: ours,
    })
}

fn policy(network: Network) -> Policy {
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    let (uid_outside, gid_outside) = if uid.is_root() {
        (OUTSIDE_WHEN_ROOT, OUTSIDE_WHEN_ROOT)
    } else {
        (uid.as_raw(), gid.as_raw())
    };
    let system = ["/usr", "/bin", "/lib", "/lib64", "/etc"];
    Policy {
        hostname: "sandbox".to_owned(),
        identity: Identity {
            uid_inside: 1000,
            gid_inside: 1000,
            uid_outside,
            gid_outside,
        },
        stage: PathBuf::from("/sys"),
        root: Root::Memory,
        entries: system.into_iter().filter_map(as_outside).collect(),
        memory: CAP,
        network,
    }
}

/// What the test binary is linked to, as it is on this machine.
fn as_outside(path: &str) -> Option<Entry> {
    let path = Path::new(path);
    let kind = if let Ok(target) = path.read_link() {
        EntryKind::Link { target }
    } else if path.is_dir() {
        EntryKind::Bind {
            source: path.to_owned(),
            access: Access::ReadOnly,
            owner: Ownership::AsItIs,
            is_direct: false,
        }
    } else {
        return None;
    };
    let inside = path.to_owned();
    Some(Entry { inside, kind })
}

/// What decides about networks, as in a real sandbox.
fn restrict() -> Result<(), RestrictError> {
    let failed = |step, errno: Option<i32>| RestrictError {
        step,
        errno: errno.unwrap_or(0),
    };
    drop_all_capabilities().map_err(|error| failed(Step::Capabilities, error.raw_os_error()))?;
    let permissions = Permissions {
        debugging: false,
        user_namespaces: false,
        set_id_files: false,
    };
    SeccompProfile::builtin(permissions)
        .and_then(|filter| filter.install())
        .map_err(|error| failed(Step::Seccomp, error.raw_os_error()))
}

impl Sandbox {
    /// Tells the puppet to do something, without waiting for it.
    pub(crate) fn tell(&mut self, order: &str) {
        writeln!(self.orders, "{order}").unwrap();
    }

    pub(crate) fn hear(&mut self) -> String {
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        answer.trim_end().to_owned()
    }

    pub(crate) fn ask(&mut self, order: &str) -> String {
        self.tell(order);
        self.hear()
    }

    pub(crate) fn doorway(&self) -> &Doorway {
        self.confined.doorway.as_ref().unwrap()
    }

    fn sockets(&self) -> &NetworkSockets {
        self.confined.network.as_ref().unwrap()
    }

    /// The listener for the port and the family of an address.
    pub(crate) fn listener(&self, address: SocketAddr) -> TcpListener {
        let found = self
            .sockets()
            .tcp
            .iter()
            .filter(|(port, _)| *port == address.port());
        found
            .map(|(_, socket)| TcpListener::from(socket.try_clone().unwrap()))
            .find(|listener| listener.local_addr().unwrap().is_ipv4() == address.is_ipv4())
            .unwrap()
    }

    /// The socket at which names are asked, for the family of an address; it blocks.
    pub(crate) fn resolver(&self, address: SocketAddr) -> UdpSocket {
        let sockets = self.sockets().udp.iter();
        let socket = sockets
            .map(|socket| UdpSocket::from(socket.try_clone().unwrap()))
            .find(|socket| socket.local_addr().unwrap().is_ipv4() == address.is_ipv4())
            .unwrap();
        socket.set_nonblocking(false).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let _ = pidfd_send_signal(&self.confined.pidfd, Signal::KILL);
        let id = WaitId::PidFd(self.confined.pidfd.as_fd());
        let _ = waitid(id, WaitIdOptions::EXITED);
    }
}

/// All that a peer says until it ends.
pub(crate) fn read_all(mut stream: TcpStream) -> String {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// The first line that a peer says.
pub(crate) fn read_line(stream: TcpStream) -> String {
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}
