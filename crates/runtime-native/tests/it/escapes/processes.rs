//! Attempts on processes: those of the machine, and our own two inside (NS-7, NS-10, NS-18).

use std::{
    os::unix::process::CommandExt as _,
    process::{Child, Command, Stdio},
};

use zareba_runtime::{Runtime as _, RuntimeError};

use super::{Prison, WALLS};
use crate::fixture::{self, output, spec};

/// How many an executor is among the processes of its sandbox: it is started first.
pub(super) const EXECUTOR: i32 = 2;

/// The numbers that processes of a new sandbox can have; more would take a crowd.
const NUMBERS_INSIDE: u32 = 200;

/// A process of the machine, of the same user as we are, in a group of its own. Nobody inside has
/// its number.
struct Bystander(Child);

impl Bystander {
    fn new() -> Self {
        // Numbers ascend, and on most machines the first one will do.
        loop {
            let mut command = Command::new("cat");
            let command = command.stdin(Stdio::piped()).stdout(Stdio::null());
            let bystander = Self(command.process_group(0).spawn().unwrap());
            if bystander.0.id() > NUMBERS_INSIDE {
                return bystander;
            }
        }
    }

    fn assert_unharmed(&mut self) {
        assert_eq!(self.0.try_wait().unwrap(), None);
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap();
        // Behind the name: the state is the first field, the nice value the seventeenth.
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
        let ours = std::fs::read_to_string("/proc/self/stat").unwrap();
        let ours: Vec<&str> = ours.rsplit(") ").next().unwrap().split(' ').collect();
        assert!(matches!(fields[0], "S" | "R"), "{stat}");
        assert_eq!(fields[16], ours[16], "{stat}");
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An attempt on a process of the machine, with `{}` for its number.
async fn leaves_alone(attempt: &str, expected: &str) {
    let mut bystander = Bystander::new();
    let attempt = attempt.replace("{}", &bystander.0.id().to_string());
    Prison::new().await.finds(&attempt, expected).await;
    bystander.assert_unharmed();
}

#[tokio::test]
async fn a_process_outside_cannot_be_killed_ns_1() {
    leaves_alone("os.kill({}, 9)", "ESRCH").await;
}

#[tokio::test]
async fn a_process_outside_has_no_handle_ns_1() {
    leaves_alone("call('pidfd_open', {}, 0)", "ESRCH").await;
}

#[tokio::test]
async fn a_group_of_processes_outside_cannot_be_killed_ns_1() {
    leaves_alone("os.killpg({}, 9)", "ESRCH").await;
}

#[tokio::test]
async fn processes_of_the_same_user_outside_cannot_be_slowed_ns_1() {
    leaves_alone("os.setpriority(os.PRIO_USER, 0, 19)", "worked: None").await;
}

#[tokio::test]
async fn the_group_of_whoever_started_the_sandbox_has_no_number_inside_ns_1() {
    let attempt = "[os.getpgid(1), os.getsid(1)] if os.getpgid(1) > 1 else 'none'";
    Prison::new().await.finds(attempt, "worked: none").await;
}

#[tokio::test]
async fn the_first_process_cannot_be_killed_from_inside_ns_18() {
    let prison = Prison::new().await;
    for signal in [9, 15, 19] {
        let sent = prison.attempt(&format!("os.kill(1, {signal})")).await;
        assert_eq!(sent, "worked: None");
    }
    let state = prison.shell("grep State: /proc/1/status").await.1;
    assert!(state.contains("sleeping"), "{state}");
    prison.end().await;
}

/// Both of our own processes are tried: neither call needs more than the same user.
async fn both_are_safe_from(attempt: &str, expected: &str) {
    let prison = Prison::new().await;
    for process in [1, EXECUTOR] {
        let attempt = attempt.replace("{}", &process.to_string());
        assert_eq!(prison.attempt(&attempt).await, expected, "{attempt}");
    }
    prison.end().await;
}

#[tokio::test]
async fn our_own_processes_cannot_be_traced_ns_10() {
    both_are_safe_from("call('ptrace', 16, {}, 0, 0)", "EPERM").await;
}

#[tokio::test]
async fn our_own_processes_cannot_be_seized_ns_10() {
    both_are_safe_from("call('ptrace', 0x4206, {}, 0, 0)", "EPERM").await;
}

#[tokio::test]
async fn the_memory_of_our_own_processes_cannot_be_read_by_a_call_ns_10() {
    both_are_safe_from("call('process_vm_readv', {}, 0, 0, 0, 0, 0)", "EPERM").await;
}

#[tokio::test]
async fn the_memory_of_our_own_processes_cannot_be_written_by_a_call_ns_10() {
    both_are_safe_from("call('process_vm_writev', {}, 0, 0, 0, 0, 0)", "EPERM").await;
}

#[tokio::test]
async fn the_memory_of_our_own_processes_cannot_be_paged_out_ns_10() {
    let attempt = "call('process_madvise', call('pidfd_open', {}, 0), 0, 0, 21, 0)";
    both_are_safe_from(attempt, "EPERM").await;
}

#[tokio::test]
async fn descriptors_of_our_own_processes_cannot_be_taken_ns_10() {
    let attempt = "call('pidfd_getfd', call('pidfd_open', {}, 0), 0, 0)";
    both_are_safe_from(attempt, "EPERM").await;
}

#[tokio::test]
async fn descriptors_of_our_own_processes_cannot_be_compared_ns_10() {
    both_are_safe_from("call('kcmp', os.getpid(), {}, 2, 0, 0)", "EPERM").await;
}

/// A way to be traced is as good as a way to trace: the child would be its parent's.
#[tokio::test]
async fn a_process_cannot_offer_itself_to_be_traced_ns_10() {
    Prison::new()
        .await
        .finds("call('ptrace', 0, 0, 0, 0)", "EPERM")
        .await;
}

/// An agent may ruin its own sandbox, and nothing else.
#[tokio::test]
async fn a_killed_executor_is_told_of_and_harms_nobody_else() {
    killed_from_inside(&format!("kill -9 {EXECUTOR}; cat")).await;
}

#[tokio::test]
async fn killing_everything_inside_reaches_nothing_outside() {
    killed_from_inside("kill -9 -1; cat").await;
}

async fn killed_from_inside(command: &str) {
    let mut bystander = Bystander::new();
    let fixture = fixture::native_with(WALLS);
    let neighbour = fixture.runtime.create(spec()).await.unwrap();
    let sandbox = fixture.runtime.create(spec()).await.unwrap();
    let action = zareba_protocol::Action::Run(zareba_protocol::RunCommand::new(command));
    let lost = sandbox.run_action(action.into()).await.unwrap_err();
    assert!(
        matches!(lost, RuntimeError::Disconnected { .. }),
        "{lost:?}"
    );
    let after = sandbox.list_files(None).await.unwrap_err();
    assert!(
        matches!(after, RuntimeError::Disconnected { .. }),
        "{after:?}"
    );
    assert_eq!(output(&*neighbour, "echo well").await, "well");
    bystander.assert_unharmed();
    sandbox.close().await.unwrap();
    neighbour.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
}
