//! `zareba shell`: at a terminal, and fed by a pipe.

use std::ffi::OsString;

use serde_json::Value;
use tokio::time::timeout;
use zareba_terminal::{Child, ExitReason, Pty, Size, Spawn};

use crate::support::{Lasting, PATIENCE, Place, ZAREBA};

#[test]
fn a_pipe_is_run_line_by_line_in_one_shell() {
    let place = Place::new();
    let told = place.output_with_input(&["shell"], "cd /tmp\n\npwd; A=1\nfalse\necho $A\n");
    assert_eq!((told.code, told.stdout.as_str()), (Some(0), "/tmp\n1\n"));
    let told = place.output_with_input(&["shell"], "echo before\nexit 5\necho after\n");
    assert_eq!(told.code, Some(5));
    assert!(
        told.stdout.starts_with("before\n") && !told.stdout.contains("after"),
        "{}",
        told.stdout
    );
    let told = place.output_with_input(&["shell", "-o", "json"], "echo hi\n");
    let observation: Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!(observation["content"], "hi");
    assert_eq!(place.temporary_files(), Vec::<std::path::PathBuf>::new());
}

/// A person at a terminal.
pub(crate) struct Person {
    pty: Pty,
    child: Child,
    seen: String,
}

impl Person {
    fn start(place: &Place, size: Size) -> Self {
        Self::start_with(place, size, &["shell", "--runtime", "cli"])
    }

    pub(crate) fn start_with(place: &Place, size: Size, arguments: &[&str]) -> Self {
        let pty = Pty::open(size).unwrap();
        let mut spawn = Spawn::new(ZAREBA.as_ref(), &place.path("workspace"));
        spawn.arguments = arguments.iter().map(OsString::from).collect();
        let variable = |name: &str, value: OsString| (OsString::from(name), value);
        spawn.environment = vec![
            variable("PATH", "/usr/local/bin:/usr/bin:/bin".into()),
            variable("HOME", place.path("home").into()),
            variable("TMPDIR", place.path("tmp").into()),
            variable("ZAREBA_STATE_DIRECTORY", place.path("state").into()),
            variable("TERM", "vt100".into()),
        ];
        let child = spawn.on(&pty).unwrap();
        Self {
            pty,
            child,
            seen: String::new(),
        }
    }

    /// Starts at a prompt that counts commands, `<2> ` first. Whoever types before a prompt is
    /// there, types into the shell's change of modes, and may lose it.
    async fn start_counting(place: &Place, size: Size) -> Self {
        let mut person = Self::start(place, size);
        person.sees("not isolated; `exit` leaves it").await;
        person.begins_to_count().await;
        person
    }

    async fn begins_to_count(&mut self) {
        // The prompt of root, and of anybody else.
        while !self.seen.contains("# ") && !self.seen.contains("$ ") {
            self.pty.readable().await.unwrap();
            look(&self.pty, &mut self.seen);
        }
        self.types("PS1='<\\#> '\r");
        self.sees("<2> ").await;
    }

    pub(crate) fn types(&self, keys: &str) {
        assert_eq!(self.pty.write(keys.as_bytes()).unwrap(), keys.len());
    }

    /// Waits until `text` has appeared on the screen.
    pub(crate) async fn sees(&mut self, text: &str) {
        let appears = async {
            while !self.seen.contains(text) {
                self.pty.readable().await.unwrap();
                look(&self.pty, &mut self.seen);
            }
        };
        if timeout(PATIENCE, appears).await.is_err() {
            panic!("`{text}` does not appear: {}", self.seen);
        }
    }

    /// Waits for the program to end, looking at the screen meanwhile.
    pub(crate) async fn leaves(&mut self) -> ExitReason {
        let Self { pty, child, seen } = self;
        let leaves = async {
            loop {
                tokio::select! {
                    ended = child.wait() => return ended.unwrap(),
                    ready = pty.readable() => {
                        ready.unwrap();
                        look(pty, seen);
                    }
                }
            }
        };
        match timeout(PATIENCE, leaves).await {
            Ok(ended) => ended,
            Err(_) => panic!("the shell does not end: {}", self.seen),
        }
    }
}

/// Adds what is on the screen now to what was seen.
fn look(pty: &Pty, seen: &mut String) {
    let mut chunk = [0; 4096];
    while let Some(length) = pty.read(&mut chunk).unwrap() {
        seen.push_str(&String::from_utf8_lossy(&chunk[..length]));
    }
}

const fn size(columns: u16, rows: u16) -> Size {
    Size { columns, rows }
}

/// A person who has counted two prompts finds that a command, a new size, keys and an exit code
/// pass, and that the terminal is theirs again in the end.
async fn is_relayed(mut person: Person, place: &Place, asked: &str, answered: &str) {
    person.types(asked);
    person.sees("<3> ").await;
    assert!(person.seen.contains(answered), "{}", person.seen);
    person.pty.resize(size(70, 20)).unwrap();
    person.types("until [ \"$(stty size)\" = '20 70' ]; do :; done\r");
    person.sees("<4> ").await;
    // A program that says so itself has the terminal already.
    person.types("sh -c 'echo wait\"\"ing; exec sleep 1000'\r");
    person.sees("waiting").await;
    person.types("\x03");
    person.sees("<5> ").await;
    assert!(!person.pty.reads_lines().unwrap());
    person.types("exit 9\r");
    ends_with(person, place, 9).await;
}

/// The program ends with this, and gives the terminal back.
async fn ends_with(mut person: Person, place: &Place, code: i32) {
    let ended = person.leaves().await;
    assert_eq!(ended, ExitReason::Code(code), "{}", person.seen);
    assert!(person.pty.reads_lines().unwrap());
    assert_eq!(place.temporary_files(), Vec::<std::path::PathBuf>::new());
}

fn terminate(person: &Person) {
    let pid = rustix::process::Pid::from_raw(person.child.pid().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
}

#[tokio::test]
async fn a_terminal_is_relayed_with_its_size_and_given_back_as_it_was() {
    let place = Place::new();
    let person = Person::start_counting(&place, size(91, 33)).await;
    let asked = "stty size; echo $TERM $((40 + 2))\r";
    is_relayed(person, &place, asked, "33 91\r\nvt100 42\r\n").await;
}

#[tokio::test]
async fn a_signal_gives_the_terminal_back_too() {
    let place = Place::new();
    let person = Person::start_counting(&place, size(80, 24)).await;
    terminate(&person);
    ends_with(person, &place, 143).await;
}

#[tokio::test]
async fn a_terminal_is_relayed_into_a_sandbox_and_its_exit_code_out_of_it() {
    let place = Place::new();
    let mut person = Person::start_with(&place, size(91, 33), &["shell"]);
    person.sees("runtime `native`; `exit` leaves it").await;
    person.begins_to_count().await;
    let asked = "id -un; stty size; echo $TERM $((40 + 2))\r";
    is_relayed(person, &place, asked, "agent\r\n33 91\r\nvt100 42\r\n").await;
}

#[tokio::test]
async fn a_signal_gives_the_terminal_back_from_a_sandbox_too() {
    let place = Place::new();
    let mut person = Person::start_with(&place, size(80, 24), &["shell", "--runtime", "local"]);
    person.begins_to_count().await;
    terminate(&person);
    ends_with(person, &place, 143).await;
}

#[tokio::test]
async fn a_command_with_a_terminal_is_relayed_like_a_shell() {
    let place = Place::new();
    let arguments = ["run", "-it", "bash", "--norc"];
    let mut person = Person::start_with(&place, size(91, 33), &arguments);
    person.begins_to_count().await;
    let asked = "id -un; stty size; echo $TERM $((40 + 2))\r";
    is_relayed(person, &place, asked, "agent\r\n33 91\r\nvt100 42\r\n").await;
}

#[tokio::test]
async fn a_program_with_a_terminal_in_an_existing_sandbox_is_relayed_too() {
    let place = Place::new();
    let sandbox = Lasting::create(&place, &["--name", "seen"]);
    let arguments = ["exec", "-it", sandbox.id(), "bash", "--norc"];
    let mut person = Person::start_with(&place, size(91, 33), &arguments);
    person.begins_to_count().await;
    let asked = "stty size; echo $TERM $((40 + 2))\r";
    is_relayed(person, &place, asked, "33 91\r\nvt100 42\r\n").await;
}

#[tokio::test]
async fn states_and_findings_have_colours_at_a_terminal_and_nowhere_else() {
    let place = Place::new();
    let sandbox = Lasting::create(&place, &["--name", "seen"]);
    let mut person = Person::start_with(&place, size(160, 24), &["ps"]);
    person.sees("\x1b[32mrunning\x1b[0m").await;
    assert_eq!(person.leaves().await, ExitReason::Code(0));
    let paused = place.output(&["pause", sandbox.id()]);
    if paused.code == Some(0) {
        let mut person = Person::start_with(&place, size(160, 24), &["ps"]);
        person.sees("\x1b[33mpaused\x1b[0m").await;
    }
    let mut person = Person::start_with(&place, size(160, 24), &["doctor"]);
    person.sees("\x1b[1mNeeded now\x1b[0m").await;
    person.sees("  \x1b[32mok      \x1b[0m shell").await;
    for arguments in [["ps"], ["doctor"]] {
        let told = place.output(&arguments);
        assert!(!told.stdout.contains('\x1b'), "{}", told.stdout);
    }
}
