//! `native`: the conformance suite, and the walls tried from inside, one test per attempt.

use std::{path::Path, time::Duration};

use rustix::process::{Pid, Signal, getpid, kill_process, set_child_subreaper};
use zareba_protocol::{Action, ErrorClass, ObservationKind, RunCommand};
use zareba_runtime::{
    Capabilities, Isolation, Runtime as _, Sandbox, SandboxSpec, Strictness, Support,
};
use zareba_runtime_native::{
    DiskLimit, NativeRuntime, Reachable, SystemMode, Usage, Walls, WorkspaceMode,
};

use zareba_terminal::{Process, children};

use crate::fixture::{self, Fixture, output, spec};

const PATIENCE: Duration = Duration::from_secs(30);

async fn make() -> Fixture<NativeRuntime> {
    fixture::native()
}

zareba_testkit::conformance_suite!(make);

const WALLS: Walls = Walls {
    workspace: WorkspaceMode::CopyOnWrite,
    system: SystemMode::CopyOnWrite,
    guarded: Vec::new(),
    home_tools: zareba_runtime_native::HomeAccess::Hidden,
    network: Reachable::Nothing,
    usage: Usage {
        memory_bytes: 256 * 1024 * 1024,
        pids: 64,
        cpu_millis: 1000,
        disk: DiskLimit {
            bytes: 1024 * 1024 * 1024,
            inodes: 100_000,
        },
    },
    strictness: Strictness::Strict,
};

/// Runs a command and returns its status and output.
async fn attempt(sandbox: &dyn Sandbox, command: &str) -> (i64, String) {
    let action = Action::Run(RunCommand {
        blocking: true,
        ..RunCommand::new(command)
    });
    let answer = sandbox.run_action(action.into()).await.unwrap();
    let content = answer.observation.content;
    match answer.observation.kind {
        ObservationKind::Run(run) => (run.metadata.exit_code, content),
        _ => (-1, content),
    }
}

/// The supervisor of a sandbox, by its command line.
fn supervisor_of(id: &str) -> Pid {
    let wanted = format!("supervise\0--id\0{id}\0");
    let found = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .find_map(|entry| {
            let line = std::fs::read_to_string(entry.path().join("cmdline")).ok()?;
            let pid = entry.file_name().to_str()?.parse().ok()?;
            line.contains(&wanted).then_some(pid)
        });
    found.and_then(Pid::from_raw).expect("a supervisor")
}

/// A sandbox in which every command must fail with a status other than 0.
async fn refuses(commands: &[&str]) {
    refuses_behind(WALLS, commands).await;
}

async fn refuses_behind(walls: Walls, commands: &[&str]) {
    let fixture = fixture::native_with(walls);
    let sandbox = fixture.runtime.create(spec()).await.unwrap();
    for command in commands {
        let (status, shown) = attempt(&*sandbox, command).await;
        assert_ne!(status, 0, "`{command}` worked: {shown}");
    }
    // Alive and well, and so the refusals were refusals.
    assert_eq!(output(&*sandbox, "echo well").await, "well");
    sandbox.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
}

async fn shows(command: &str, expected: &str) {
    let fixture = fixture::native_with(WALLS);
    let sandbox = fixture.runtime.create(spec()).await.unwrap();
    assert_eq!(output(&*sandbox, command).await, expected, "{command}");
    sandbox.close().await.unwrap();
}

#[tokio::test]
async fn it_promises_walls() {
    let expected = Capabilities {
        isolation: Isolation::Namespaces,
        pause: Support::Yes,
        checkpoint: Support::No,
        attach: Support::Yes,
        changes: Support::Yes,
    };
    assert_eq!(fixture::native().runtime.capabilities(), expected);
}

#[tokio::test]
async fn ns1_every_namespace_is_its_own() {
    let fixture = fixture::native_with(WALLS);
    let sandbox = fixture.runtime.create(spec()).await.unwrap();
    for name in ["user", "mnt", "pid", "net", "ipc", "uts", "cgroup"] {
        let ours = std::fs::read_link(format!("/proc/self/ns/{name}")).unwrap();
        let inside = output(&*sandbox, &format!("readlink /proc/self/ns/{name}")).await;
        assert_ne!(inside, ours.display().to_string());
    }
    sandbox.close().await.unwrap();
}

#[tokio::test]
async fn ns4_nothing_of_the_machine_is_there_but_its_tools() {
    shows(
        "ls -A / | tr '\\n' ' '; ls -A /run /var/tmp /home; for p in /root /sys /boot /srv /mnt /proc/1/root/root; do test -e $p && echo $p; done; true",
        &{
            let mut names = vec!["bin", "dev", "etc", "home", "lib", "opt", "proc", "run", "sbin", "tmp", "usr", "var", "workspace"];
            for optional in ["lib32", "lib64", "libx32"] {
                if std::fs::symlink_metadata(format!("/{optional}")).is_ok() {
                    names.push(optional);
                }
            }
            names.retain(|name| !matches!(*name, "opt" | "sbin" | "lib" | "bin") || std::fs::symlink_metadata(format!("/{name}")).is_ok());
            names.sort_unstable();
            format!("{} /home:\nagent\n\n/run:\nzareba\n\n/var/tmp:", names.join(" "))
        },
    )
    .await;
}

#[tokio::test]
async fn ns3_read_only_system_files_can_be_neither_changed_nor_replaced() {
    let walls = Walls {
        system: SystemMode::ReadOnly,
        ..WALLS
    };
    let attempts = [
        "touch /usr/bin/x",
        "echo evil > /etc/profile",
        "rm -f /usr/bin/env",
        "mkdir /new",
        "mv /usr/bin/env /tmp/",
        "ln -sf /tmp/x /bin",
        "echo 1 > /proc/sys/kernel/printk",
    ];
    refuses_behind(walls, &attempts).await;
}

#[tokio::test]
async fn system_files_can_be_added_and_replaced_and_the_machine_does_not_change() {
    let name = format!("zareba-test-{}", std::process::id());
    let fixture = fixture::native_with(WALLS);
    let sandbox = fixture.runtime.create(spec()).await.unwrap();
    let install = format!(
        "printf '#!/bin/sh\\necho installed\\n' > /usr/local/bin/{name} && chmod +x /usr/local/bin/{name} && {name}"
    );
    assert_eq!(output(&*sandbox, &install).await, "installed");
    let replace = "rm -f /usr/bin/env && echo replaced > /usr/bin/env && cat /usr/bin/env; rm -f /etc/profile; ls /etc/profile 2>&1";
    let (_, shown) = attempt(&*sandbox, replace).await;
    assert!(shown.starts_with("replaced\n"), "{shown}");
    assert!(shown.contains("No such file"), "{shown}");
    assert!(!Path::new("/usr/local/bin").join(&name).exists());
    assert!(std::fs::metadata("/usr/bin/env").unwrap().len() > 100);
    assert!(Path::new("/etc/profile").exists());
    // Another sandbox sees nothing of it, either.
    let other = fixture.runtime.create(spec()).await.unwrap();
    let (status, shown) = attempt(&*other, &name).await;
    assert_eq!(status, 127, "{shown}");
    sandbox.close().await.unwrap();
    other.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
}

#[tokio::test]
async fn ns3_what_belongs_to_root_cannot_be_written_in_place_nor_read_when_it_is_secret() {
    refuses(&[
        "echo evil >> /usr/bin/env",
        "echo evil >> /etc/profile",
        "cat /etc/shadow",
        "cp /etc/shadow /tmp/",
        "mv /etc/shadow /etc/s && cat /etc/s",
        "ln /etc/shadow /etc/s && cat /etc/s",
        "chmod 644 /etc/shadow",
        "mkdir /new",
        "echo 1 > /proc/sys/kernel/printk",
    ])
    .await;
}

#[tokio::test]
async fn ns5_secrets_of_the_kernel_are_masked() {
    shows("cat /proc/keys /proc/kcore 2>/dev/null | wc -c", "0").await;
    refuses(&[
        "cat /etc/shadow",
        "mknod /tmp/disk b 8 0",
        "mknod /tmp/mem c 1 1",
        "dmesg",
    ])
    .await;
}

#[tokio::test]
async fn ns8_no_capability_is_left_in_any_set() {
    shows(
        "grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status | tr -s '\\t ' ' ' | tr '\\n' ';'",
        "CapInh: 0000000000000000;CapPrm: 0000000000000000;CapEff: 0000000000000000;\
         CapBnd: 0000000000000000;CapAmb: 0000000000000000;NoNewPrivs: 1;Seccomp: 2;",
    )
    .await;
}

#[tokio::test]
async fn ns9_there_are_no_further_user_namespaces() {
    refuses(&[
        "unshare -U true",
        "unshare -r true",
        "unshare -m true",
        "unshare -n true",
    ])
    .await;
}

#[tokio::test]
async fn ns10_mounts_and_roots_cannot_be_changed() {
    refuses(&[
        "mount -t tmpfs none /tmp",
        "mount -o remount,rw /usr",
        "mount --bind /usr /tmp",
        "umount /proc/keys",
        "umount /etc/passwd",
        "chroot / true",
        "nsenter -t 1 -m true",
    ])
    .await;
}

#[tokio::test]
async fn magic_links_and_dots_lead_nowhere_else() {
    refuses(&[
        "ls /proc/1/root/root",
        "ls /proc/self/root/root",
        "cat /proc/1/environ",
        "ls /../../../root",
        "cat /proc/1/cwd/../root/.bashrc",
        "ls /proc/1/fd/",
    ])
    .await;
}

#[tokio::test]
async fn processes_outside_can_be_neither_seen_nor_reached() {
    let outside = std::process::id();
    let fixture = fixture::native_with(WALLS);
    let sandbox = fixture.runtime.create(spec()).await.unwrap();
    let (_, shown) = attempt(&*sandbox, "ls /proc | grep -c '^[0-9]'").await;
    assert!(shown.parse::<u32>().unwrap() < 20, "{shown}");
    let (status, _) = attempt(&*sandbox, &format!("kill -0 {outside}")).await;
    assert_ne!(status, 0);
    let (status, _) = attempt(&*sandbox, "kill -9 1; kill -0 1").await;
    assert_eq!(status, 0, "the first process cannot be killed from inside");
    sandbox.close().await.unwrap();
}

#[tokio::test]
async fn sockets_of_the_machine_are_not_there() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("docker.sock");
    let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let python = format!(
        "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"{}\")'",
        path.display()
    );
    refuses(&[
        &python,
        "python3 -c 'import socket; socket.socket(40, socket.SOCK_STREAM)'",
        "python3 -c 'import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)'",
        "python3 -c 'import socket; socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET)'",
        "ls /var/run/docker.sock",
    ])
    .await;
}

#[tokio::test]
async fn an_abstract_socket_of_the_machine_cannot_be_reached() {
    use std::os::linux::net::SocketAddrExt as _;
    let name = format!("zareba-test-{}", std::process::id());
    let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
    let _listener = std::os::unix::net::UnixListener::bind_addr(&address).unwrap();
    let python =
        format!("python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"\\0{name}\")'");
    refuses(&[&python]).await;
}

#[tokio::test]
async fn the_network_is_the_sandbox_itself() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    refuses(&[
        &format!("timeout 2 bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}'"),
        "timeout 2 bash -c 'exec 3<>/dev/tcp/169.254.169.254/80'",
        "timeout 2 bash -c 'exec 3<>/dev/tcp/10.0.0.1/80'",
        "timeout 2 bash -c 'exec 3<>/dev/udp/8.8.8.8/53 && echo x >&3'",
    ])
    .await;
    shows(
        "python3 - <<'END'\nimport socket\ns = socket.create_server(('127.0.0.1', 0))\nc = socket.create_connection(s.getsockname())\ns.accept()[0].send(b'own loopback')\nprint(c.recv(20).decode())\nEND",
        "own loopback",
    )
    .await;
}

#[tokio::test]
async fn variables_of_the_machine_do_not_come_along() {
    // Set for every test process by cargo, and so for the runtime too.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    shows("env | grep -c CARGO; true", "0").await;
}

#[tokio::test]
async fn changes_to_a_copy_on_write_workspace_stay_inside() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("kept"), "original\n").unwrap();
    std::fs::write(directory.path().join("gone"), "still here\n").unwrap();
    let fixture = fixture::native_with(WALLS);
    let spec = SandboxSpec {
        workspace: Some(directory.path().to_owned()),
        ..spec()
    };
    let sandbox = fixture.runtime.create(spec).await.unwrap();
    let shown = output(
        &*sandbox,
        "cat kept; echo changed > kept; rm gone; echo new > made; cat kept; ls -1",
    )
    .await;
    assert_eq!(shown, "original\nchanged\nkept\nmade");
    sandbox.close().await.unwrap();
    let read = |name: &str| std::fs::read_to_string(directory.path().join(name)).ok();
    assert_eq!(read("kept").as_deref(), Some("original\n"));
    assert_eq!(read("gone").as_deref(), Some("still here\n"));
    assert_eq!(read("made"), None);
    assert_eq!(fixture.leftovers(), [""; 0]);
}

#[tokio::test]
async fn ns4_a_workspace_that_holds_more_than_a_project_is_refused() {
    let fixture = fixture::native_with(WALLS);
    let state = fixture.state.path();
    for path in [
        Path::new("/"),
        Path::new("/run"),
        Path::new("/proc/self"),
        state,
        state.parent().unwrap(),
    ] {
        let spec = SandboxSpec {
            workspace: Some(path.to_owned()),
            ..spec()
        };
        let error = fixture
            .runtime
            .create(spec)
            .await
            .err()
            .expect("it is refused");
        assert_eq!(
            error.class(),
            ErrorClass::Invalid,
            "{}: {error}",
            path.display()
        );
    }
    assert_eq!(fixture.leftovers(), [""; 0]);
}

/// A caller follows the links of a path when it checks it: a link that is found later is newer than the check.
#[tokio::test]
async fn ns4_a_workspace_behind_a_link_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().canonicalize().unwrap();
    std::fs::create_dir_all(place.join("real/project")).unwrap();
    std::os::unix::fs::symlink("real", place.join("link")).unwrap();
    let fixture = fixture::native_with(WALLS);
    for (path, is_refused) in [
        ("real/project", false),
        ("link/project", true),
        ("link", true),
    ] {
        let spec = SandboxSpec {
            workspace: Some(place.join(path)),
            ..spec()
        };
        match fixture.runtime.create(spec).await {
            Ok(sandbox) => {
                assert!(!is_refused, "{path}");
                sandbox.close().await.unwrap();
            }
            Err(error) => {
                assert!(is_refused, "{path}: {error}");
                assert!(error.to_string().contains("leads over a link"), "{error}");
            }
        }
    }
    assert_eq!(fixture.leftovers(), [""; 0]);
}

#[tokio::test]
async fn a_killed_supervisor_takes_its_sandbox_and_its_control_groups_along() {
    let fixture = fixture::native_with(WALLS);
    let sandbox = fixture.runtime.create(spec()).await.unwrap();
    let id = sandbox.id().to_string();
    output(&*sandbox, "sleep 1000 & true").await;
    kill_process(supervisor_of(&id), Signal::KILL).unwrap();
    sandbox.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
    let host = zareba_confine::cgroup::Host::detect().unwrap();
    assert!(
        zareba_confine::cgroup::Group::open(&host, &id)
            .unwrap()
            .is_none()
    );
}

/// The supervisor would have removed them; the next runtime that starts does.
#[tokio::test]
async fn stand_ins_of_a_killed_supervisor_are_removed_ns_6() {
    let fixture = fixture::native_with(Walls {
        workspace: WorkspaceMode::ReadWrite,
        guarded: vec![".vscode".to_owned()],
        ..WALLS
    });
    let workspace = tempfile::tempdir().unwrap();
    let spec = SandboxSpec {
        workspace: Some(workspace.path().to_owned()),
        ..spec()
    };
    let sandbox = fixture.runtime.create(spec).await.unwrap();
    assert!(workspace.path().join(".vscode").is_dir());
    kill_process(supervisor_of(sandbox.id().as_str()), Signal::KILL).unwrap();
    sandbox.close().await.unwrap();
    assert!(!workspace.path().join(".vscode").exists());
    assert_eq!(fixture.leftovers(), [""; 0]);
}

/// As in a server, to which the kernel gives the orphans of its supervisors.
#[tokio::test]
async fn the_first_process_of_a_killed_supervisor_is_reaped_at_once() {
    set_child_subreaper(Some(getpid())).unwrap();
    let fixture = fixture::native_with(WALLS);
    let sandbox = fixture.runtime.create(spec()).await.unwrap();
    let supervisor = supervisor_of(sandbox.id().as_str());
    let init = Process::read(children(supervisor.as_raw_nonzero().get())[0])
        .unwrap()
        .id;
    kill_process(supervisor, Signal::KILL).unwrap();
    let reaped = async {
        while Process::read(init.pid).is_ok_and(|process| process.id == init) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, reaped).await.unwrap();
    sandbox.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
}

#[tokio::test]
async fn a_read_only_workspace_cannot_be_changed() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("kept"), "original\n").unwrap();
    let fixture = fixture::native_with(Walls {
        workspace: WorkspaceMode::ReadOnly,
        ..WALLS
    });
    let spec = SandboxSpec {
        workspace: Some(directory.path().to_owned()),
        ..spec()
    };
    let sandbox = fixture.runtime.create(spec).await.unwrap();
    let (status, _) = attempt(&*sandbox, "echo changed > kept").await;
    assert_ne!(status, 0);
    assert_eq!(output(&*sandbox, "cat kept").await, "original");
    sandbox.close().await.unwrap();
}

#[tokio::test]
async fn files_that_the_agent_hides_from_itself_are_removed_with_the_sandbox() {
    let fixture = fixture::native_with(WALLS);
    let sandbox = fixture.runtime.create(spec()).await.unwrap();
    output(
        &*sandbox,
        "mkdir -p a/b && touch a/b/c && chmod 0 a/b && chmod 0 a",
    )
    .await;
    sandbox.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
}

/// Without root there are no delegated control groups here, and so no limit to die of.
#[tokio::test]
#[ignore = "needs root"]
async fn a_memory_hog_dies_and_the_executor_lives() {
    let fixture = fixture::native_with(WALLS);
    let sandbox = fixture.runtime.create(spec()).await.unwrap();
    let (status, shown) = attempt(&*sandbox, "python3 -c 'x = bytearray(1 << 30)'").await;
    assert_ne!(status, 0, "{shown}");
    assert_eq!(output(&*sandbox, "echo alive").await, "alive");
    sandbox.close().await.unwrap();
}

#[tokio::test]
async fn a_fork_bomb_is_stopped_and_gone_with_the_sandbox() {
    let fixture = fixture::native_with(WALLS);
    let sandbox = fixture.runtime.create(spec()).await.unwrap();
    let bomb = "python3 - <<'END'\nimport os, time\nstopped = False\nfor n in range(4000):\n    try:\n        \
                pid = os.fork()\n    except OSError:\n        stopped = True\n        break\n    if pid == 0:\n        \
                time.sleep(1000)\nprint('stopped' if stopped else 'went on')\nEND";
    assert_eq!(attempt(&*sandbox, bomb).await, (0, "stopped".to_owned()));
    sandbox.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
}

/// Without root, what the sandbox makes is its user's anyway.
#[tokio::test]
#[ignore = "needs root"]
async fn ns6_no_set_id_file_is_left_on_a_machine_where_we_are_root() {
    use std::os::unix::fs::PermissionsExt as _;
    let fixture = fixture::native();
    let workspace = tempfile::tempdir().unwrap();
    let spec = SandboxSpec {
        workspace: Some(workspace.path().to_owned()),
        ..spec()
    };
    let sandbox = fixture.runtime.create(spec).await.unwrap();
    let attempts = [
        "touch a; chmod 4755 a",
        "touch b; chmod g+s b",
        "install -m 6755 /bin/true c",
        "python3 -c 'import os; os.open(\"d\", os.O_CREAT | os.O_WRONLY, 0o4755)'",
        "python3 -c 'import os; os.mknod(\"e\", 0o104755)'",
        "python3 -c 'import os; os.chmod(os.open(\"f\", os.O_CREAT, 0o755), 0o4755)'",
    ];
    for command in attempts {
        let (status, shown) = attempt(&*sandbox, command).await;
        assert_ne!(status, 0, "`{command}` worked: {shown}");
    }
    for entry in std::fs::read_dir(workspace.path()).unwrap().flatten() {
        let mode = entry.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o6000, 0, "{entry:?} has {mode:o}");
    }
    sandbox.close().await.unwrap();
    // Where files stay inside, archives that have such files can be unpacked.
    let fixture = fixture::native_with(WALLS);
    let sandbox = fixture.runtime.create(fixture::spec()).await.unwrap();
    assert_eq!(
        output(&*sandbox, "touch a; chmod 4755 a; stat -c %a a").await,
        "4755"
    );
    sandbox.close().await.unwrap();
}

#[tokio::test]
async fn ns7_the_first_process_does_not_show_how_it_was_made() {
    let shown = "cat /proc/1/comm; tr '\\0' ' ' < /proc/1/cmdline | sed 's/ *$//'";
    shows(shown, "init\nzareba executor").await;
}
