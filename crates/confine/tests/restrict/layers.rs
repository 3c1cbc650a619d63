//! What the kernel reports of a confined process, and attempts to get rights back.

use std::{
    fs::File,
    io::{Seek as _, SeekFrom, Write as _},
};

use libc::{EMFILE, EPERM};
use rustix::{
    process::{Resource, Rlimit},
    thread::{CapabilitiesSecureBits, CapabilitySet, CapabilitySets},
};
use zareba_confine::{
    Bounds, Capabilities, Limit, LimitInForce, ProcessDirectory, SeccompMode, Status,
    drop_all_capabilities,
};

use crate::victim::{Case, Control, FILE_BYTES_MAX, OPEN_FILES_MAX, Outcome, limits};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = vec![
        Case::works("ns8_the_kernel_reports_no_capability_in_any_set", |_| {
            let Status {
                capabilities,
                no_new_privileges,
                seccomp,
                seccomp_filters,
                ..
            } = own_status();
            let none = Capabilities {
                inheritable: 0,
                permitted: 0,
                effective: 0,
                bounding: 0,
                ambient: 0,
            };
            assert_eq!((capabilities, capabilities.are_empty()), (none, true));
            assert_eq!((no_new_privileges, seccomp), (true, SeccompMode::Filter));
            // The tests themselves may run below a filter.
            assert!(seccomp_filters.is_none_or(|filters| filters >= 1));
            Outcome::done("")
        }),
        Case::works(
            "ns8_a_program_that_is_started_has_no_capability_either",
            |_| {
                let shown = std::process::Command::new("/bin/cat")
                    .arg("/proc/self/status")
                    .output()
                    .unwrap();
                let status = Status::parse(&String::from_utf8(shown.stdout).unwrap()).unwrap();
                assert!(status.capabilities.are_empty() && status.no_new_privileges);
                assert_eq!(status.seccomp, SeccompMode::Filter);
                Outcome::done("")
            },
        ),
        Case::works(
            "ns8_dropping_twice_is_refused_since_nobody_may_lock_again",
            |_| {
                let error = drop_all_capabilities().unwrap_err();
                assert_eq!(error.raw_os_error(), Some(EPERM));
                Outcome::done("")
            },
        ),
        Case::refused("ns8_a_capability_cannot_be_taken_back", EPERM, |_| {
            let administrator = CapabilitySet::SYS_ADMIN;
            let sets = CapabilitySets {
                effective: administrator,
                permitted: administrator,
                inheritable: CapabilitySet::empty(),
            };
            Outcome::of(rustix::thread::set_capabilities(None, sets))
        })
        .control(Control::AsRoot),
        Case::refused("ns8_an_ambient_capability_cannot_be_raised", EPERM, |_| {
            let capability = CapabilitySet::NET_RAW;
            Outcome::of(rustix::thread::configure_capability_in_ambient_set(
                capability, true,
            ))
        })
        .control(Control::Never),
        Case::refused("ns8_the_secure_bits_cannot_be_unlocked", EPERM, |_| {
            Outcome::of(rustix::thread::set_capabilities_secure_bits(
                CapabilitiesSecureBits::empty(),
            ))
        })
        .control(Control::AsRoot),
        Case::refused("ns8_no_new_privs_cannot_be_cleared", libc::EINVAL, |_| {
            Outcome::of(rustix::thread::set_no_new_privs(false))
        })
        .control(Control::Never),
    ];
    cases.extend(resources());
    cases
}

fn resources() -> Vec<Case> {
    vec![
        Case::works("ns15_the_kernel_reports_the_limits_that_were_set", |_| {
            // A second time: nothing is above what is there, so all of it is taken as it is.
            let in_force = limits().apply().unwrap();
            let core = LimitInForce {
                limit: Limit::CoreBytes,
                asked: Bounds::fixed(1),
                in_force: Bounds::fixed(1),
            };
            assert!(in_force.contains(&core), "{in_force:?}");
            assert_eq!(rustix::process::getrlimit(Resource::Core), both(1));
            assert_eq!(
                rustix::process::getrlimit(Resource::Nofile),
                both(OPEN_FILES_MAX)
            );
            assert_eq!(
                rustix::process::getrlimit(Resource::Fsize),
                both(FILE_BYTES_MAX)
            );
            assert_eq!(rustix::process::getrlimit(Resource::As).current, None);
            Outcome::done("")
        }),
        Case::refused("ns15_a_hard_limit_cannot_be_raised", EPERM, |_| {
            Outcome::of(rustix::process::setrlimit(
                Resource::Nofile,
                both(OPEN_FILES_MAX + 1),
            ))
        })
        .control(Control::Never),
        Case::works("ns15_as_many_files_as_the_limit_says_can_be_open", |_| {
            let open_now = std::fs::read_dir("/proc/self/fd").unwrap().count() - 1;
            let room = usize::try_from(OPEN_FILES_MAX).unwrap() - open_now;
            Outcome::of(open(room).map(|files| assert_eq!(files.len(), room)))
        }),
        Case::refused(
            "ns15_one_file_more_than_the_limit_is_refused",
            EMFILE,
            |_| {
                let open_now = std::fs::read_dir("/proc/self/fd").unwrap().count() - 1;
                let room = usize::try_from(OPEN_FILES_MAX).unwrap() - open_now;
                Outcome::of(open(room + 1))
            },
        ),
        Case::works("ns15_a_file_may_be_as_long_as_the_limit_says", |setting| {
            Outcome::of(write_last_byte(&setting.inside, FILE_BYTES_MAX))
        }),
        Case {
            expected: Outcome::Killed(libc::SIGXFSZ),
            ..Case::refused(
                "ns15_a_file_that_grows_past_the_limit_ends_its_writer",
                0,
                |setting| Outcome::of(write_last_byte(&setting.inside, FILE_BYTES_MAX + 1)),
            )
        },
    ]
}

fn own_status() -> Status {
    let proc = File::open("/proc").unwrap();
    ProcessDirectory::open_self(proc).unwrap().status().unwrap()
}

fn both(value: u64) -> Rlimit {
    Rlimit {
        current: Some(value),
        maximum: Some(value),
    }
}

fn open(count: usize) -> std::io::Result<Vec<File>> {
    (0..count).map(|_| File::open("/dev/null")).collect()
}

/// Makes a sparse file of a length.
fn write_last_byte(directory: &std::path::Path, length: u64) -> std::io::Result<()> {
    let mut file = File::create(directory.join("long"))?;
    file.seek(SeekFrom::Start(length - 1))?;
    file.write_all(b"x")
}
