//! What a program finds when it starts.

use std::{
    error::Error as _,
    fs::File,
    io::{Read as _, Seek as _, Write as _},
    os::fd::{AsRawFd as _, OwnedFd},
    path::Path,
};

use tokio::net::unix::pipe::Receiver;
use zareba_terminal::{Credentials, ExitReason, ExtraFd, PipedInput, Pty, Spawn, SpawnError};

use crate::{SIZE, screen, script, see};

/// What `spawn` writes up to the word END.
async fn output(mut spawn: Spawn) -> String {
    let text = spawn.arguments.last_mut().unwrap();
    text.push("; echo END");
    let pty = Pty::open(SIZE).unwrap();
    let child = spawn.on(&pty).unwrap();
    let text = see(&pty, &mut screen(), "END").await;
    drop(child);
    text.strip_suffix("END").unwrap().trim_end().to_owned()
}

fn file(content: &str) -> OwnedFd {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(content.as_bytes()).unwrap();
    file.rewind().unwrap();
    OwnedFd::from(file)
}

#[tokio::test]
async fn a_program_leads_a_session_on_its_terminal() {
    // Fields behind the name: state, parent, group, session, terminal, foreground group.
    let text = output(script("set -- $(cut -d' ' -f5- /proc/$$/stat); echo $(($1 == $$)) $(($2 == $$)) $(($4 == $$)); [ -t 0 ] && [ -t 1 ] && [ -t 2 ] && tty >/dev/tty")).await;
    let (numbers, terminal) = text.split_once('\n').unwrap();
    assert_eq!(numbers, "1 1 1");
    assert!(terminal.starts_with("/dev/pts/"), "{terminal}");
}

#[tokio::test]
async fn the_environment_is_what_was_given_and_nothing_else() {
    let mut spawn =
        script("/usr/bin/env -0 | tr '\\0' '\\n' | grep -v -e ^PWD= -e ^OLDPWD= -e ^_= -e ^SHLVL=");
    spawn.environment.push(("WORD".into(), "two words".into()));
    assert_eq!(
        output(spawn).await,
        "PATH=/usr/local/bin:/usr/bin:/bin\nWORD=two words"
    );
}

#[tokio::test]
async fn the_directory_and_the_own_name_are_what_was_given() {
    let directory = tempfile::tempdir().unwrap();
    let mut spawn = script("pwd; tr '\\0' '\\n' </proc/$$/cmdline | head -n 1");
    spawn.directory = directory.path().canonicalize().unwrap();
    spawn.arg0 = "-custom".into();
    let expected = format!("{}\n-custom", spawn.directory.display());
    assert_eq!(output(spawn).await, expected);
}

#[tokio::test]
async fn no_descriptor_comes_along_but_the_extra_ones() {
    let leaked = file("leaked");
    rustix::io::fcntl_setfd(&leaked, rustix::io::FdFlags::empty()).unwrap();
    let mut spawn = script("ls -m /proc/$$/fd; cat <&57; cat <&58");
    spawn.program = "/bin/bash".into();
    spawn.extra = vec![
        ExtraFd {
            descriptor: file("first "),
            number: 57,
        },
        ExtraFd {
            descriptor: file("second"),
            number: 58,
        },
    ];
    assert_eq!(output(spawn).await, "0, 1, 2, 57, 58\nfirst second");
    drop(leaked);
}

#[tokio::test]
async fn extra_descriptors_arrive_whatever_numbers_they_have_here() {
    // Numbers that no other test uses.
    let high = |content| rustix::io::fcntl_dupfd_cloexec(file(content), 150).unwrap();
    for crossed in [true, false] {
        let (first, second) = (high("first "), high("second"));
        let mut numbers = [first.as_raw_fd(), second.as_raw_fd()];
        if crossed {
            numbers.reverse();
        }
        let mut spawn = script(&format!("cat <&{}; cat <&{}", numbers[0], numbers[1]));
        spawn.program = "/bin/bash".into();
        spawn.extra = vec![
            ExtraFd {
                descriptor: first,
                number: numbers[0],
            },
            ExtraFd {
                descriptor: second,
                number: numbers[1],
            },
        ];
        assert_eq!(output(spawn).await, "first second", "crossed: {crossed}");
    }
}

#[tokio::test]
async fn signals_are_as_they_should_be_though_ours_are_not() {
    const PIPE_BIT: u64 = 1 << 12;
    let ours = std::fs::read_to_string("/proc/self/status").unwrap();
    let ignored = ours
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:\t"))
        .unwrap();
    assert_ne!(
        u64::from_str_radix(ignored, 16).unwrap() & PIPE_BIT,
        0,
        "a Rust program ignores SIGPIPE"
    );
    let text = output(script("grep -e SigIgn -e SigBlk /proc/self/status")).await;
    // The C library keeps two signals behind the first 31 to itself.
    let classic = |set: &str| u64::from_str_radix(set, 16).unwrap() & 0x7fff_ffff;
    let sets: Vec<u64> = text
        .lines()
        .map(|line| classic(line.rsplit(' ').next().unwrap()))
        .collect();
    assert_eq!(sets, [0, 0], "{text}");
}

#[tokio::test]
async fn a_crash_leaves_no_core_and_starts_no_program_of_the_machine_ns_7() {
    let shown = output(script("grep '^Max core' /proc/self/limits")).await;
    let words: Vec<_> = shown.split_whitespace().collect();
    assert_eq!(words, ["Max", "core", "file", "size", "1", "1", "bytes"]);
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named() {
    let pty = Pty::open(SIZE).unwrap();
    let error = Spawn::new(Path::new("/nowhere/sh"), Path::new("/"))
        .on(&pty)
        .unwrap_err();
    assert_eq!(error.to_string(), "cannot start `/nowhere/sh`");
    assert!(error.source().unwrap().to_string().contains("No such file"));
    let error = Spawn::new(Path::new("/bin/sh"), Path::new("/nowhere"))
        .on(&pty)
        .unwrap_err();
    assert!(matches!(error, SpawnError::Start { .. }), "{error}");
}

#[tokio::test]
async fn another_user_can_be_had_by_root_alone() {
    let credentials = Credentials {
        uid: 65534,
        gid: 65533,
        groups: vec![65533, 65532],
    };
    let mut spawn = script(
        "grep -e ^Uid: -e ^Gid: -e ^Groups: /proc/self/status | tr -s '\\t ' ' '; [ -w /dev/tty ] && stat -c %u $(tty)",
    );
    spawn.credentials = Some(credentials);
    if rustix::process::geteuid().is_root() {
        let text = output(spawn).await;
        let expected = "Uid: 65534 65534 65534 65534\nGid: 65533 65533 65533 65533\nGroups: 65532 65533\n65534";
        assert_eq!(text.replace(" \n", "\n"), expected);
    } else {
        let pty = Pty::open(SIZE).unwrap();
        assert!(spawn.on(&pty).is_err());
    }
}

#[tokio::test]
async fn an_extra_descriptor_works_in_both_directions() {
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    let mut spawn = script("echo through the pipe >&9");
    spawn.extra = vec![ExtraFd {
        descriptor: writer,
        number: 9,
    }];
    let pty = Pty::open(SIZE).unwrap();
    let mut child = spawn.on(&pty).unwrap();
    assert_eq!(child.wait().await.unwrap(), ExitReason::Code(0));
    let mut text = String::new();
    File::from(reader).read_to_string(&mut text).unwrap();
    assert_eq!(text, "through the pipe\n");
}

/// All that comes out of a pipe until everybody has closed it.
async fn drained(pipe: Receiver) -> String {
    let (mut text, mut chunk) = (Vec::new(), [0; 1024]);
    loop {
        pipe.readable().await.unwrap();
        match pipe.try_read(&mut chunk) {
            Ok(0) => return String::from_utf8(text).unwrap(),
            Ok(length) => text.extend_from_slice(&chunk[..length]),
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock),
        }
    }
}

#[tokio::test]
async fn a_program_on_pipes_leads_a_session_without_a_terminal() {
    // Fields behind the name: group, session, terminal.
    let text = "set -- $(cut -d' ' -f5- /proc/$$/stat); echo $(($1 == $$)) $(($2 == $$)) $3; \
                cat; echo err >&2; exit 3";
    let (mut child, pipes) = script(text).on_pipes(PipedInput::Open).unwrap();
    let stdin = pipes.stdin.unwrap();
    stdin.writable().await.unwrap();
    assert_eq!(stdin.try_write(b"typed\n").unwrap(), 6);
    drop(stdin);
    assert_eq!(drained(pipes.stdout).await, "1 1 0\ntyped\n");
    assert_eq!(drained(pipes.stderr).await, "err\n");
    assert_eq!(child.wait().await.unwrap(), ExitReason::Code(3));
}

#[tokio::test]
async fn a_program_without_input_finds_its_end() {
    let (mut child, pipes) = script("cat; ls /proc/$$/fd | tr '\\n' ' '")
        .on_pipes(PipedInput::Empty)
        .unwrap();
    assert!(pipes.stdin.is_none());
    // The shell's own descriptors and nothing of ours.
    assert_eq!(drained(pipes.stdout).await, "0 1 2 ");
    assert_eq!(child.wait().await.unwrap(), ExitReason::Code(0));
}

#[tokio::test]
async fn a_signal_reaches_the_whole_group_until_the_program_is_waited_for() {
    let (mut child, pipes) = script("sleep 1000 & echo; wait")
        .on_pipes(PipedInput::Empty)
        .unwrap();
    pipes.stdout.readable().await.unwrap();
    child.signal_group(rustix::process::Signal::TERM);
    // Both held the pipe.
    assert_eq!(drained(pipes.stdout).await, "\n");
    assert_eq!(child.wait().await.unwrap(), ExitReason::Signal(15));
    child.signal_group(rustix::process::Signal::TERM);
}

#[tokio::test]
#[ignore = "needs root"]
async fn another_user_can_open_its_pipes_by_name() {
    let mut spawn = script("id -u; echo err >/dev/stderr; cat /dev/stdin");
    spawn.credentials = Some(Credentials {
        uid: 65_534,
        gid: 65_534,
        groups: vec![65_534],
    });
    let (mut child, pipes) = spawn.on_pipes(PipedInput::Open).unwrap();
    drop(pipes.stdin);
    assert_eq!(drained(pipes.stdout).await, "65534\n");
    assert_eq!(drained(pipes.stderr).await, "err\n");
    assert_eq!(child.wait().await.unwrap(), ExitReason::Code(0));
}
