//! Supervisors that are copies of a process that stands ready.

mod devices;
mod failures;
mod memory;
mod networks;
mod orders;
mod withheld;

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;
use zareba_executor::Linting;
use zareba_protocol::{Action, EditFile, WriteFile};
use zareba_runtime::{Runtime, Sandbox, SandboxSpec};
use zareba_runtime_native::{NativeOptions, NativeRuntime};
use zareba_terminal::Process;

use crate::fixture::{self, Fixture, output, spec};

/// From this one on sandboxes are copies.
const COPIES_FROM: usize = 2;

/// Children of ours that have something to do with this runtime: other tests may have some, too.
fn our_children(command: &str, fixture: &Fixture<NativeRuntime>) -> Vec<i32> {
    let own = i32::try_from(std::process::id()).unwrap();
    let state = fixture.state.path().to_str().unwrap();
    let is_meant = |pid: &i32| {
        let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split('\0').nth(1) == Some(command) && line.contains(state)
    };
    let all = Process::all().into_iter();
    all.filter(|process| process.parent == own)
        .map(|process| process.id.pid)
        .filter(is_meant)
        .collect()
}

fn spawner(fixture: &Fixture<NativeRuntime>) -> Option<i32> {
    our_children("spawner", fixture).first().copied()
}

/// How many supervisors are copies: those were not started with what they are told.
fn copies(fixture: &Fixture<NativeRuntime>) -> usize {
    let is_copy = |pid: &i32| {
        let started_with = fs::read_to_string(format!("/proc/{pid}/environ")).unwrap();
        !started_with.contains("ZAREBA_FILES_SCOPE=")
    };
    let supervisors = our_children("supervise", fixture).into_iter();
    supervisors.filter(is_copy).count()
}

/// Our program, but for what it does as a spawner: `spawner` opens the pipe `begun` when it is about
/// to take orders.
fn program_with(place: &Path, spawner: &str) -> PathBuf {
    mknodat(CWD, place.join("begun"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    let (program, path) = (fixture::program(), place.join("program"));
    let script = format!(
        "#!/bin/sh\nprogram='{}' place='{}'\n[ \"$1\" = spawner ] || exec \"$program\" \"$@\"\n{spawner}\n",
        program.display(),
        place.display()
    );
    fixture::write_program(&path, &script);
    path
}

/// Returns when such a spawner is about to take orders.
fn await_beginning(place: &TempDir) {
    fs::read(place.path().join("begun")).unwrap();
}

async fn create(runtime: &impl Runtime, count: usize) -> Vec<Arc<dyn Sandbox>> {
    let mut sandboxes = Vec::new();
    for _ in 0..count {
        sandboxes.push(runtime.create(spec()).await.unwrap());
    }
    sandboxes
}

/// Uses all of them before it closes them.
async fn close(sandboxes: Vec<Arc<dyn Sandbox>>) {
    for sandbox in &sandboxes {
        assert_eq!(output(&**sandbox, "echo $((6 * 7))").await, "42");
    }
    for sandbox in sandboxes {
        sandbox.close().await.unwrap();
    }
}

#[tokio::test]
async fn whoever_needs_many_sandboxes_gets_copies_that_are_its_own_children() {
    let fixture = fixture::native();
    let mut sandboxes = create(&fixture.runtime, 1).await;
    assert_eq!(spawner(&fixture), None, "one sandbox needs no spawner");
    sandboxes.extend(create(&fixture.runtime, 3).await);
    assert!(spawner(&fixture).is_some());
    assert_eq!(our_children("supervise", &fixture).len(), 4);
    assert_eq!(copies(&fixture), 4 - COPIES_FROM);
    close(sandboxes).await;
    assert_eq!(our_children("supervise", &fixture), Vec::<i32>::new());
    assert_eq!(fixture.leftovers(), [""; 0]);
    let spawner = spawner(&fixture).unwrap();
    drop(fixture);
    assert!(Process::read(spawner).is_err());
}

/// As a server does when it begins.
#[tokio::test]
async fn whoever_says_that_there_will_be_many_gets_copies_from_the_first_on() {
    let fixture = fixture::native();
    fixture.runtime.warm_up().await.unwrap();
    let spawner_before = spawner(&fixture);
    assert!(spawner_before.is_some());
    // What they stand on is there as well.
    let skeletons = fs::read_dir(fixture.state.path().join("skeleton")).unwrap();
    let names = skeletons.map(|entry| entry.unwrap().file_name());
    let names: BTreeSet<_> = names.filter(|name| name != ".lock").collect();
    assert!(
        names.len() == 1 && !names.contains("unfinished".as_ref() as &std::ffi::OsStr),
        "{names:?}"
    );
    let sandboxes = create(&fixture.runtime, 2).await;
    assert_eq!(copies(&fixture), 2);
    // Once is enough.
    fixture.runtime.warm_up().await.unwrap();
    assert_eq!(spawner(&fixture), spawner_before);
    close(sandboxes).await;
    assert_eq!(fixture.leftovers(), [""; 0]);
}

/// To wait for the spawner takes less than to do without it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_who_ask_at_once_all_get_copies() {
    const COUNT: usize = 8;
    let fixture = fixture::native();
    let mut sandboxes = create(&fixture.runtime, COPIES_FROM).await;
    let runtime = tokio::runtime::Handle::current();
    std::thread::scope(|threads| {
        let create = || runtime.block_on(fixture.runtime.create(spec())).unwrap();
        let created: Vec<_> = (0..COUNT).map(|_| threads.spawn(create)).collect();
        sandboxes.extend(created.into_iter().map(|created| created.join().unwrap()));
    });
    assert_eq!(copies(&fixture), COUNT);
    close(sandboxes).await;
    assert_eq!(fixture.leftovers(), [""; 0]);
}

/// A copy of a generator of random numbers would go on with the same numbers.
#[tokio::test]
async fn what_is_drawn_by_lot_is_drawn_anew_in_every_copy() {
    let fixture = fixture::native();
    let sandboxes = create(&fixture.runtime, COPIES_FROM + 3).await;
    let mut drawn = BTreeSet::new();
    for sandbox in &sandboxes {
        let token = output(&**sandbox, "echo $__zareba_token").await;
        assert_eq!(token.len(), 32, "{token}");
        assert!(drawn.insert(token), "{drawn:?}");
        // The name of the draft is drawn, too.
        let written = sandbox.run_action(Action::Write(WriteFile::new("drawn", "x")).into());
        let written = written.await.unwrap().observation;
        assert_eq!(written.kind_name(), "write", "{written:?}");
        let report = sandbox.inspect().await.unwrap();
        let user = &report["enforcement"]["users"][0]["outside"];
        let is_drawn = rustix::process::geteuid().is_root();
        assert!(!is_drawn || drawn.insert(user.to_string()), "{drawn:?}");
    }
    close(sandboxes).await;
}

/// The next copy would have it in its own memory.
#[tokio::test]
async fn a_spawner_keeps_nothing_of_an_order() {
    const SECRET: &str = "a-secret-for-one-sandbox";
    let fixture = fixture::native();
    let mut sandboxes = create(&fixture.runtime, COPIES_FROM).await;
    let given = SandboxSpec {
        environment: vec![("TOKEN".to_owned(), SECRET.to_owned())],
        ..spec()
    };
    let sandbox = fixture.runtime.create(given).await.unwrap();
    assert_eq!(output(&*sandbox, "echo $TOKEN").await, SECRET);
    assert_eq!(copies(&fixture), 1);
    let spawner = spawner(&fixture).unwrap();
    let own_argument = fixture.state.path().to_str().unwrap();
    assert!(holds(spawner, own_argument), "what it has is found");
    assert!(!holds(spawner, SECRET));
    assert!(!holds(spawner, sandbox.id().as_str()));
    sandboxes.push(sandbox);
    close(sandboxes).await;
}

/// Whether a process has a text in memory that it can write to. While a spawner is idle it puts its
/// memory in order, so that a part may be gone before it is read; then all of it is read again.
fn holds(pid: i32, text: &str) -> bool {
    let mut looks = (0..100).filter_map(|_| look_for(pid, text));
    looks.next().expect("its memory comes to rest")
}

/// None when a part of its memory was gone.
fn look_for(pid: i32, text: &str) -> Option<bool> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let memory = fs::File::open(format!("/proc/{pid}/mem")).unwrap();
    let writable = maps.lines().filter_map(|line| {
        let (range, _) = line.split_once(" rw")?;
        let (start, end) = range.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).unwrap();
        Some((number(start), number(end)))
    });
    let mut is_found = false;
    for (start, end) in writable {
        let mut bytes = vec![0; usize::try_from(end - start).unwrap()];
        memory.read_exact_at(&mut bytes, start).ok()?;
        is_found |= bytes
            .windows(text.len())
            .any(|part| part == text.as_bytes());
    }
    Some(is_found)
}

/// An executor that was not executed has no environment but the one that it was given as a value.
#[tokio::test]
async fn programs_that_a_copied_executor_starts_have_its_environment() {
    let state = fixture::state();
    let options = NativeOptions {
        linting: Linting::On,
        ..fixture::options(&state)
    };
    let runtime = NativeRuntime::new(options, fixture::local_options(), fixture::walls());
    let fixture = Fixture { runtime, state };
    let sandboxes = create(&fixture.runtime, COPIES_FROM + 1).await;
    assert_eq!(copies(&fixture), 1);
    let sandbox = sandboxes.last().unwrap();
    // Only a search path leads there.
    let checker = "cat > /usr/local/bin/flake8 <<'END' && chmod +x /usr/local/bin/flake8\n\
                   #!/bin/sh\ngrep -q wrong && echo \"1 1 F821 $HOME $LC_CTYPE\"\nEND";
    output(&**sandbox, checker).await;
    output(&**sandbox, "echo right > edited.py").await;
    let path = sandbox.workspace().join("edited.py");
    let edit = EditFile {
        old_str: Some("right".to_owned()),
        new_str: Some("wrong".to_owned()),
        ..EditFile::new(path.to_str().unwrap(), "str_replace")
    };
    let edited = sandbox.run_action(Action::Edit(edit).into()).await.unwrap();
    let told = edited.observation.content;
    assert!(told.contains("F821 /home/agent C.UTF-8\n"), "{told}");
    close(sandboxes).await;
}
