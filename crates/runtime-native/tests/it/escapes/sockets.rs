//! Attempts to reach somebody of the machine through sockets and terminals (NS-4, NS-7, NS-10).

use std::os::{linux::net::SocketAddrExt as _, unix::net::UnixListener};

use super::{Control, Prison, Treasure, WALLS, python, refused};
use zareba_runtime_native::{Walls, WorkspaceMode};

/// Kinds of sockets that know nothing of namespaces, or reach rarely tested parts of the kernel.
macro_rules! refused_sockets {
    ($($name:ident: $family:literal, $kind:literal, $protocol:literal;)*) => {$(
        #[tokio::test]
        async fn $name() {
            let attempt = format!("socket.socket({}, {}, {})", $family, $kind, $protocol);
            Prison::new().await.finds(&attempt, "EPERM").await;
        }
    )*};
}

refused_sockets! {
    the_hypervisor_cannot_be_spoken_to_ns_10: 40, 1, 0;
    packets_cannot_be_read_off_the_wire_ns_10: 17, 3, 0;
    the_kernels_ciphers_cannot_be_used_ns_10: 38, 5, 0;
    the_kernels_keys_for_ipsec_cannot_be_managed_ns_10: 15, 3, 2;
    raw_packets_cannot_be_sent_ns_10: 2, 3, 1;
    raw_packets_of_ipv6_cannot_be_sent_ns_10: 10, 3, 58;
    rarely_used_transports_are_not_there_ns_10: 2, 1, 132;
    several_paths_at_once_are_not_there_ns_10: 2, 1, 262;
    the_audit_log_cannot_be_written_ns_10: 16, 3, 9;
    the_firewall_cannot_be_asked_ns_10: 16, 3, 12;
    the_kernels_events_cannot_be_heard_ns_10: 16, 3, 15;
    generic_netlink_cannot_be_used_ns_10: 16, 3, 16;
    bluetooth_cannot_be_used_ns_10: 31, 3, 1;
    packets_cannot_be_taken_before_the_kernel_sees_them_ns_10: 44, 3, 0;
}

/// The one kind of netlink that there is: asking is fine, changing is not.
#[tokio::test]
async fn interfaces_cannot_be_taken_down_ns_8() {
    // RTM_NEWLINK for interface 1, with IFF_UP to be cleared; the answer carries an errno.
    const PROGRAM: &str = r"
link = socket.socket(16, socket.SOCK_RAW, 0)
request = struct.pack('=BxHiII', 0, 0, 1, 0, 1)
link.send(struct.pack('=IHHII', 16 + len(request), 16, 5, 1, 0) + request)
print(errno.errorcode[-struct.unpack_from('=i', link.recv(4096), 16)[0]])";
    let prison = Prison::new().await;
    assert_eq!(prison.python(PROGRAM).await, "EPERM");
    prison.end().await;
}

fn connecting(path: impl std::fmt::Display) -> String {
    format!("socket.socket(socket.AF_UNIX).connect('{path}')")
}

/// That it can be connected to where there are no walls.
fn assert_open_outside(attempt: &str) {
    assert_eq!(python::outside(&python::shown(attempt)), "worked: None");
}

#[tokio::test]
async fn the_socket_of_the_container_engine_is_not_there_ns_4() {
    let prison = Prison::new().await;
    for path in [
        "/var/run/docker.sock",
        "/run/docker.sock",
        "/run/containerd/containerd.sock",
    ] {
        assert_eq!(prison.attempt(&connecting(path)).await, "ENOENT");
    }
    prison.end().await;
}

#[tokio::test]
async fn a_socket_outside_is_not_there_ns_4() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let _listener = UnixListener::bind(&path).unwrap();
    let attempt = connecting(path.display());
    assert_open_outside(&attempt);
    Prison::new().await.finds(&attempt, "ENOENT").await;
}

#[tokio::test]
async fn a_socket_in_a_workspace_that_is_copied_on_write_has_nobody_behind_it_ns_4() {
    let workspace = tempfile::tempdir().unwrap();
    let path = workspace.path().join("socket");
    let _listener = UnixListener::bind(&path).unwrap();
    assert_open_outside(&connecting(path.display()));
    let prison = Prison::at(WALLS, workspace.path()).await;
    let attempt = connecting("/workspace/socket");
    let came_to = prison.attempt(&attempt).await;
    assert!(
        ["ECONNREFUSED", "EACCES"].contains(&came_to.as_str()),
        "{came_to}"
    );
    prison.end().await;
}

#[tokio::test]
async fn a_socket_in_a_workspace_that_cannot_be_changed_has_nobody_behind_it_ns_4() {
    let workspace = tempfile::tempdir().unwrap();
    let path = workspace.path().join("socket");
    let _listener = UnixListener::bind(&path).unwrap();
    assert_open_outside(&connecting(path.display()));
    let walls = Walls {
        workspace: WorkspaceMode::ReadOnly,
        ..WALLS
    };
    let prison = Prison::at(walls, workspace.path()).await;
    let came_to = prison.attempt(&connecting("/workspace/socket")).await;
    assert!(
        ["ECONNREFUSED", "EACCES"].contains(&came_to.as_str()),
        "{came_to}"
    );
    prison.end().await;
}

/// Only root can put one there.
#[tokio::test]
#[ignore = "needs root"]
async fn a_socket_below_a_directory_of_the_system_has_nobody_behind_it_ns_4() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = tempfile::Builder::new().tempdir_in("/usr/local").unwrap();
    let path = place.path().join("socket");
    let _listener = UnixListener::bind(&path).unwrap();
    for (path, mode) in [(place.path(), 0o755), (&path, 0o777)] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let attempt = connecting(path.display());
    assert_open_outside(&attempt);
    Prison::new().await.finds(&attempt, "ECONNREFUSED").await;
}

#[tokio::test]
async fn an_abstract_socket_outside_cannot_be_connected_to_ns_11() {
    let name = format!("zareba-escape-{}", std::process::id());
    let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
    let _listener = UnixListener::bind_addr(&address).unwrap();
    let attempt = connecting(format_args!("\\0{name}"));
    assert_open_outside(&attempt);
    Prison::new().await.finds(&attempt, "ECONNREFUSED").await;
}

#[tokio::test]
async fn the_sockets_of_the_machine_are_not_listed_ns_1() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("listed");
    let _listener = UnixListener::bind(&path).unwrap();
    let known = std::fs::read_to_string("/proc/net/unix").unwrap();
    assert!(known.contains(&path.display().to_string()));
    let prison = Prison::new().await;
    let (_, listed) = prison.shell("cat /proc/net/unix").await;
    assert!(
        listed.starts_with("Num") && !listed.contains('/'),
        "{listed}"
    );
    prison.end().await;
}

#[tokio::test]
async fn shared_memory_of_the_machine_is_not_there_ns_5() {
    let treasure = Treasure::hide();
    let name = format!("zareba-escape-{}", std::process::id());
    let file = tempfile::Builder::new()
        .prefix(&name)
        .tempfile_in("/dev/shm");
    let path = file.unwrap().into_temp_path();
    std::fs::copy(treasure.path(), &path).unwrap();
    let attempt = format!("read('{}')", path.display());
    refused(&attempt, "ENOENT", Control::Everybody).await;
}

#[tokio::test]
async fn nobody_can_type_into_the_terminal_ns_10() {
    let attempt = "call('ioctl', os.open('/dev/tty', os.O_RDWR), 0x5412, b'x')";
    Prison::new().await.finds(attempt, "EPERM").await;
}

/// The kernel looks at the low half of the number only, and so must the filter.
#[tokio::test]
async fn nobody_can_type_into_the_terminal_by_a_longer_number_ns_10() {
    let attempt = "call('ioctl', os.open('/dev/tty', os.O_RDWR), 0x100005412, b'x')";
    Prison::new().await.finds(attempt, "EPERM").await;
}

#[tokio::test]
async fn nobody_can_paste_into_a_console_ns_10() {
    let attempt = "call('ioctl', os.open('/dev/tty', os.O_RDWR), 0x541c, bytes([2]))";
    Prison::new().await.finds(attempt, "EPERM").await;
}

#[tokio::test]
async fn nobody_can_change_what_a_terminal_speaks_ns_10() {
    let attempt = "call('ioctl', os.open('/dev/tty', os.O_RDWR), 0x5423, struct.pack('i', 1))";
    Prison::new().await.finds(attempt, "EPERM").await;
}

/// The terminal of a shell is one of the sandbox's own, whose numbers begin at 0.
#[tokio::test]
async fn the_terminals_are_those_of_the_sandbox_ns_7() {
    use std::os::unix::fs::MetadataExt as _;
    let prison = Prison::new().await;
    let (_, listed) = prison
        .shell("tty; echo /dev/pts/*; stat -c %d /dev/pts")
        .await;
    let ours = std::fs::metadata("/dev/pts").unwrap().dev();
    let mut lines = listed.lines();
    assert_eq!(lines.next(), Some("/dev/pts/0"));
    assert_eq!(lines.next(), Some("/dev/pts/0 /dev/pts/ptmx"));
    assert_ne!(lines.next(), Some(ours.to_string().as_str()));
    prison.end().await;
}
