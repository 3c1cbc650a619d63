//! Limits of memory and processes: what meets them is told which, and the executor goes on.

use zareba_protocol::{Action, LimitKind, ObservationKind, RunCommand};
use zareba_runtime::{Runtime as _, Sandbox};
use zareba_wire::program::{ProgramLine, ProgramRequest};

use crate::fixture::{BUSYBOX, DEBIAN, fixture_with, output, run};

const MIB: u64 = 1 << 20;

/// The limits that a command met, with its exit code and the lines that an agent reads of them.
async fn met(sandbox: &dyn Sandbox, command: &str) -> (i64, Vec<LimitKind>, String) {
    let command = RunCommand {
        blocking: true,
        ..RunCommand::new(command)
    };
    let answer = sandbox.run_action(Action::Run(command).into()).await;
    let ObservationKind::Run(output) = answer.unwrap().observation.kind else {
        panic!("no command was run");
    };
    let metadata = output.metadata;
    let kinds = metadata.limits.iter().map(|limit| limit.kind).collect();
    (metadata.exit_code, kinds, metadata.suffix)
}

#[tokio::test(flavor = "multi_thread")]
async fn files_in_memory_leave_memory_for_commands_however_many_places_are_filled_ns_17() {
    let fixture = fixture_with(BUSYBOX, |options| options.usage.memory_bytes = 128 * MIB);
    let sandbox = fixture.sandbox().await;
    let places = "/workspace /tmp /var/tmp /run $HOME /dev/shm /.zareba/state";
    let fill = format!(
        "for place in {places}; do dd if=/dev/zero of=$place/x bs=1M count=400 2> /dev/null; done; true"
    );
    for _ in 0..2 {
        let (code, kinds, _) = met(&*sandbox, &fill).await;
        assert_eq!((code, kinds), (0, Vec::new()));
    }
    let sizes = format!("cat {}", places.replace(' ', "/x ") + "/x | wc -c");
    let kept: u64 = output(&*sandbox, &sizes).await.parse().unwrap();
    assert!((64 * MIB..=96 * MIB).contains(&kept), "{kept}");
    // Memory that a program needs, and the limit for it.
    let needs =
        |mebibytes: u32| format!("head -c {0}m /dev/zero | tail -c {0}m | wc -c", mebibytes);
    assert_eq!(output(&*sandbox, &needs(4)).await, (4 << 20).to_string());
    let (_, kinds, said) = met(&*sandbox, &needs(100)).await;
    assert_eq!(kinds, [LimitKind::OomKilled], "{said}");
    assert_eq!(output(&*sandbox, "echo unharmed").await, "unharmed");
    sandbox.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
}

/// The kernel's memory for a file counts also where nothing is in it.
#[tokio::test(flavor = "multi_thread")]
async fn empty_files_in_memory_leave_memory_for_commands_ns_17() {
    let fixture = fixture_with(DEBIAN, |options| options.usage.memory_bytes = 128 * MIB);
    let sandbox = fixture.sandbox().await;
    let fill = "python3 - <<'END'\nimport errno, os\nmade = 0\n\
                for place in ('/workspace', '/tmp', '/var/tmp', '/run', os.environ['HOME'], '/dev/shm'):\n\
                \x20 try:\n\x20   while True:\n\
                \x20     os.close(os.open(f'{place}/{made}', os.O_CREAT | os.O_EXCL))\n\x20     made += 1\n\
                \x20 except OSError as error:\n\x20   assert error.errno == errno.ENOSPC, error\n\
                print(made)\nEND";
    let made: u64 = output(&*sandbox, fill).await.parse().unwrap();
    assert!((4096..=96 * MIB / 8192).contains(&made), "{made}");
    assert_eq!(
        output(&*sandbox, "python3 -c 'print(len(bytes(8 << 20)))'").await,
        (8 * MIB).to_string()
    );
    sandbox.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
}

/// Neither ends with the process that made it.
#[tokio::test(flavor = "multi_thread")]
async fn queues_and_semaphores_of_system_v_leave_memory_for_commands_ns_17() {
    let fixture = fixture_with(DEBIAN, |options| options.usage.memory_bytes = 128 * MIB);
    let sandbox = fixture.sandbox().await;
    let fill = "python3 - <<'END'\nimport ctypes, errno\nlibc = ctypes.CDLL(None, use_errno=True)\n\
                def until_full(make):\n\x20 made = []\n\x20 while (number := make()) >= 0: made.append(number)\n\
                \x20 assert ctypes.get_errno() == errno.ENOSPC, ctypes.get_errno()\n\x20 return made\n\
                queues = until_full(lambda: libc.msgget(0, 0o600))\n\
                message = ctypes.c_long(1)\n\
                for queue in queues:\n\
                \x20 while libc.msgsnd(queue, ctypes.byref(message), 0, 0o4000) == 0: pass\n\
                sets = until_full(lambda: libc.semget(0, 250, 0o600))\n\
                segments = until_full(lambda: libc.shmget(0, 1, 0o600))\n\
                print(len(queues), len(sets), len(segments) <= 1024)\nEND";
    assert_eq!(output(&*sandbox, fill).await, "2 128 True");
    assert_eq!(
        output(&*sandbox, "python3 -c 'print(len(bytes(8 << 20)))'").await,
        (8 * MIB).to_string()
    );
    sandbox.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
}

/// What a program has open goes with it; what it shares by a number does not.
#[tokio::test(flavor = "multi_thread")]
async fn memory_that_no_process_maps_is_named_and_gone_with_its_holder_ns_17() {
    let fixture = fixture_with(DEBIAN, |options| options.usage.memory_bytes = 128 * MIB);
    let sandbox = fixture.sandbox().await;
    let memfd = "python3 -c 'import os\nfile = os.memfd_create(\"x\")\n\
                 while True: os.write(file, bytes(1 << 20))'";
    let sockets = "python3 -c 'import socket\nheld = []\n\
                   while True:\n  one, other = socket.socketpair()\n  one.setblocking(False)\n\
                   one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 30)\n\
                   held += [one, other]\n  try:\n    while True: one.send(bytes(65536))\n\
                   except BlockingIOError: pass'";
    for (what, command) in [("memfd", memfd), ("sockets", sockets)] {
        let (code, kinds, said) = met(&*sandbox, command).await;
        if what == "sockets" && kinds.is_empty() {
            // All descriptors are used before the memory is.
            assert_eq!(code, 1, "{said}");
        } else {
            assert_eq!((code, kinds), (137, vec![LimitKind::OomKilled]), "{what}");
            assert!(said.contains("memory limit of 128 MiB"), "{said}");
        }
        assert_eq!(output(&*sandbox, "echo unharmed").await, "unharmed");
    }
    let shared = "python3 -c 'import ctypes, errno\nlibc = ctypes.CDLL(None, use_errno=True)\n\
                  libc.shmat.restype = ctypes.c_void_p\nmade = 0\n\
                  while True:\n  number = libc.shmget(0, ctypes.c_size_t(1 << 20), 0o600)\n\
                  \x20 if number < 0: break\n  made += 1\n\
                  \x20 ctypes.memset(libc.shmat(number, None, 0), 1, 1 << 20)\n\
                  print(made < 32, errno.errorcode[ctypes.get_errno()])'";
    assert_eq!(output(&*sandbox, shared).await, "True ENOSPC");
    assert_eq!(output(&*sandbox, "echo unharmed").await, "unharmed");
    sandbox.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_that_were_refused_are_named_to_commands_and_programs_ns_13() {
    let fixture = fixture_with(DEBIAN, |options| options.usage.pids = 32);
    let sandbox = fixture.sandbox().await;
    let many = "python3 -c 'import os, signal\nchildren = []\ntry:\n  while True:\n    \
                child = os.fork()\n    if child == 0: signal.pause()\n    children += [child]\n\
                except BlockingIOError:\n  for child in children: os.kill(child, 9)'";
    let (_, kinds, said) = met(&*sandbox, many).await;
    assert_eq!(kinds, [LimitKind::PidsLimit], "{said}");
    assert!(said.contains("limit of 32 processes and threads"), "{said}");
    assert_eq!(met(&*sandbox, "true").await.1, [], "told once");

    // A program of a client is not an action, and its client asks for them.
    let line = ProgramLine::Shell(many.to_owned());
    let program = sandbox.start_program(ProgramRequest::new(line)).await;
    let (_input, mut events) = program.unwrap().split();
    while events.next().await.is_some() {}
    let kinds: Vec<LimitKind> = sandbox
        .limits_met(0)
        .await
        .iter()
        .map(|it| it.kind)
        .collect();
    assert_eq!(kinds, [LimitKind::PidsLimit]);

    let used = sandbox.inspect().await.unwrap()["use"].clone();
    assert!(used["pids_refused"].as_u64() > Some(1), "{used}");
    assert_eq!(used["oom_kills"], 0, "{used}");

    // Another process of ours that finds it tells nothing old.
    let found = fixture.runtime.attach(sandbox.id()).await.unwrap();
    assert_eq!(met(&*found, "true").await.1, []);
    drop(found);
    let (code, _) = run(&*sandbox, "true").await;
    assert_eq!(code, 0);
    sandbox.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
}
