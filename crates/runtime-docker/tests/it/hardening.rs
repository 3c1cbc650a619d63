//! The walls of a container, tried from inside one by one (DK-1, DK-2, DK-3, DK-4).

use std::{fs, os::unix::fs::PermissionsExt as _, sync::Arc};

use zareba_runtime::{Runtime as _, Sandbox};
use zareba_runtime_docker::{
    Debugging, NetworkChoice, PortChoice, PortRequest, Reach, RootMode, SandboxUser,
};

use crate::fixture::{
    BUSYBOX, DEBIAN, Fixture, container, engine_socket, fixture, fixture_with, output, run, spec,
};

/// Runs a call by its number and prints the error's name, or `done`.
const CALLS: &str = r#"
import ctypes, errno, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(*arguments):
    ctypes.set_errno(0)
    result = libc.syscall(*[ctypes.c_long(argument) for argument in arguments])
    return "done" if result >= 0 else errno.errorcode[ctypes.get_errno()]
for line in sys.argv[1:]:
    print(call(*[int(number, 0) for number in line.split(",")]))
"#;

async fn calls(sandbox: &dyn Sandbox, numbers: &[&str]) -> Vec<String> {
    let list = numbers.join(" ");
    let command = format!("python3 - {list} <<'END'\n{CALLS}\nEND");
    let text = output(sandbox, &command).await;
    text.lines().map(|line| line.trim().to_owned()).collect()
}

async fn close(fixture: &Fixture, sandbox: Arc<dyn Sandbox>) {
    sandbox.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_inside_is_root_or_has_or_gains_rights_dk_1() {
    let fixture = fixture(DEBIAN);
    let sandbox = fixture.sandbox().await;
    assert_eq!(
        output(&*sandbox, "id -u; id -g; id -G").await,
        "1000\r\n1000\r\n1000".replace('\r', "")
    );
    for process in ["self", "1"] {
        let status = format!("grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/{process}/status");
        let status = output(&*sandbox, &status).await;
        let fields: Vec<(&str, &str)> = status
            .lines()
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name, value.trim()))
            .collect();
        let none = "0000000000000000";
        assert_eq!(
            fields,
            [
                ("CapInh", none),
                ("CapPrm", none),
                ("CapEff", none),
                ("CapBnd", none),
                ("CapAmb", none),
                ("NoNewPrivs", "1"),
                ("Seccomp", "2"),
            ]
        );
    }
    // A program that others would become root by.
    let (code, _) = run(&*sandbox, "su -c id root < /dev/null").await;
    assert_ne!(code, 0);
    close(&fixture, sandbox).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dangerous_system_calls_are_refused_dk_1() {
    let fixture = fixture(DEBIAN);
    let sandbox = fixture.sandbox().await;
    let refused = [
        ("io_uring_setup", "425,1,0"),
        ("socket AF_VSOCK", "41,40,1,0"),
        ("socket AF_PACKET", "41,17,3,0"),
        ("socket AF_ALG", "41,38,5,0"),
        ("socket SOCK_RAW", "41,2,3,1"),
        ("mount", "165,0,0,0,0,0"),
        ("open_tree", "428,0,0,0"),
        ("unshare a user namespace", "272,0x10000000"),
        ("unshare a mount namespace", "272,0x20000"),
        ("setns", "308,0,0"),
        ("bpf", "321,0,0,0"),
        ("perf_event_open", "298,0,0,0,0,0"),
        ("keyctl", "250,0,0,0,0,0"),
        ("ptrace", "101,0,0,0,0"),
        ("process_vm_readv", "310,1,0,0,0,0,0"),
        ("userfaultfd", "323,0"),
        ("open_by_handle_at", "304,0,0,0"),
        ("TIOCSTI", "16,0,0x5412,0"),
        ("TIOCSTI with more bits", "16,0,0x100005412,0"),
        ("a set-user-ID bit on a device", "133,0,0o20644,0x103"),
        ("kexec_load", "246,0,0,0,0"),
        ("init_module", "175,0,0,0"),
        ("settimeofday", "164,0,0"),
    ];
    let numbers: Vec<&str> = refused.iter().map(|(_, numbers)| *numbers).collect();
    let answers = calls(&*sandbox, &numbers).await;
    let answers: Vec<(&str, &str)> = refused
        .iter()
        .zip(&answers)
        .map(|((name, _), answer)| (*name, answer.as_str()))
        .collect();
    let expected: Vec<(&str, &str)> = refused.iter().map(|(name, _)| (*name, "EPERM")).collect();
    assert_eq!(answers, expected);
    // Ordinary ones are not, and `clone3` looks like on an older kernel.
    let ordinary = calls(
        &*sandbox,
        &["39", "41,1,1,0", "41,2,1,6", "41,10,2,17", "435,0,0"],
    )
    .await;
    assert_eq!(ordinary, ["done", "done", "done", "done", "ENOSYS"]);
    close(&fixture, sandbox).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_the_image_and_ours_cannot_be_changed_dk_1() {
    let fixture = fixture(BUSYBOX);
    let sandbox = fixture.sandbox().await;
    for path in [
        "/x",
        "/etc/x",
        "/bin/x",
        "/.zareba/x",
        "/.zareba/door/x",
        "/proc/sys/kernel/hostname",
        "/sys/x",
        "/dev/x",
    ] {
        let (code, said) = run(&*sandbox, &format!("echo x > {path}")).await;
        assert_ne!(code, 0, "{path}: {said}");
    }
    let (code, _) = run(&*sandbox, "echo x >> /.zareba/zareba").await;
    assert_ne!(code, 0);
    let (code, _) = run(&*sandbox, "rm /.zareba/door/s").await;
    assert_ne!(code, 0);
    // What can be is ours alone, and cannot hold devices or set-user-ID programs.
    for path in [
        "/workspace",
        "/tmp",
        "/var/tmp",
        "/run",
        "$HOME",
        "/dev/shm",
    ] {
        output(&*sandbox, &format!("echo x > {path}/x && rm {path}/x")).await;
    }
    let writable = "grep -E '^tmpfs (/workspace|/tmp|/home/agent|/run|/var/tmp) ' /proc/mounts";
    let writable = output(&*sandbox, writable).await;
    assert_eq!(writable.lines().count(), 5);
    for line in writable.lines() {
        assert!(line.contains("nosuid,nodev"), "{line}");
    }
    close(&fixture, sandbox).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_that_can_be_filled_has_a_bound_dk_1() {
    let fixture = fixture_with(BUSYBOX, |options| {
        options.usage.workspace_bytes = 8 << 20;
        options.usage.scratch_bytes = 4 << 20;
        options.usage.shm_bytes = 2 << 20;
    });
    let sandbox = fixture.sandbox().await;
    for (path, mebibytes) in [
        ("/workspace", 8),
        ("/tmp", 4),
        ("/var/tmp", 4),
        ("$HOME", 4),
        ("/run", 4),
        ("/.zareba/state", 4),
        ("/dev/shm", 2),
    ] {
        let fill = |amount: u32| format!("dd if=/dev/zero of={path}/f bs=1M count={amount} 2>&1");
        output(&*sandbox, &format!("{}; rm {path}/f", fill(mebibytes - 1))).await;
        let (code, said) = run(
            &*sandbox,
            &format!("{}; rm {path}/f; false", fill(mebibytes + 1)),
        )
        .await;
        assert_ne!(code, 0);
        assert!(said.contains("No space left"), "{path}: {said}");
    }
    close(&fixture, sandbox).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_processes_and_descriptors_have_a_limit_dk_1() {
    let fixture = fixture_with(DEBIAN, |options| {
        options.usage.memory_bytes = 128 << 20;
        options.usage.pids = 48;
        options.usage.cpu_millis = 500;
    });
    let sandbox = fixture.sandbox().await;
    assert_eq!(
        output(
            &*sandbox,
            "ulimit -n; awk '/^Max core/ {print $5, $6}' /proc/self/limits; ulimit -Hn"
        )
        .await,
        "4096\n1 1\n4096"
    );
    // Also of what somebody starts beside the executor; and what the kernel counts for each user.
    let limits = "awk '/^Max (core|pending|msgqueue)/ {print $1, $2, $(NF - 2), $(NF - 1)}' /proc/self/limits";
    let expected = "Max core 1 1\nMax pending 1024 1024\nMax msgqueue 102400 102400";
    assert_eq!(output(&*sandbox, limits).await, expected);
    let container = container(&*sandbox);
    let beside = fixture.docker(&["exec", &container, "sh", "-c", limits]);
    assert_eq!(beside.trim(), expected);
    // One at the limit and one past it.
    let hold = "python3 -c 'x = bytearray(%d << 20); print(len(x) >> 20)'";
    assert_eq!(output(&*sandbox, &hold.replace("%d", "48")).await, "48");
    let (code, said) = run(&*sandbox, &hold.replace("%d", "400")).await;
    assert_eq!(code, 137, "{said}");
    let many = "python3 - <<'END'\nimport os, signal\nchildren = []\ntry:\n  while True:\n    \
                child = os.fork()\n    if child == 0:\n      signal.pause()\n    \
                children.append(child)\nexcept BlockingIOError:\n  print(len(children) < 48)\n\
                for child in children:\n  os.kill(child, 9)\nEND";
    assert_eq!(output(&*sandbox, many).await, "True");
    // The Engine of this machine keeps groups of the first version.
    let inspect = sandbox.inspect().await.unwrap();
    assert_eq!(inspect["limits"]["memory_bytes"], 128 << 20);
    assert_eq!(inspect["limits"]["memory_and_swap_bytes"], 128 << 20);
    assert_eq!(inspect["limits"]["nano_cpus"], 500_000_000);
    assert_eq!(inspect["limits"]["pids"], 48);
    let groups = "cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/pids/pids.max \
                  /sys/fs/cgroup/cpu/cpu.cfs_quota_us 2>/dev/null || cat /sys/fs/cgroup/memory.max \
                  /sys/fs/cgroup/pids.max /sys/fs/cgroup/cpu.max";
    let groups = output(&*sandbox, groups).await;
    let lines: Vec<&str> = groups.split_whitespace().collect();
    assert_eq!(lines[..3], ["134217728", "48", "50000"]);
    close(&fixture, sandbox).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_the_machine_can_be_seen_dk_1() {
    let fixture = fixture(DEBIAN);
    let sandbox = fixture.sandbox().await;
    for namespace in ["pid", "mnt", "ipc", "uts", "net", "cgroup"] {
        let inside = output(&*sandbox, &format!("readlink /proc/self/ns/{namespace}")).await;
        let outside = fs::read_link(format!("/proc/self/ns/{namespace}")).unwrap();
        assert_ne!(inside, outside.display().to_string());
    }
    let devices = output(&*sandbox, "ls /dev").await;
    let mut devices: Vec<&str> = devices.split_whitespace().collect();
    devices.sort_unstable();
    assert_eq!(
        devices,
        [
            "fd", "full", "mqueue", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin",
            "stdout", "tty", "urandom", "zero"
        ]
    );
    // Covered with nothing, or with a file that is empty.
    for masked in [
        "/proc/config.gz",
        "/proc/kcore",
        "/proc/keys",
        "/proc/modules",
        "/proc/timer_list",
    ] {
        assert_eq!(
            output(&*sandbox, &format!("cat {masked} 2>/dev/null | wc -c")).await,
            "0"
        );
    }
    assert_eq!(
        output(&*sandbox, "ls /sys/firmware /proc/acpi")
            .await
            .trim(),
        "/proc/acpi:\n\n/sys/firmware:"
    );
    let (code, _) = run(&*sandbox, "echo b > /proc/sysrq-trigger").await;
    assert_ne!(code, 0);
    let processes = output(&*sandbox, "ls /proc | grep -c '^[0-9]'").await;
    assert!(processes.parse::<u32>().unwrap() < 10, "{processes}");
    close(&fixture, sandbox).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_audit_log_calls_a_sandbox_and_how_its_executor_is_set_up_are_not_its_choice_dk_1()
{
    let fixture = fixture(DEBIAN);
    let sandbox = fixture.sandbox().await;
    // Without our walls it can be any user.
    let choose = "echo 4711 > /proc/self/loginuid; cat /proc/self/loginuid";
    // Without a network, because another Engine of these tests removes the usual bridge.
    let (user, shell) = (
        ["--user", "1000", "--network", "none"],
        ["sh", "-c", choose],
    );
    let arguments = [&["run", "--rm"], &user[..], &[DEBIAN], &shell].concat();
    assert_eq!(fixture.docker(&arguments), "4711");
    for user in ["0", "1000", "4294967295"] {
        let (code, said) = run(&*sandbox, &format!("echo {user} > /proc/self/loginuid")).await;
        assert_ne!(code, 0, "{said}");
    }
    assert_eq!(output(&*sandbox, "cat /proc/self/loginuid").await, "65534");
    let names = "env | cut -d = -f 1 | grep -E 'ZAREBA|SU_TO_USER|SESSION_API' || echo none";
    assert_eq!(output(&*sandbox, names).await, "none");
    close(&fixture, sandbox).await;
}

/// Mounts of the machine have the flags of its file systems, so these bits are there.
#[tokio::test(flavor = "multi_thread")]
async fn set_user_id_programs_and_device_files_in_a_workspace_are_of_no_use_dk_1() {
    let fixture = fixture(DEBIAN);
    let workspace = tempfile::Builder::new().prefix("zw").tempdir().unwrap();
    let path = |name: &str| workspace.path().join(name);
    fs::copy("/usr/bin/id", path("id")).unwrap();
    fs::set_permissions(path("id"), fs::Permissions::from_mode(0o4755)).unwrap();
    let made = std::process::Command::new("mknod")
        .arg("--mode=666")
        .arg(path("memory"))
        .args(["c", "1", "1"])
        .status();
    assert!(made.unwrap().success());
    // Without our walls it is root's.
    let mount = format!("{}:/workspace", workspace.path().display());
    let told = fixture.docker(&[
        "run",
        "--rm",
        "--user",
        "1000",
        "--network",
        "none",
        "--volume",
        &mount,
        DEBIAN,
        "/workspace/id",
        "-u",
    ]);
    assert_eq!(told, "0\n");
    let spec = zareba_runtime::SandboxSpec {
        workspace: Some(workspace.path().to_owned()),
        ..spec()
    };
    let sandbox = fixture.runtime.create(spec).await.unwrap();
    assert_eq!(output(&*sandbox, "./id -u").await, "1000");
    let (code, said) = run(&*sandbox, "head -c 1 memory").await;
    assert_ne!(code, 0);
    assert!(said.contains("Operation not permitted"), "{said}");
    close(&fixture, sandbox).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_engine_cannot_be_found_from_inside_dk_2_dk_3() {
    let fixture = fixture(DEBIAN);
    let sandbox = fixture.sandbox().await;
    let engine = engine_socket().display().to_string();
    let seen = output(
        &*sandbox,
        "env; cat /proc/mounts | grep -v ^overlay; cat /proc/net/unix",
    )
    .await;
    assert!(!seen.contains(&engine), "{seen}");
    assert!(!seen.contains("docker.sock"), "{seen}");
    let state = fixture.state.path().display().to_string();
    assert!(!seen.contains(&state), "{seen}");
    let sockets = "test -S /.zareba/door/s && find / -type s 2>/dev/null | wc -l";
    let sockets = output(&*sandbox, sockets).await;
    assert_eq!(sockets, "0", "others could be listed");
    close(&fixture, sandbox).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_is_in_no_place_that_programs_or_the_engine_can_read() {
    let fixture = fixture(DEBIAN);
    let sandbox = fixture.sandbox().await;
    let record = fixture
        .state
        .path()
        .join("docker")
        .join(sandbox.id().as_str());
    let record = fs::read_to_string(record.join("sandbox.json")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    let key = record["key"].as_str().unwrap();
    assert_eq!(key.len(), 64);
    for file in ["environ", "mem", "maps", "fd", "root"] {
        let (code, said) = run(&*sandbox, &format!("cat /proc/1/{file}/ /proc/1/{file}")).await;
        assert_ne!(code, 0, "{file}: {said}");
    }
    let inspected = fixture.docker(&["inspect", &container(&*sandbox)]);
    let logged = fixture.docker(&["logs", &container(&*sandbox)]);
    assert!(!inspected.contains(key) && !logged.contains(key));
    // And without it nobody inside gets anything from the executor.
    let ask = "python3 - <<'END'\nimport socket\ns = socket.socket(socket.AF_UNIX)\n\
               s.connect('/.zareba/door/s')\n\
               s.sendall(b'POST /list_files HTTP/1.1\\r\\nHost: localhost\\r\\n\
               Content-Type: application/json\\r\\nContent-Length: 2\\r\\n\\r\\n{}')\n\
               print(s.recv(100).split()[1].decode())\nEND";
    assert_eq!(output(&*sandbox, ask).await, "403");
    close(&fixture, sandbox).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_network_there_is_none_and_one_of_its_own_leads_nowhere_dk_4() {
    let interfaces = "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '";
    let fixture_one = fixture(BUSYBOX);
    let sandbox = fixture_one.sandbox().await;
    assert_eq!(output(&*sandbox, interfaces).await, "lo");
    assert_eq!(sandbox.ports(), []);
    assert_eq!(fixture_one.docker(&["port", &container(&*sandbox)]), "");
    close(&fixture_one, sandbox).await;

    let fixture = fixture_with(BUSYBOX, |options| {
        options.network = NetworkChoice::Own(Reach::Inside);
    });
    let (one, other) = tokio::join!(fixture.sandbox(), fixture.sandbox());
    assert_eq!(output(&*one, interfaces).await, "lo\neth0");
    // Not even a sandbox beside it can be reached.
    let address = output(&*other, "hostname -i").await;
    let (code, said) = run(&*one, &format!("nc -w 2 {address} 80")).await;
    assert_ne!(code, 0, "{said}");
    one.close().await.unwrap();
    close(&fixture, other).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn orphans_are_reaped_by_the_first_process() {
    let fixture = fixture(DEBIAN);
    let sandbox = fixture.sandbox().await;
    let orphans = "for i in 1 2 3 4 5; do (setsid sh -c 'sleep 0.1' &) ; done; sleep 3; \
                   grep -l '^State:.Z' /proc/[0-9]*/status | wc -l";
    assert_eq!(output(&*sandbox, orphans).await, "0");
    close(&fixture, sandbox).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_relaxed_is_shown_and_the_rest_holds_dk_1() {
    let fixture = fixture_with(DEBIAN, |options| {
        options.network = NetworkChoice::Own(Reach::Everywhere);
        options.relaxed.root = RootMode::Writable;
        options.relaxed.capabilities = vec!["NET_BIND_SERVICE".to_owned()];
        options.relaxed.debugging = Debugging::Allowed;
        options.user = SandboxUser::Numbers { uid: 0, gid: 0 };
        options.ports = vec![PortRequest {
            choice: PortChoice::Any { inside: 8000 },
            variable: None,
        }];
    });
    let sandbox = fixture.sandbox().await;
    let inspect = sandbox.inspect().await.unwrap();
    let relaxed: Vec<&str> = inspect["relaxed"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|item| item.as_str())
        .collect();
    assert_eq!(
        relaxed,
        [
            "user: root of this machine, without capabilities",
            "network: reaches everywhere",
            "root: the image's files can be changed, without a bound",
            "capability: NET_BIND_SERVICE",
            "system calls: debuggers",
        ]
    );
    assert_eq!(inspect["walls"]["seccomp"], "ours");
    assert_eq!(inspect["kernel"]["capabilities"], "0000000000000400");
    assert_eq!(inspect["kernel"]["no_new_privileges"], true);
    assert_eq!(
        output(&*sandbox, "id -u; touch /etc/x && echo written").await,
        "0\nwritten"
    );
    assert_eq!(
        calls(&*sandbox, &["425,1,0", "101,0,0,0,0"]).await,
        ["EPERM", "done"]
    );
    close(&fixture, sandbox).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_strictest_sandbox_is_described_as_the_kernel_holds_it() {
    let fixture = fixture(BUSYBOX);
    let sandbox = fixture.runtime.create(spec()).await.unwrap();
    let inspect = sandbox.inspect().await.unwrap();
    assert_eq!(inspect["relaxed"], serde_json::json!([]));
    assert_eq!(
        inspect["kernel"],
        serde_json::json!({
            "uid": 1000,
            "gid": 1000,
            "capabilities": "0000000000000000",
            "no_new_privileges": true,
            "seccomp": "filter",
        })
    );
    assert_eq!(inspect["walls"]["read_only_root"], true);
    assert_eq!(inspect["walls"]["privileged"], false);
    assert_eq!(inspect["walls"]["network"], "none");
    assert_eq!(inspect["state"], "running");
    assert!(inspect["use"]["memory_bytes"].as_u64().unwrap() > 0);
    assert!(
        inspect["image"]["id"]
            .as_str()
            .unwrap()
            .starts_with("sha256:")
    );
    close(&fixture, sandbox).await;
}
