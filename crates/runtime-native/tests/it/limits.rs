//! Limits of a `native` sandbox: each at its end is named in the observation, and what else runs
//! there goes on.

use zareba_protocol::{
    Action, CommandMetadata, LimitHit, LimitKind, Observation, ObservationKind, RunCommand,
};
use zareba_runtime::{Runtime as _, Sandbox, SandboxRequest, Strictness};
use zareba_runtime_native::{
    DiskLimit, Hold, LocalOptions, Reachable, ServerLifetime, SystemMode, Usage, Walls,
    WorkspaceMode, can_hold,
};

use crate::fixture::{self, output, spec};

const MIB: u64 = 1024 * 1024;

const TIGHT: Walls = Walls {
    workspace: WorkspaceMode::CopyOnWrite,
    system: SystemMode::CopyOnWrite,
    guarded: Vec::new(),
    home_tools: zareba_runtime_native::HomeAccess::Hidden,
    network: Reachable::Nothing,
    usage: Usage {
        memory_bytes: 128 * MIB,
        pids: 40,
        cpu_millis: 2000,
        disk: DiskLimit {
            bytes: 32 * MIB,
            inodes: 500,
        },
    },
    strictness: Strictness::Strict,
};

async fn observe(sandbox: &dyn Sandbox, command: &str) -> (CommandMetadata, String) {
    let action = Action::Run(RunCommand {
        blocking: true,
        ..RunCommand::new(command)
    });
    let answer = sandbox.run_action(action.into()).await.unwrap();
    let Observation { content, kind } = answer.observation;
    match kind {
        ObservationKind::Run(run) => (run.metadata, content),
        other => panic!("{other:?}: {content}"),
    }
}

fn only(metadata: &CommandMetadata) -> &LimitHit {
    match metadata.limits.as_slice() {
        [limit] => limit,
        limits => panic!("{limits:?} {}", metadata.suffix),
    }
}

/// Root has control groups for it, others a supervisor that looks.
#[tokio::test]
async fn memory_that_runs_out_is_named_and_the_executor_survives_ns_17() {
    let fixture = fixture::native_with(TIGHT);
    let sandbox = fixture.runtime.create(spec()).await.unwrap();
    let (modest, content) = observe(&*sandbox, "python3 -c 'x = bytearray(32 << 20)'").await;
    assert_eq!((modest.exit_code, modest.limits), (0, vec![]), "{content}");
    let (greedy, content) = observe(&*sandbox, "python3 -c 'x = bytearray(1 << 30)'").await;
    assert_ne!(greedy.exit_code, 0, "{content}");
    assert_eq!(only(&greedy).kind, LimitKind::OomKilled);
    let message = "the sandbox reached its memory limit of 128 MiB and a process was killed";
    assert_eq!(only(&greedy).message, message);
    assert!(greedy.suffix.contains(message), "{}", greedy.suffix);
    // Told once, by the action that met it.
    let (after, content) = observe(&*sandbox, "echo alive").await;
    assert_eq!((after.limits, content.as_str()), (vec![], "alive"));
    sandbox.close().await.unwrap();
}

#[tokio::test]
async fn a_limit_that_was_met_before_a_sandbox_is_found_again_is_not_told_again() {
    let lifetime = ServerLifetime::KeptAlive { idle_timeout: None };
    let local = LocalOptions {
        lifetime,
        ..fixture::local_options()
    };
    let fixture = fixture::native_in(fixture::state(), local, TIGHT);
    let sandbox = fixture.runtime.create(spec()).await.unwrap();
    let (greedy, content) = observe(&*sandbox, "python3 -c 'x = bytearray(1 << 30)'").await;
    assert_eq!(only(&greedy).kind, LimitKind::OomKilled, "{content}");
    let found = fixture.runtime.attach(sandbox.id()).await.unwrap();
    drop(sandbox);
    let (after, content) = observe(&*found, "echo alive").await;
    assert_eq!((after.limits, content.as_str()), (vec![], "alive"));
    found.close().await.unwrap();
}

/// Memory that several processes have in common counts once, and files in memory count.
#[tokio::test]
async fn memory_is_held_as_what_all_processes_have_together_ns_15() {
    const SHARED: &str = "python3 -c 'import os, time\nx = bytearray(40 << 20)\nchildren = [os.fork() for n in range(3)]\n\
                          time.sleep(1)\nall(children) or os._exit(0)\n[os.wait() for n in children[:2]]'";
    const FILES: &str = "head -c 25M /dev/zero | tee /tmp/x > /tmp/y; python3 -c 'import time; x = bytearray(90 << 20); time.sleep(60)'";
    let fixture = fixture::native_with(TIGHT);
    let sandbox = fixture.runtime.create(spec()).await.unwrap();
    let (shared, content) = observe(&*sandbox, SHARED).await;
    assert_eq!(shared.limits, [], "{content}");
    let (together, content) = observe(&*sandbox, FILES).await;
    assert_eq!(only(&together).kind, LimitKind::OomKilled, "{content}");
    sandbox.close().await.unwrap();
}

/// Also for users without control groups, and by whatever means: no more than the limit come to be.
#[tokio::test]
async fn processes_end_at_their_limit_ns_15() {
    let fixture = fixture::native_with(TIGHT);
    let sandbox = fixture.runtime.create(spec()).await.unwrap();
    let many = "python3 - <<'END'\nimport os, signal\nchildren = []\ntry:\n    for n in range(100):\n        \
                child = os.fork()\n        if child == 0:\n            signal.pause()\n        \
                children.append(child)\nexcept OSError as error:\n    print(error.errno, 20 < len(children) < 40)\n\
                for child in children:\n    os.kill(child, 9)\nEND";
    assert_eq!(output(&*sandbox, many).await, "11 True");
    sandbox.close().await.unwrap();
}

#[tokio::test]
async fn a_report_says_what_holds_each_limit_ns_15() {
    let fixture = fixture::native_with(TIGHT);
    let sandbox = fixture.runtime.create(spec()).await.unwrap();
    let report = sandbox.inspect().await.unwrap();
    let names = |pointer: &str| {
        let rows = report.pointer(pointer).and_then(|rows| rows.as_array());
        let names = rows
            .unwrap()
            .iter()
            .map(|row| row["limit"].as_str().unwrap());
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    let held = |hold: &Hold| matches!(hold, Hold::ProcessLimit | Hold::Watched { .. });
    let holds = can_hold(Strictness::Strict);
    let expected = [
        ("memory", &holds.memory),
        ("pids", &holds.pids),
        ("disk", &holds.disk),
    ];
    let expected = expected.into_iter().filter(|(_, hold)| held(hold));
    let expected: Vec<&str> = expected.map(|(name, _)| name).collect();
    assert_eq!(names("/enforcement/other_limits"), expected);
    let groups = names("/enforcement/control_groups/enforced");
    assert_eq!(
        groups.contains(&"cpu".to_owned()),
        holds.cpus == Hold::ControlGroup
    );
    let grant = fixture.runtime.grant(&SandboxRequest::default()).unwrap();
    assert_eq!(
        [
            grant.memory_bytes.is_some(),
            grant.cpu_millis.is_some(),
            grant.pids.is_some()
        ],
        [&holds.memory, &holds.cpus, &holds.pids].map(|hold| !matches!(hold, Hold::No { .. }))
    );
    let missing = names("/enforcement/control_groups/missing");
    assert!(
        !missing
            .iter()
            .any(|limit| expected.contains(&limit.as_str()))
    );
    sandbox.close().await.unwrap();
}

#[tokio::test]
#[ignore = "needs root"]
async fn processes_that_were_refused_are_named_ns_13() {
    let fixture = fixture::native_with(TIGHT);
    let sandbox = fixture.runtime.create(spec()).await.unwrap();
    let few = "python3 -c 'import os; [os.fork() or os._exit(0) for n in range(10)]'";
    assert_eq!(observe(&*sandbox, few).await.0.limits, []);
    let many = "python3 - <<'END'\nimport os, time\nchildren = []\ntry:\n    for n in range(100):\n        \
                child = os.fork()\n        if child == 0:\n            time.sleep(1000)\n        \
                children.append(child)\nexcept OSError as error:\n    print(error.errno)\n\
                for child in children:\n    os.kill(child, 9)\nEND";
    let (refused, content) = observe(&*sandbox, many).await;
    assert_eq!(content, "11");
    assert_eq!(only(&refused).kind, LimitKind::PidsLimit);
    assert!(
        only(&refused).message.contains("its limit of 40 processes"),
        "{refused:?}"
    );
    sandbox.close().await.unwrap();
}

#[tokio::test]
async fn files_that_become_too_many_or_too_large_are_named_and_can_be_removed_ns_16() {
    let fixture = fixture::native_with(TIGHT);
    let sandbox = fixture.runtime.create(spec()).await.unwrap();
    let (fine, content) = observe(&*sandbox, "head -c 16M /dev/zero > fine; echo $?").await;
    assert_eq!((fine.limits, content.as_str()), (vec![], "0"));
    // Each file is small enough for the kernel; together they are too large.
    let filler = "for n in $(seq 1000); do head -c 8M /dev/zero > f$n; sleep 0.05; done";
    let (filled, content) = observe(&*sandbox, filler).await;
    assert_eq!(
        only(&filled).kind,
        LimitKind::DiskQuotaExceeded,
        "{content}"
    );
    assert!(filled.shell_restarted, "{filled:?}");
    assert_eq!(output(&*sandbox, "rm f[0-9]*; ls").await, "fine");
    let many = "mkdir many; for n in $(seq 100000); do : > many/$n; done";
    let (crowded, _) = observe(&*sandbox, many).await;
    assert_eq!(only(&crowded).kind, LimitKind::DiskQuotaExceeded);
    assert_eq!(output(&*sandbox, "rm -r many; echo gone").await, "gone");
    sandbox.close().await.unwrap();
}

/// Each command is over before the next look, so that there is nobody left to kill.
#[tokio::test]
async fn many_short_commands_do_not_outgrow_the_disk_limit_by_much_ns_16() {
    const EACH: u64 = 30;
    let fixture = fixture::native_with(TIGHT);
    let sandbox = fixture.runtime.create(spec()).await.unwrap();
    let mut written = 0;
    let ended = loop {
        let command = format!("head -c {EACH}M /dev/zero > f{written}");
        let action = Action::Run(RunCommand {
            blocking: true,
            ..RunCommand::new(&command)
        });
        match sandbox.run_action(action.into()).await {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 400, "it goes on and on");
    };
    let told = std::error::Error::source(&ended).unwrap().to_string();
    assert!(told.contains("`native.disk`"), "{ended}: {told}");
    sandbox.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
}

/// A descriptor that waits in a socket is in no process's table.
#[tokio::test]
async fn deleted_files_in_a_socket_count_towards_the_disk_limit_ns_16() {
    const SENT: &str = "python3 - <<'END'\nimport array, os, socket, time\nheld = []\nfor n in range(1000):\n    \
                        ends = socket.socketpair()\n    held.append(ends)\n    \
                        file = open(f'x{n}', 'wb', buffering=0)\n    os.unlink(f'x{n}')\n    \
                        file.write(bytes(2 << 20))\n    \
                        socket.send_fds(ends[0], [b'x'], [file.fileno()])\n    file.close()\n    \
                        time.sleep(0.02)\nEND";
    let fixture = fixture::native_with(TIGHT);
    let sandbox = fixture.runtime.create(spec()).await.unwrap();
    let (filled, content) = observe(&*sandbox, SENT).await;
    assert_eq!(
        only(&filled).kind,
        LimitKind::DiskQuotaExceeded,
        "{content}"
    );
    sandbox.close().await.unwrap();
}

#[tokio::test]
async fn a_single_file_cannot_outgrow_the_limit_at_all_ns_15() {
    let fixture = fixture::native_with(TIGHT);
    let sandbox = fixture.runtime.create(spec()).await.unwrap();
    let (metadata, content) = observe(&*sandbox, "head -c 100M /dev/zero > large").await;
    assert_ne!(metadata.exit_code, 0, "{content}");
    assert_eq!(only(&metadata).kind, LimitKind::DiskQuotaExceeded);
    let size = output(&*sandbox, "stat -c %s large").await;
    assert!(size.parse::<u64>().unwrap() <= 32 * MIB, "{size}");
    sandbox.close().await.unwrap();
}

#[tokio::test]
async fn a_busy_sandbox_leaves_another_one_usable() {
    let fixture = fixture::native_with(TIGHT);
    let busy = fixture.runtime.create(spec()).await.unwrap();
    let calm = fixture.runtime.create(spec()).await.unwrap();
    let flood = Action::Run(RunCommand {
        blocking: true,
        ..RunCommand::new("(while :; do :; done) & yes | head -c 20M")
    });
    let flooding = busy.run_action(flood.into());
    let answering = async {
        for number in 0..50 {
            let command = format!("echo {number}");
            assert_eq!(output(&*calm, &command).await, number.to_string());
        }
    };
    let (flooded, ()) = tokio::join!(flooding, answering);
    flooded.unwrap();
    busy.close().await.unwrap();
    calm.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
}

/// Held by descriptors, by a mapping or by a process that hides its own files: none of it has a name.
#[tokio::test]
async fn deleted_files_that_are_still_open_count_towards_the_disk_limit_ns_16() {
    const UNNAMED: &str = "python3 - <<'END'\nimport ctypes, os, time\nctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\n\
                           held = []\nfor n in range(1000):\n    held.append(open(f'x{n}', 'wb', buffering=0))\n    \
                           os.unlink(f'x{n}')\n    held[-1].write(bytes(2 << 20))\n    time.sleep(0.02)\nEND";
    let fixture = fixture::native_with(TIGHT);
    let sandbox = fixture.runtime.create(spec()).await.unwrap();
    let (fine, content) = observe(
        &*sandbox,
        "exec 8>few; rm few; head -c 16M /dev/zero >&8; echo $?",
    )
    .await;
    assert_eq!((fine.limits, content.as_str()), (vec![], "0"));
    let (filled, content) = observe(&*sandbox, UNNAMED).await;
    let limit = only(&filled);
    assert_eq!(limit.kind, LimitKind::DiskQuotaExceeded, "{content}");
    assert_eq!(output(&*sandbox, "echo on").await, "on");
    sandbox.close().await.unwrap();
}

/// A thread that has left the table of descriptors of its process has files that the process does not show.
#[tokio::test]
async fn deleted_files_that_one_thread_holds_count_towards_the_disk_limit_ns_16() {
    const OF_A_THREAD: &str = "python3 - <<'END'\nimport ctypes, os, threading, time\n\
                               def fill():\n    assert ctypes.CDLL(None).unshare(0x400) == 0\n    held = []\n    \
                               for n in range(1000):\n        held.append(open(f'x{n}', 'wb', buffering=0))\n        \
                               os.unlink(f'x{n}')\n        held[-1].write(bytes(2 << 20))\n        \
                               time.sleep(0.02)\nthread = threading.Thread(target=fill)\nthread.start()\nthread.join()\nEND";
    let fixture = fixture::native_with(TIGHT);
    let sandbox = fixture.runtime.create(spec()).await.unwrap();
    let (filled, content) = observe(&*sandbox, OF_A_THREAD).await;
    let limit = only(&filled);
    assert_eq!(limit.kind, LimitKind::DiskQuotaExceeded, "{content}");
    sandbox.close().await.unwrap();
}
