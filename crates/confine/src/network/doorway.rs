//! Reaching a program inside from outside, without opening the sandbox's network.
//!
//! A process is forked off that joins the sandbox's namespaces, makes two unconnected sockets
//! there, sends them out and is gone. They stay of that namespace, so connecting them outside
//! reaches the sandbox's own loopback interface. The process is no more than a dozen system
//! calls; what a program inside says is never seen by anything that has joined its namespaces.

use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream},
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{CWD, Mode, OFlags, openat},
    io::Errno,
    net::{AddressFamily, SocketFlags, SocketType, socket_with, sockopt},
    process::{WaitId, WaitIdOptions, waitid},
    thread::{LinkNameSpaceType, move_into_link_name_space},
};

use super::{listeners::DNS_PORT, listening::Listening};
use crate::{
    handover,
    policy::Network,
    sys::{self, Side},
};

/// How long a program inside may let us wait until it is connected. A port that nobody listens
/// on is refused at once; only a program that does not accept what it listens for takes longer.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);

/// A way to the programs of one sandbox. It keeps the sandbox's namespaces, not its processes.
#[derive(Debug)]
pub struct Doorway {
    user: OwnedFd,
    network: OwnedFd,
    /// The directory of the first process in `/proc`.
    process: OwnedFd,
    /// Ports that [`NetworkSockets`](super::NetworkSockets) listen on, and not programs inside.
    ours: Vec<u16>,
}

/// Why a program inside was not reached.
#[derive(Debug, thiserror::Error)]
pub enum DoorwayError {
    /// No program listens there; one that was just started may do so soon.
    #[error("nothing listens on port {port} inside the sandbox")]
    Refused {
        /// Which port.
        port: u16,
    },
    /// A program listens and does not accept.
    #[error(
        "the program on port {port} inside the sandbox accepted no connection within {waited:?}"
    )]
    TimedOut {
        /// Which port.
        port: u16,
        /// How long was waited.
        waited: Duration,
    },
    /// The connection failed in another way.
    #[error("cannot connect to port {port} inside the sandbox")]
    Connect {
        /// Which port.
        port: u16,
        /// What the system said.
        source: io::Error,
    },
    /// No socket could be made there.
    #[error("cannot enter the sandbox's network")]
    Enter {
        /// What the system said.
        source: io::Error,
    },
    /// The kernel's list could not be read.
    #[error("cannot read who listens inside the sandbox")]
    List {
        /// What the system said.
        source: io::Error,
    },
}

impl DoorwayError {
    /// What a person can do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Refused { .. } => {
                "start a program inside that listens on 127.0.0.1 or ::1 at this port, and try again"
            }
            Self::TimedOut { .. } | Self::Connect { .. } => {
                "look at the program inside: it listens, but does not take connections"
            }
            Self::Enter { .. } => {
                "in a container, its own filter must allow `setns`; otherwise see that processes and descriptors \
                 are not at their limits"
            }
            Self::List { .. } => {
                "see that the sandbox still runs, and that /proc outside is not mounted with `hidepid`"
            }
        }
    }
}

impl Doorway {
    /// Takes hold of a new process's namespaces; `None` when it has no network of its own.
    ///
    /// The process must be a child that has not been waited for, and must not have changed its
    /// user yet: from then on the kernel lets nobody but root look into it.
    pub(crate) fn open(pid: i32, network: &Network) -> io::Result<Option<Self>> {
        let ours = match network {
            Network::Host => return Ok(None),
            Network::None => Vec::new(),
            Network::Filtered { tcp_ports } => [tcp_ports.as_slice(), &[DNS_PORT]].concat(),
        };
        let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let process = openat(CWD, format!("/proc/{pid}"), directory, Mode::empty())?;
        let open = |path: &str| {
            openat(
                &process,
                path,
                OFlags::RDONLY | OFlags::CLOEXEC,
                Mode::empty(),
            )
        };
        Ok(Some(Self {
            user: open("ns/user")?,
            network: open("ns/net")?,
            process,
            ours,
        }))
    }

    /// Connects to a program that listens inside, on 127.0.0.1 or else on ::1. The stream blocks.
    ///
    /// This waits at most two seconds, and only for a program that listens without accepting.
    /// The caller may have several threads.
    ///
    /// # Errors
    /// When nobody listens there (the ports at which a filtered sandbox meets its proxy count as
    /// that), or the sandbox's network cannot be entered.
    pub fn connect(&self, port: u16) -> Result<TcpStream, DoorwayError> {
        if self.ours.contains(&port) {
            return Err(DoorwayError::Refused { port });
        }
        let sockets = self
            .make_sockets()
            .map_err(|source| DoorwayError::Enter { source })?;
        let addresses = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        let deadline = Instant::now() + CONNECT_WITHIN;
        for (socket, address) in sockets.into_iter().zip(addresses) {
            match connect_until(&socket, SocketAddr::new(address, port), deadline) {
                Ok(()) => {
                    return blocking(socket)
                        .map_err(|source| DoorwayError::Connect { port, source });
                }
                // The second is that of a sandbox without IPv6.
                Err(Errno::CONNREFUSED | Errno::ADDRNOTAVAIL) => {}
                Err(Errno::TIMEDOUT) => {
                    return Err(DoorwayError::TimedOut {
                        port,
                        waited: CONNECT_WITHIN,
                    });
                }
                Err(error) => {
                    return Err(DoorwayError::Connect {
                        port,
                        source: error.into(),
                    });
                }
            }
        }
        Err(DoorwayError::Refused { port })
    }

    /// Where programs inside listen, without the ports at which a filtered sandbox meets its
    /// proxy.
    ///
    /// # Errors
    /// When the sandbox has ended, or its table cannot be read.
    pub fn listening(&self) -> Result<Listening, DoorwayError> {
        let mut listening = Listening::default();
        for table in ["net/tcp", "net/tcp6"] {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            let opened = match openat(&self.process, table, flags, Mode::empty()) {
                // Without IPv6 there is no such table.
                Err(Errno::NOENT) if table == "net/tcp6" => continue,
                opened => opened.map_err(io::Error::from),
            };
            opened
                .map(std::fs::File::from)
                .and_then(|file| listening.read(file, |port| self.ours.contains(&port)))
                .map_err(|source| DoorwayError::List { source })?;
        }
        Ok(listening)
    }

    /// Unconnected, non-blocking sockets of the sandbox's network: one for IPv4 and, if it has
    /// that, one for IPv6.
    fn make_sockets(&self) -> io::Result<Vec<OwnedFd>> {
        let (ours, theirs) = handover::pair()?;
        match sys::clone_with(sys::NO_HANDLERS)? {
            Side::Child => {
                // From here on only system calls: a lock may be held by a thread that is not here.
                let sent = self.send_sockets(theirs.as_fd());
                sys::exit_at_once(sent.map_or_else(Errno::raw_os_error, |()| 0))
            }
            Side::Parent { pidfd, .. } => {
                drop(theirs);
                let received = handover::receive(ours);
                let status = rustix::io::retry_on_intr(|| {
                    waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED)
                })?;
                // Its exit status is the error number of what failed.
                match status.and_then(|status| status.exit_status()) {
                    Some(0) => received,
                    Some(errno) => Err(io::Error::from_raw_os_error(errno)),
                    None => Err(io::ErrorKind::BrokenPipe.into()),
                }
            }
        }
    }

    fn send_sockets(&self, channel: BorrowedFd<'_>) -> Result<(), Errno> {
        let network = || {
            let kind = Some(LinkNameSpaceType::Network);
            move_into_link_name_space(self.network.as_fd(), kind)
        };
        // Root of the machine needs no rights of the sandbox; others have them in its user
        // namespace, because it is theirs.
        if network().is_err() {
            move_into_link_name_space(self.user.as_fd(), Some(LinkNameSpaceType::User))?;
            network()?;
        }
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let v4 = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
        let sent = match socket_with(AddressFamily::INET6, SocketType::STREAM, flags, None) {
            Ok(v6) => handover::send(channel, &[v4.as_fd(), v6.as_fd()]),
            Err(_) => handover::send(channel, &[v4.as_fd()]),
        };
        sent.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }
}

fn connect_until(socket: &OwnedFd, address: SocketAddr, deadline: Instant) -> Result<(), Errno> {
    match rustix::net::connect(socket, &address) {
        Err(Errno::INPROGRESS) => {}
        connected => return connected,
    }
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(|_| Errno::INVAL)?;
        let mut sockets = [PollFd::new(socket, PollFlags::OUT)];
        match poll(&mut sockets, Some(&left)) {
            Ok(0) => return Err(Errno::TIMEDOUT),
            Ok(_) => return sockopt::socket_error(socket)?,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}

fn blocking(socket: OwnedFd) -> io::Result<TcpStream> {
    let stream = TcpStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}
