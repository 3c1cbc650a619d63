//! The program inside: one order per line of its standard input, one answer per line of its
//! standard output. What it opens stays open until it ends.

use std::{
    io::{self, BufRead as _, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream, UdpSocket},
    os::fd::OwnedFd,
    process::Command,
};

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, socket_with, sockopt,
};

use crate::sandbox::PATIENCE;

/// What an answer of success begins with.
pub(crate) const DONE: &str = "done";

/// `RTM_DELROUTE` for `local 0.0.0.0/0` in the table `local`, spelt out in full so that somebody
/// with the right to do it would succeed.
const DELETE_EVERYTHING: [u8; 28] = {
    let mut message = [0; 28];
    (message[0], message[4], message[6]) = (28, 25, 1 | 4);
    // Of the family 2, in table 255, of any protocol and scope 255 and 2, a local one.
    (message[16], message[20], message[22], message[23]) = (2, 255, 255, 2);
    message
};

#[derive(Default)]
struct Held {
    listeners: Vec<TcpListener>,
    streams: Vec<TcpStream>,
    sockets: Vec<OwnedFd>,
}

pub(crate) fn obey() {
    let mut held = Held::default();
    for line in io::stdin().lock().lines() {
        let line = line.unwrap();
        let (order, object) = line.split_once(' ').unwrap_or((&line, ""));
        let answer = match held.carry_out(order, object) {
            Ok(text) => format!("{DONE} {text}"),
            Err(error) => match error.raw_os_error() {
                Some(errno) => format!("errno {errno}"),
                None => format!("{error}"),
            },
        };
        println!("{}", answer.trim_end());
    }
}

impl Held {
    fn carry_out(&mut self, order: &str, object: &str) -> io::Result<String> {
        let address = || object.parse::<SocketAddr>().map_err(io::Error::other);
        match order {
            "connect" => self.connect(address()?),
            "ask" => ask(address()?),
            "listen" => {
                self.listeners.push(TcpListener::bind(address()?)?);
                Ok(String::new())
            }
            "listen-beside" => self.listen_beside(address()?),
            "greet" => self.greet(),
            "crowd" => self.crowd(address()?),
            "descriptors" => descriptors(),
            "delete-routes" => delete_routes(),
            "look-up" => look_up(object),
            _ => Err(io::Error::other(format!("what is `{order}`?"))),
        }
    }

    /// Says at the other end whom it wanted.
    fn connect(&mut self, address: SocketAddr) -> io::Result<String> {
        let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.write_all(format!("{address}\n").as_bytes())?;
        let own = stream.local_addr()?.ip().to_string();
        self.streams.push(stream);
        Ok(own)
    }

    /// Takes a port by all means that a program without rights has.
    fn listen_beside(&mut self, address: SocketAddr) -> io::Result<String> {
        let socket = socket(address, SocketFlags::empty())?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        sockopt::set_socket_reuseport(&socket, true)?;
        rustix::net::bind(&socket, &address)?;
        rustix::net::listen(&socket, 1)?;
        self.sockets.push(socket);
        Ok(String::new())
    }

    /// Accepts at the last listener, and says something.
    fn greet(&mut self) -> io::Result<String> {
        let listener = self.listeners.last().unwrap();
        let (mut stream, from) = listener.accept()?;
        stream.write_all(b"from inside")?;
        Ok(from.ip().to_string())
    }

    /// Listens with the shortest queue there is, fills it, and accepts nobody.
    fn crowd(&mut self, address: SocketAddr) -> io::Result<String> {
        let listener = socket(address, SocketFlags::empty())?;
        rustix::net::bind(&listener, &address)?;
        rustix::net::listen(&listener, 0)?;
        self.sockets.push(listener);
        for _ in 0..4 {
            let client = socket(address, SocketFlags::NONBLOCK)?;
            let _ = rustix::net::connect(&client, &address);
            self.sockets.push(client);
        }
        Ok(String::new())
    }
}

fn socket(address: SocketAddr, flags: SocketFlags) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    };
    let flags = flags | SocketFlags::CLOEXEC;
    Ok(socket_with(family, SocketType::STREAM, flags, None)?)
}

/// One question by UDP; an answer from anywhere else than from there is not heard.
fn ask(address: SocketAddr) -> io::Result<String> {
    let any = if address.is_ipv4() {
        "0.0.0.0:0"
    } else {
        "[::]:0"
    };
    let socket = UdpSocket::bind(any)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.connect(address)?;
    socket.send(b"question")?;
    let mut answer = [0; 64];
    let length = socket.recv(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer[..length]).into_owned())
}

/// What is open here besides the standard three: the one that lists them.
fn descriptors() -> io::Result<String> {
    let mut open = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let entry = entry?;
        let target = std::fs::read_link(entry.path())?;
        open.push(format!(
            "{}={}",
            entry.file_name().display(),
            target.display()
        ));
    }
    open.sort();
    Ok(open.join(" "))
}

fn delete_routes() -> io::Result<String> {
    let netlink = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        None,
    )?;
    rustix::net::send(&netlink, &DELETE_EVERYTHING, SendFlags::empty())?;
    let mut answer = [0; 256];
    rustix::net::recv(&netlink, &mut answer, RecvFlags::DONTWAIT)?;
    match i32::from_ne_bytes(*answer[16..].first_chunk().unwrap()) {
        0 => Ok(String::new()),
        code => Err(io::Error::from_raw_os_error(-code)),
    }
}

/// By `getent`, which asks with `AI_ADDRCONFIG`.
fn look_up(name: &str) -> io::Result<String> {
    let mut found = Command::new("/usr/bin/getent")
        .args(["ahostsv4", name])
        .stdout(std::process::Stdio::piped())
        .spawn()?;
    let mut text = String::new();
    found.stdout.take().unwrap().read_to_string(&mut text)?;
    let is_found = found.wait()?.success();
    Ok(is_found.to_string())
}
