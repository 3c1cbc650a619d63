//! Attempts on other processes.

use std::process::{Child, Command};

use libc::{EPERM, c_long};
use rustix::process::{Pid, PidfdFlags, Signal};
use zareba_confine::Permissions;

use crate::{
    sys,
    victim::{Case, Outcome, Setting},
};

const DEBUGGING: Permissions = Permissions {
    debugging: true,
    user_namespaces: false,
    set_id_files: false,
};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::refused("ns10_being_traced_is_refused", EPERM, |_| trace_me()),
        Case::refused("ns10_tracing_another_process_is_refused", EPERM, |_| {
            trace_a_child()
        }),
        Case::refused(
            "ns10_reading_the_memory_of_a_process_is_refused",
            EPERM,
            |_| Outcome::of(sys::read_memory_of(own_pid())),
        ),
        Case::refused(
            "ns10_writing_the_memory_of_a_process_is_refused",
            EPERM,
            |_| Outcome::of(sys::write_memory_of(own_pid())),
        ),
        Case::refused(
            "ns10_taking_a_descriptor_by_pidfd_is_refused",
            EPERM,
            |_| take_descriptor(),
        ),
        Case::refused("ns10_comparing_processes_is_refused", EPERM, |_| {
            let own = i64::from(own_pid());
            Outcome::of(sys::numbers(libc::SYS_kcmp, &[own, own, 0, 1, 1]))
        }),
        Case::refused(
            "ns10_changing_the_memory_of_a_process_by_pidfd_is_refused",
            EPERM,
            |_| Outcome::of(sys::numbers(libc::SYS_process_madvise, &[-1])),
        ),
        Case::refused(
            "ns11_a_signal_to_the_outside_is_refused",
            EPERM,
            |setting| Outcome::of(rustix::process::test_kill_process(watcher(setting))),
        ),
        Case::refused(
            "ns11_a_signal_by_pidfd_to_the_outside_is_refused",
            EPERM,
            |setting| {
                let pidfd = rustix::process::pidfd_open(watcher(setting), PidfdFlags::empty());
                // A signal that is ignored unless somebody asks for it.
                Outcome::of(
                    pidfd.and_then(|pidfd| rustix::process::pidfd_send_signal(pidfd, Signal::URG)),
                )
            },
        ),
        Case::refused(
            "ns11_a_signal_by_thread_number_to_the_outside_is_refused",
            EPERM,
            |setting| {
                Outcome::of(sys::numbers(
                    libc::SYS_tkill,
                    &[i64::from(setting.watcher), i64::from(libc::SIGURG)],
                ))
            },
        ),
        Case::works("a_debugger_works_with_the_permission", |_| trace_a_child()).with(DEBUGGING),
        Case::refused(
            "the_permission_to_debug_gives_no_descriptors",
            EPERM,
            |_| take_descriptor(),
        )
        .with(DEBUGGING),
        Case::works("signals_inside_arrive", |_| {
            let child = sleeper();
            let sent = rustix::process::kill_process(Pid::from_child(&child), Signal::TERM);
            end(child);
            Outcome::of(sent)
        }),
    ]
}

fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

fn watcher(setting: &Setting) -> Pid {
    Pid::from_raw(setting.watcher).unwrap()
}

fn trace_me() -> Outcome {
    const PTRACE_TRACEME: i64 = 0;
    Outcome::of(sys::numbers(libc::SYS_ptrace, &[PTRACE_TRACEME, 0, 0, 0]))
}

fn trace_a_child() -> Outcome {
    const PTRACE_SEIZE: i64 = 0x4206;
    let child = sleeper();
    let attached = sys::numbers(
        libc::SYS_ptrace,
        &[PTRACE_SEIZE, i64::from(child.id()), 0, 0],
    );
    end(child);
    Outcome::of(attached)
}

fn take_descriptor() -> Outcome {
    let pidfd = sys::numbers(libc::SYS_pidfd_open, &[i64::from(own_pid()), 0]).unwrap();
    let number: c_long = libc::SYS_pidfd_getfd;
    Outcome::of(sys::numbers(number, &[pidfd, 1, 0]))
}

fn sleeper() -> Child {
    Command::new("/bin/sleep").arg("60").spawn().unwrap()
}

fn end(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}
