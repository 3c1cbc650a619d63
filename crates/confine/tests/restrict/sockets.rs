//! Attempts by sockets and terminals.

use std::{
    io::{Read as _, Write as _},
    net::{Ipv6Addr, TcpListener, TcpStream, UdpSocket},
    os::{
        fd::AsRawFd as _,
        unix::net::{UnixListener, UnixStream},
    },
    path::PathBuf,
};

use libc::{
    AF_INET, AF_INET6, AF_NETLINK, AF_UNIX, EACCES, EPERM, SOCK_DGRAM, SOCK_RAW, SOCK_STREAM, c_int,
};
use rustix::pty::OpenptFlags;
use zareba_confine::{PathPolicy, Reach, Ruleset, TcpPorts};

use crate::{
    sys,
    victim::{Case, Control, Outcome},
};

const TIOCSTI: u64 = 0x5412;
const TIOCLINUX: u64 = 0x541c;
const TIOCSETD: u64 = 0x5423;

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = families();
    cases.extend(terminals());
    cases.extend(reach());
    cases
}

fn families() -> Vec<Case> {
    const AF_VSOCK: c_int = 40;
    const AF_ALG: c_int = 38;
    const AF_TIPC: c_int = 30;
    const AF_BLUETOOTH: c_int = 31;
    const KOBJECT_UEVENT: c_int = 15;
    const SOCK_DIAG: c_int = 4;
    const SCTP: c_int = 132;
    vec![
        Case::refused("ns10_vsock_is_refused", EPERM, |_| {
            socket(AF_VSOCK, SOCK_STREAM, 0)
        }),
        Case::refused("ns10_packet_sockets_are_refused", EPERM, |_| {
            socket(libc::AF_PACKET, SOCK_RAW, 0x0300)
        })
        .control(Control::AsRoot),
        Case::refused(
            "ns10_the_old_way_to_packet_sockets_is_refused",
            EPERM,
            |_| {
                const SOCK_PACKET: c_int = 10;
                socket(AF_INET, SOCK_PACKET, 0x0300)
            },
        )
        .control(Control::AsRoot),
        Case::refused("ns10_kernel_cryptography_is_refused", EPERM, |_| {
            socket(AF_ALG, 5, 0)
        }),
        Case::refused("ns10_raw_sockets_are_refused", EPERM, |_| {
            socket(AF_INET, SOCK_RAW, 1)
        })
        .control(Control::AsRoot),
        Case::refused("ns10_sctp_is_refused", EPERM, |_| {
            socket(AF_INET, SOCK_STREAM, SCTP)
        }),
        Case::refused("ns10_bluetooth_is_refused", EPERM, |_| {
            socket(AF_BLUETOOTH, SOCK_RAW, 1)
        }),
        Case::refused("ns10_a_pair_of_tipc_sockets_is_refused", EPERM, |_| {
            let arguments = [AF_TIPC, SOCK_STREAM, 0, 0].map(i64::from);
            Outcome::of(sys::numbers(libc::SYS_socketpair, &arguments))
        }),
        Case::refused("ns10_device_events_by_netlink_are_refused", EPERM, |_| {
            socket(AF_NETLINK, SOCK_DGRAM, KOBJECT_UEVENT)
        }),
        Case::refused("ns10_socket_lists_by_netlink_are_refused", EPERM, |_| {
            socket(AF_NETLINK, SOCK_DGRAM, SOCK_DIAG)
        }),
        Case::refused(
            "ns10_a_family_in_the_upper_half_is_no_way_around",
            EPERM,
            |_| {
                let arguments = [1 << 32 | i64::from(AF_VSOCK), i64::from(SOCK_STREAM), 0];
                Outcome::of(sys::numbers(libc::SYS_socket, &arguments))
            },
        ),
        Case::works("interfaces_can_be_listed_by_netlink", |_| {
            socket(AF_NETLINK, SOCK_RAW, 0)
        }),
        Case::works("sockets_of_the_usual_families_can_be_made", |_| {
            let kinds = [
                (AF_UNIX, SOCK_STREAM),
                (AF_INET, SOCK_STREAM),
                (AF_INET6, SOCK_STREAM),
            ];
            let datagrams = [
                (AF_UNIX, SOCK_DGRAM),
                (AF_INET, SOCK_DGRAM),
                (AF_INET6, SOCK_DGRAM),
            ];
            let made = kinds.into_iter().chain(datagrams).map(|(family, kind)| {
                socket(family, kind | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK, 0)
            });
            made.into_iter()
                .find(|made| *made != Outcome::done(""))
                .unwrap_or(Outcome::done(""))
        }),
    ]
}

fn terminals() -> Vec<Case> {
    vec![
        Case::refused("ns10_typing_into_a_terminal_is_refused", EPERM, |_| {
            type_with(TIOCSTI, 0)
        }),
        Case::refused(
            "ns10_typing_with_the_upper_half_set_is_refused",
            EPERM,
            |_| type_with(TIOCSTI, 1),
        ),
        Case::refused("ns10_pasting_into_a_terminal_is_refused", EPERM, |_| {
            type_with(TIOCLINUX, 0)
        }),
        Case::refused("ns10_changing_a_line_discipline_is_refused", EPERM, |_| {
            type_with(TIOCSETD, 0)
        }),
        Case::works("a_terminal_can_be_made_and_asked_for_its_size", |_| {
            let opened = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY);
            Outcome::of(opened.and_then(rustix::termios::tcgetwinsize))
        }),
    ]
}

fn reach() -> Vec<Case> {
    vec![
        Case::refused(
            "ns11_an_abstract_socket_outside_is_refused",
            EPERM,
            |setting| Outcome::of(UnixStream::connect_addr(&setting.abstract_socket())),
        ),
        Case::refused("ns11_a_port_that_is_not_listed_is_refused", EACCES, |_| {
            connect_to_an_unlisted_port()
        })
        .control(Control::Never),
        Case::works("tcp_and_udp_work_on_loopback", |_| Outcome::of(talk())),
        Case::works("a_unix_socket_inside_can_be_used", |setting| {
            let path = setting.inside.join("socket");
            let listener = UnixListener::bind(&path).unwrap();
            let connected = UnixStream::connect(&path).and_then(|_| listener.accept());
            Outcome::of(connected)
        }),
    ]
}

fn socket(family: c_int, kind: c_int, protocol: c_int) -> Outcome {
    Outcome::of(sys::numbers(
        libc::SYS_socket,
        &[family, kind, protocol].map(i64::from),
    ))
}

/// On a terminal of our own that is also our controlling one, where it would be permitted.
fn type_with(request: u64, upper_half: u64) -> Outcome {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
    let near = rustix::pty::openpt(flags).unwrap();
    rustix::pty::unlockpt(&near).unwrap();
    let far = rustix::pty::ioctl_tiocgptpeer(&near, flags).unwrap();
    rustix::process::setsid().unwrap();
    rustix::process::ioctl_tiocsctty(&far).unwrap();
    let outcome = Outcome::of(sys::type_into_terminal(
        request,
        upper_half,
        far.as_raw_fd(),
    ));
    // Its end would hang up on this process before it has told what came of it.
    std::mem::forget(near);
    outcome
}

/// Enforces a second set of rules, which a confined program may, and tries both sides of it.
fn connect_to_an_unlisted_port() -> Outcome {
    let listed = TcpListener::bind("127.0.0.1:0").unwrap();
    let unlisted = TcpListener::bind("127.0.0.1:0").unwrap();
    let policy = PathPolicy {
        read_only: vec![PathBuf::from("/etc")],
        read_write: Vec::new(),
        execute: Vec::new(),
        tcp: Some(TcpPorts {
            bind: Vec::new(),
            connect: vec![listed.local_addr().unwrap().port()],
        }),
        reach: Reach::Everything,
    };
    let _report = Ruleset::prepare(&policy).unwrap().enforce().unwrap();
    TcpStream::connect(listed.local_addr().unwrap()).unwrap();
    assert_eq!(
        TcpListener::bind("127.0.0.1:0").unwrap_err().raw_os_error(),
        Some(EACCES)
    );
    Outcome::of(TcpStream::connect(unlisted.local_addr().unwrap()))
}

fn talk() -> std::io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut client = TcpStream::connect(listener.local_addr()?)?;
    client.write_all(b"x")?;
    listener.accept()?.0.read_exact(&mut [0])?;
    let socket =
        UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).or_else(|_| UdpSocket::bind("127.0.0.1:0"))?;
    socket.send_to(b"x", socket.local_addr()?)?;
    socket.recv(&mut [0])?;
    Ok(())
}
