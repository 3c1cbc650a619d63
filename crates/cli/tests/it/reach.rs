//! Into a sandbox and out of it: `cp`, `port`, `logs`.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _},
    net::{TcpListener, TcpStream},
    process::{Child, Stdio},
};

use rustix::{
    fs::{CWD, FileType},
    process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open},
};
use serde_json::Value;

use crate::support::{Lasting, PATIENCE, Place, ends_within};

/// A program that goes on beside the test, and ends with it.
struct Beside(Child);

impl Beside {
    fn start(place: &Place, arguments: &[&str]) -> Self {
        let mut command = place.zareba(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }

    /// The next line that it prints.
    fn line(&mut self) -> String {
        let mut line = Vec::new();
        let stdout = self.0.stdout.as_mut().unwrap();
        let mut byte = [0];
        while stdout.read(&mut byte).unwrap() == 1 && byte != *b"\n" {
            line.extend(byte);
        }
        String::from_utf8(line).unwrap()
    }

    fn ends(&mut self) -> Option<i32> {
        let process = pidfd_open(Pid::from_child(&self.0), PidfdFlags::empty()).unwrap();
        assert!(ends_within(&process, PATIENCE), "it does not end");
        self.0.wait().unwrap().code()
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn files_go_in_and_out_under_old_and_new_names() {
    let place = Place::new();
    let sandbox = Lasting::create(&place, &["--name", "box"]);
    let directory = place.path("workspace/sub");
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("a"), "first\n").unwrap();
    fs::write(place.path("workspace/c:d"), "colon\n").unwrap();
    let copy = |source: &str, destination: &str| {
        let told = place.output(&["cp", source, destination]);
        let end = (told.code, told.stdout.as_str(), told.stderr.as_str());
        assert_eq!(end, (Some(0), "", ""), "{source} {destination}");
    };
    copy("sub", "box:/tmp");
    copy("sub/a", "box:b");
    copy("sub/a", "box:/tmp");
    copy("sub/a", "box:new/");
    copy("./c:d", "box:");
    let told = place.output(&[
        "exec",
        sandbox.id(),
        "--",
        "find /tmp/sub /tmp/a . -type f | sort",
    ]);
    assert_eq!(told.stdout, "./b\n./c:d\n./new/a\n/tmp/a\n/tmp/sub/a\n");

    copy("box:b", "renamed");
    copy("box:b", "sub");
    copy("box:/tmp/sub", "copies");
    copy("box:new", ".");
    let read = |name: &str| fs::read_to_string(place.path("workspace").join(name)).unwrap();
    for name in ["renamed", "sub/b", "copies/sub/a", "new/a"] {
        assert_eq!(read(name), "first\n", "{name}");
    }
    assert_eq!(place.temporary_files(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_copy_that_makes_no_sense_is_refused() {
    let place = Place::new();
    let _sandbox = Lasting::create(&place, &["--name", "box"]);
    for (source, destination) in [("a", "b"), ("box:a", "box:b")] {
        let told = place.output(&["cp", source, destination]);
        assert_eq!(told.code, Some(120), "{source} {destination}");
        assert!(
            told.stderr.contains("one side must be in a sandbox"),
            "{}",
            told.stderr
        );
    }
    let told = place.output(&["cp", "none", "box:/tmp"]);
    assert_eq!(told.code, Some(120));
    assert!(
        told.stderr.starts_with("error: cannot read `none`\n"),
        "{}",
        told.stderr
    );
    let told = place.output(&["cp", "box:none", "here"]);
    assert_eq!(told.code, Some(120), "{}", told.stderr);
    assert_eq!(
        told.stderr,
        "error: there is no `none` in the sandbox `box`\n"
    );
    assert!(!place.path("workspace/here").exists());
    let left: Vec<_> = fs::read_dir(place.path("workspace")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_port_that_is_taken_is_told_with_a_way_on() {
    let place = Place::new();
    let sandbox = Lasting::create(&place, &[]);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let told = place.output(&["port", sandbox.id(), "8000", "--on", &port.to_string()]);
    assert_eq!(told.code, Some(122), "{}", told.stderr);
    let hint = "  hint: leave out `--on` for a free port, or name another\n";
    assert!(told.stderr.ends_with(hint), "{}", told.stderr);
}

#[test]
fn a_port_inside_is_listed_and_reached() {
    let place = Place::new();
    let sandbox = Lasting::create(&place, &[]);
    let id = sandbox.id();
    let program = "import socket\n\
                   server = socket.create_server(('127.0.0.1', 8000))\n\
                   print('ready', flush=True)\n\
                   while True: server.accept()[0].sendall(b'hello from inside')";
    let mut inside = Beside::start(&place, &["exec", id, "--", "python3", "-c", program]);
    assert_eq!(inside.line(), "ready");
    let told = place.output(&["port", id]);
    assert_eq!(
        (told.code, told.stdout.as_str()),
        (Some(0), "127.0.0.1:8000\n")
    );

    let mut forwarder = Beside::start(&place, &["port", id, "8000"]);
    let line = forwarder.line();
    let address = line.strip_prefix("http://").unwrap();
    for _ in 0..2 {
        let mut connection = TcpStream::connect(address).unwrap();
        connection.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "hello from inside");
    }
    kill_process(Pid::from_child(&forwarder.0), Signal::TERM).unwrap();
    assert_eq!(forwarder.ends(), Some(143));
    assert!(TcpStream::connect(address).is_err());
    assert_eq!(place.output(&["port", id, "0"]).code, Some(120));
}

#[test]
fn the_log_is_printed_and_followed_until_the_sandbox_ends() {
    let place = Place::new();
    let sandbox = Lasting::create(&place, &["--name", "chatty"]);
    // The first line is written beside the start, so it is waited for.
    let mut follower = Beside::start(&place, &["logs", "--executor", "-f", "chatty"]);
    let first = follower.line();
    assert!(first.starts_with("zareba: listening on "), "{first}");
    let told = place.output(&["logs", "--executor", "chatty"]);
    assert_eq!((told.code, told.stderr.as_str()), (Some(0), ""));
    assert_eq!(told.stdout.lines().next(), Some(first.as_str()));
    let json = place.output(&["logs", "--executor", "-o", "json", "chatty"]);
    let line: Value = serde_json::from_str(json.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(line["line"].as_str(), told.stdout.lines().next());

    let path = place.path("state/native/chatty/log");
    let mut log = fs::File::options().append(true).open(path).unwrap();
    std::io::Write::write_all(&mut log, b"one more\nand no end").unwrap();
    assert_eq!(follower.line(), "one more");
    assert_eq!(place.output(&["stop", sandbox.id()]).code, Some(0));
    let mut rest = String::new();
    let mut stdout = BufReader::new(follower.0.stdout.take().unwrap());
    stdout.read_line(&mut rest).unwrap();
    assert_eq!(follower.ends(), Some(0));
    assert!(rest.starts_with("and no end"), "{rest}");
}

#[test]
fn a_sandbox_of_a_command_has_no_log_and_says_so() {
    let place = Place::new();
    let fifo = place.path("fifo");
    let mode = 0o600.into();
    rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, mode, 0).unwrap();
    let script = format!("echo > {}; exec sleep 1000", fifo.display());
    let mut command = Beside::start(&place, &["run", "--runtime", "local", "--", &script]);
    // Its end comes when the command has opened it, so the command runs.
    assert_eq!(fs::read_to_string(&fifo).unwrap(), "\n");
    let id = place.output(&["ps", "-q"]).stdout.trim_end().to_owned();
    assert!(!id.is_empty());
    let told = place.output(&["logs", "--executor", &id]);
    assert_eq!(told.code, Some(125));
    assert!(told.stderr.contains("has no log"), "{}", told.stderr);
    // Whoever stops it ends the command.
    assert_eq!(place.output(&["stop", &id]).code, Some(0));
    assert_eq!(command.ends(), Some(123));
}
