//! Attempts to find something of the machine that is open already: descriptors that were left
//! open, and what `/proc` shows of our own processes (NS-7).

use zareba_runtime::SandboxSpec;
use zareba_runtime_native::NativeRuntime;

use super::{Prison, WALLS, processes::EXECUTOR};
use crate::fixture::{self, Fixture, spec};

/// Lists what a process has open; the descriptor of the list itself is gone by then.
const LISTING: &str = r"
import sys
def listing(process):
    open_now = {}
    for number in os.listdir('/proc/%s/fd' % process):
        try:
            open_now[int(number)] = os.readlink('/proc/%s/fd/%s' % (process, number))
        except FileNotFoundError:
            pass
    return sorted(open_now.items())
";

#[tokio::test]
async fn a_command_has_its_terminal_open_and_nothing_else_ns_7() {
    let prison = Prison::new().await;
    let program = format!("{LISTING}print(*[each for each in listing('self') if each[0] != 0])");
    let listed = prison.python(&program).await;
    let terminal = prison.shell("tty").await.1;
    // The program itself comes on the standard input.
    assert_eq!(listed, format!("(1, '{terminal}') (2, '{terminal}')"));
    assert!(terminal.starts_with("/dev/pts/"), "{terminal}");
    prison.end().await;
}

#[tokio::test]
async fn a_shell_has_its_terminal_and_its_channels_open_and_nothing_else_ns_7() {
    let prison = Prison::new().await;
    let program =
        format!("{LISTING}print(*[path for _, path in listing(os.getppid())], sep='\\n')");
    let listed = prison.python(&program).await;
    for target in listed.lines() {
        let expected = ["/dev/pts/", "pipe:[", "/memfd:zareba-"];
        assert!(
            expected.iter().any(|kind| target.starts_with(kind)),
            "{listed}"
        );
    }
    prison.end().await;
}

/// Everything that our own processes inside have open, seen from outside. A directory would be a
/// way out for whoever takes one of them over, and so would a file.
#[tokio::test]
#[ignore = "needs root"]
async fn our_own_processes_have_no_file_of_the_machine_open_ns_7() {
    let prison = Prison::new().await;
    prison.shell("true").await;
    let wanted = format!("supervise\0--id\0{}\0", prison.sandbox.id());
    let is_supervisor = |pid: i32| content(pid, "cmdline").contains(&wanted) && !is_first(pid);
    let supervisor = process(is_supervisor);
    let first = child_of(supervisor);
    for process in [first, child_of(first)] {
        let entries = std::fs::read_dir(format!("/proc/{process}/fd")).unwrap();
        let mut count = 0;
        for entry in entries.flatten() {
            let target = std::fs::read_link(entry.path()).unwrap();
            let target = target.display().to_string();
            let harmless = [
                "/dev/null",
                "/dev/pts/",
                "pipe:[",
                "socket:[",
                "anon_inode:",
                "/memfd:",
            ];
            assert!(
                harmless.iter().any(|kind| target.starts_with(kind)),
                "{target}"
            );
            count += 1;
        }
        assert!(count > 0, "process {process} has nothing open at all");
    }
    prison.end().await;
}

/// The only child of a process.
fn child_of(parent: i32) -> i32 {
    let parent = parent.to_string();
    process(|pid| {
        let stat = content(pid, "stat");
        let behind_name = stat.rsplit(") ").next().unwrap_or_default();
        behind_name.split(' ').nth(1) == Some(&parent)
    })
}

/// Whether a process is the first one of a sandbox, which has its supervisor's command line.
fn is_first(pid: i32) -> bool {
    let status = content(pid, "status");
    let numbers = status.lines().find(|line| line.starts_with("NSpid:"));
    numbers.is_some_and(|line| line.split_whitespace().count() > 2)
}

fn process(wanted: impl Fn(i32) -> bool) -> i32 {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let mut pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.find(|pid| wanted(*pid)).expect("such a process")
}

fn content(pid: i32, name: &str) -> String {
    let content = std::fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
    String::from_utf8_lossy(&content).into_owned()
}

/// What `/proc` has of a process that only those see who could trace it.
async fn is_closed(process: i32, name: &str, how: &str) {
    let path = format!("/proc/{process}/{name}");
    let prison = Prison::new().await;
    // It is there: that process runs, and this kernel has such a file.
    assert_eq!(
        prison.attempt(&format!("bool(os.lstat('{path}'))")).await,
        "worked: True"
    );
    prison.finds(&how.replace("{}", &path), "EACCES").await;
}

const LISTED: &str = "os.listdir('{}')";
const READ: &str = "read('{}')";
const OPENED: &str = "os.open('{}', os.O_RDWR)";

#[tokio::test]
async fn what_the_first_process_has_open_cannot_be_listed_ns_7() {
    is_closed(1, "fd", LISTED).await;
}

#[tokio::test]
async fn the_memory_of_the_first_process_cannot_be_opened_ns_7() {
    is_closed(1, "mem", OPENED).await;
}

#[tokio::test]
async fn the_variables_of_the_first_process_cannot_be_read_ns_7() {
    is_closed(1, "environ", READ).await;
}

#[tokio::test]
async fn the_program_of_the_first_process_cannot_be_opened_ns_7() {
    is_closed(1, "exe", READ).await;
}

#[tokio::test]
async fn the_namespaces_of_the_first_process_cannot_be_opened_ns_7() {
    is_closed(1, "ns/mnt", READ).await;
}

#[tokio::test]
async fn what_the_executor_has_open_cannot_be_listed_ns_7() {
    is_closed(EXECUTOR, "fd", LISTED).await;
}

#[tokio::test]
async fn the_memory_of_the_executor_cannot_be_opened_ns_7() {
    is_closed(EXECUTOR, "mem", OPENED).await;
}

#[tokio::test]
async fn the_variables_of_the_executor_cannot_be_read_ns_7() {
    is_closed(EXECUTOR, "environ", READ).await;
}

#[tokio::test]
async fn the_program_of_the_executor_cannot_be_opened_ns_7() {
    is_closed(EXECUTOR, "exe", READ).await;
}

#[tokio::test]
async fn the_root_of_the_executor_cannot_be_entered_ns_7() {
    is_closed(EXECUTOR, "root", LISTED).await;
}

#[tokio::test]
async fn the_directory_of_the_executor_cannot_be_entered_ns_7() {
    is_closed(EXECUTOR, "cwd", LISTED).await;
}

#[tokio::test]
async fn the_namespaces_of_the_executor_cannot_be_opened_ns_7() {
    is_closed(EXECUTOR, "ns/mnt", READ).await;
}

/// Written there, it would appear in the log of whoever started the sandbox.
#[tokio::test]
async fn the_executors_way_to_complain_cannot_be_used_by_others_ns_7() {
    let path = format!("/proc/{EXECUTOR}/fd/2");
    Prison::new()
        .await
        .finds(&format!("write('{path}', b'forged')"), "EACCES")
        .await;
}

#[tokio::test]
async fn secrets_in_the_environment_outside_are_in_no_process_inside_bs_6() {
    const SECRET: &str = "a-secret-of-the-machine";
    let state = fixture::state();
    let mut options = fixture::options(&state);
    options
        .environment
        .push(("API_TOKEN".into(), SECRET.into()));
    let runtime = NativeRuntime::new(options, fixture::local_options(), WALLS);
    let given = SandboxSpec {
        environment: vec![("GIVEN".to_owned(), "on-purpose".to_owned())],
        ..spec()
    };
    let prison = Prison::of(Fixture { runtime, state }, given).await;
    let look = "cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'; env";
    let (_, shown) = prison.shell(look).await;
    assert!(shown.contains("on-purpose"), "{shown}");
    assert!(
        !shown.contains(SECRET) && !shown.contains("API_TOKEN"),
        "{shown}"
    );
    prison.end().await;
}
