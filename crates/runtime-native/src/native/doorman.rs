//! Connections to programs inside, on behalf of whoever may enter the sandbox's directory.
//!
//! The supervisor has the way in ([`Doorway`]) and one thread that must never wait. So it only
//! accepts, and forks off a process for each visitor, which reads what is asked for, answers and
//! is gone. A visitor is somebody outside; what programs inside say is passed on by nobody here.
//!
//! One question per connection: `c` and a port, or `l`. The answer to `c` is `+` and, in a
//! message of its own, a descriptor; the answer to `l` is a JSON list of addresses. `-` and a
//! text is a refusal.

use std::{
    fs, io,
    net::{SocketAddr, TcpStream},
    os::fd::{AsFd as _, OwnedFd},
    path::Path,
    time::Duration,
};

use rustix::{
    io::Errno,
    net::{
        AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept_with,
        bind, connect, listen, recv, send, socket_with, sockopt,
    },
    process::{WaitId, WaitIdOptions, waitid},
};
use zareba_confine::{fork_off, handover, network::Doorway};

/// The socket's name in the sandbox's directory.
const SOCKET: &str = "d";

/// Visitors that may be inside at once; others are turned away.
const VISITORS_MAX: usize = 64;

/// How long a visitor may take to ask, or an answer to come.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long nobody is let in after somebody could not be.
const BACK_OFF: Duration = Duration::from_millis(50);

/// The longest question and answer.
const QUESTION_BYTES: usize = 3;
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// The supervisor's side.
#[derive(Debug)]
pub(super) struct Doorman {
    listener: OwnedFd,
    doorway: Doorway,
    /// The processes that serve them.
    visitors: Vec<OwnedFd>,
}

impl Doorman {
    /// Begins to listen in the sandbox's directory.
    pub(super) fn begin(directory: &Path, doorway: Doorway) -> io::Result<Self> {
        let path = directory.join(SOCKET);
        let _ = fs::remove_file(&path);
        // Who leaves stirs as well, and then nobody need have knocked.
        let listener = socket(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?;
        bind(&listener, &SocketAddrUnix::new(&path)?)?;
        listen(&listener, 16)?;
        Ok(Self {
            listener,
            doorway,
            visitors: Vec::new(),
        })
    }

    /// What to wait on: who knocks, and who leaves.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = &OwnedFd> {
        std::iter::once(&self.listener).chain(&self.visitors)
    }

    /// Lets somebody in who knocks, and forgets those who have left.
    pub(super) fn attend(&mut self) {
        self.visitors.retain(|process| {
            let left = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
            matches!(waitid(WaitId::PidFd(process.as_fd()), left), Ok(None))
        });
        let flags = SocketFlags::CLOEXEC;
        let visitor = match accept_with(&self.listener, flags) {
            Ok(visitor) => visitor,
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => return,
            Err(_) => {
                // Without descriptors it would go on knocking, and we would go on answering.
                std::thread::sleep(BACK_OFF);
                return;
            }
        };
        if self.visitors.len() >= VISITORS_MAX {
            let _ = say(&visitor, "-too many connections are being made at once");
            return;
        }
        // Without a process there is no answer, and the visitor sees the end of the connection.
        let process = fork_off(|| serve(&visitor, &self.doorway));
        self.visitors.extend(process.ok());
    }
}

fn serve(visitor: &OwnedFd, doorway: &Doorway) {
    // Whoever does not ask in time gets no answer.
    let _ = answer(visitor, doorway);
}

fn answer(visitor: &OwnedFd, doorway: &Doorway) -> io::Result<()> {
    be_patient(visitor)?;
    let mut question = [0; QUESTION_BYTES + 1];
    let (length, _) = recv(visitor, &mut question[..], RecvFlags::empty())?;
    match question.get(..length) {
        Some([b'c', high, low]) => match doorway.connect(u16::from_be_bytes([*high, *low])) {
            Ok(stream) => {
                say(visitor, "+")?;
                handover::send(visitor, &[stream.as_fd()])
            }
            Err(error) => say(visitor, &format!("-{error}; {}", error.remedy())),
        },
        Some(b"l") => match doorway.listening() {
            Ok(listening) => {
                let addresses = listening.addresses.iter().map(SocketAddr::to_string);
                let list = serde_json::Value::from_iter(addresses).to_string();
                let fits = list.len() < ANSWER_BYTES_MAX;
                say(
                    visitor,
                    if fits {
                        &list
                    } else {
                        "-too many ports are listened on"
                    },
                )
            }
            Err(error) => say(visitor, &format!("-{error}; {}", error.remedy())),
        },
        _ => say(visitor, "-this is no question"),
    }
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum VisitError {
    /// The supervisor cannot be asked.
    #[error("cannot ask the sandbox's supervisor")]
    Ask(#[from] io::Error),
    /// It was asked and says no.
    #[error("{0}")]
    Refused(String),
}

/// Connects to a program inside. Blocks for some seconds at most.
pub(super) fn connect_inside(directory: &Path, port: u16) -> Result<TcpStream, VisitError> {
    let [high, low] = port.to_be_bytes();
    let (door, _) = ask(directory, &[b'c', high, low])?;
    let mut received = handover::receive(&door)?;
    let gone = || io::Error::from(io::ErrorKind::UnexpectedEof);
    let stream = received.pop().ok_or_else(gone)?;
    Ok(TcpStream::from(stream))
}

/// The addresses that programs inside listen on.
pub(super) fn listening_inside(directory: &Path) -> Result<Vec<SocketAddr>, VisitError> {
    let (_, list) = ask(directory, b"l")?;
    let list: Vec<String> = serde_json::from_str(&list).map_err(io::Error::from)?;
    Ok(list
        .iter()
        .filter_map(|address| address.parse().ok())
        .collect())
}

fn ask(directory: &Path, question: &[u8]) -> Result<(OwnedFd, String), VisitError> {
    let door = socket(SocketFlags::CLOEXEC)?;
    be_patient(&door)?;
    let address = SocketAddrUnix::new(directory.join(SOCKET)).map_err(io::Error::from)?;
    connect(&door, &address).map_err(io::Error::from)?;
    send(&door, question, SendFlags::NOSIGNAL).map_err(io::Error::from)?;
    let mut answer = vec![0; ANSWER_BYTES_MAX];
    let (length, _) =
        recv(&door, answer.as_mut_slice(), RecvFlags::empty()).map_err(io::Error::from)?;
    answer.truncate(length);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    match answer.strip_prefix('-') {
        Some(refusal) => Err(VisitError::Refused(refusal.to_owned())),
        None if answer.is_empty() => Err(VisitError::Refused("the sandbox is ending".to_owned())),
        None => Ok((door, answer)),
    }
}

fn socket(flags: SocketFlags) -> io::Result<OwnedFd> {
    let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    Ok(socket_with(family, kind, flags, None)?)
}

fn be_patient(socket: &OwnedFd) -> io::Result<()> {
    use sockopt::{Timeout, set_socket_timeout};
    set_socket_timeout(socket, Timeout::Recv, Some(PATIENCE))?;
    set_socket_timeout(socket, Timeout::Send, Some(PATIENCE))?;
    Ok(())
}

fn say(visitor: &OwnedFd, text: &str) -> io::Result<()> {
    send(visitor, text.as_bytes(), SendFlags::NOSIGNAL)?;
    Ok(())
}
