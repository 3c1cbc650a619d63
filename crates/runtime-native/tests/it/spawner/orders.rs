//! A spawner that is spoken to without a runtime.

use std::{
    fs::DirBuilder,
    io::{self, BufRead as _, BufReader, PipeReader, PipeWriter, Read as _, Write as _},
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::fs::DirBuilderExt as _,
    },
    path::Path,
    process::{Child, Command, Stdio},
};

use rustix::{
    net::{RecvFlags, recv},
    process::{Pid, WaitOptions, waitpid},
};
use zareba_confine::handover;
use zareba_testkit::traces;

use crate::fixture;

struct Spawner {
    channel: OwnedFd,
    process: Child,
}

/// A process that a spawner has made, and our ends of its standard descriptors.
struct Copy {
    pid: Pid,
    lifeline: PipeWriter,
    output: BufReader<PipeReader>,
    errors: PipeReader,
}

impl Spawner {
    fn start(state: &Path) -> Self {
        let (channel, theirs) = handover::pair().unwrap();
        let process = Command::new(fixture::program())
            .args(["spawner", "--for"])
            .arg(state)
            .stdin(theirs)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self { channel, process }
    }

    fn copy(&self, order: &[u8]) -> Copy {
        let (input, lifeline) = io::pipe().unwrap();
        let (output, output_inside) = io::pipe().unwrap();
        let (errors, errors_inside) = io::pipe().unwrap();
        let standard = [input.as_fd(), output_inside.as_fd(), errors_inside.as_fd()];
        handover::send_with(&self.channel, order, &standard).unwrap();
        let mut answer = [0; 4];
        recv(&self.channel, &mut answer, RecvFlags::empty()).unwrap();
        Copy {
            pid: Pid::from_raw(i32::from_ne_bytes(answer)).unwrap(),
            lifeline,
            output: BufReader::new(output),
            errors,
        }
    }

    /// It ends when nobody can ask it any more.
    fn end(mut self) {
        drop(self.channel);
        assert!(self.process.wait().unwrap().success());
    }
}

impl Copy {
    /// Lets go of it, and returns its status and what it has written when it has ended.
    fn end(mut self) -> (Option<i32>, String, String) {
        drop(self.lifeline);
        let (mut output, mut errors) = (String::new(), String::new());
        self.output.read_to_string(&mut output).unwrap();
        self.errors.read_to_string(&mut errors).unwrap();
        let ended = waitpid(Some(self.pid), WaitOptions::empty()).unwrap();
        let (_, status) = ended.unwrap();
        (status.exit_status(), output, errors)
    }
}

/// For a sandbox that could be made.
fn order(directory: &Path) -> Vec<u8> {
    let path = directory.to_str().unwrap();
    let line = format!(
        "zareba supervise --id copied --unix {path}/s --directory {path} --workspace-mode copy-on-write \
         --network none --memory 268435456 --pids 64 --cpu-millis 1000 --disk 1073741824 \
         --inodes 100000 --system copy-on-write --lifeline"
    );
    let words: Vec<&str> = line.split(' ').collect();
    let count = words.len().to_string();
    let strings = [&[count.as_str()], words.as_slice(), &["SESSION_API_KEY=k"]].concat();
    strings
        .join("\0")
        .into_bytes()
        .into_iter()
        .chain([0])
        .collect()
}

#[tokio::test]
async fn a_copy_begins_with_the_word_to_go_ahead_and_without_it_has_made_nothing() {
    let fixture = fixture::native();
    let directory = fixture.state.path().join("native/copied");
    let mut private = DirBuilder::new();
    private.recursive(true).mode(0o700);
    private.create(&directory).unwrap();
    let order = order(&directory);
    let spawner = Spawner::start(fixture.state.path());
    for word in ["", "+"] {
        let mut copy = spawner.copy(&order);
        copy.lifeline.write_all(word.as_bytes()).unwrap();
        let complaint = "cannot begin as a supervisor: unexpected end of file\n";
        let nothing = (Some(1), String::new(), complaint.to_owned());
        assert_eq!(copy.end(), nothing, "after `{word}`");
        assert_eq!(traces::entries(&directory), [""; 0]);
    }
    let mut copy = spawner.copy(&order);
    copy.lifeline.write_all(b">").unwrap();
    let mut told = [String::new(), String::new()];
    for line in &mut told {
        copy.output.read_line(line).unwrap();
    }
    told.sort_unstable();
    assert_eq!(told, ["kept\n", "ready\n"]);
    copy.end();
    spawner.end();
    assert_eq!(fixture.runtime.reap().await.unwrap(), 1);
    assert_eq!(fixture.leftovers(), [""; 0]);
}
