//! Attempts on the parts of the kernel that a program has no business with.

use libc::{
    CLONE_NEWCGROUP, CLONE_NEWIPC, CLONE_NEWNET, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWUSER,
    CLONE_NEWUTS, ENOSYS, EPERM, c_int, c_long,
};
use zareba_confine::Permissions;

use crate::{
    sys::{self, Argument},
    victim::{Case, Control, Outcome},
};

const USER_NAMESPACES: Permissions = Permissions {
    debugging: false,
    user_namespaces: true,
    set_id_files: false,
};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = namespaces();
    cases.extend(interfaces());
    cases.extend(mounts());
    cases.extend(machine());
    cases.extend(ways_around());
    cases
}

fn namespaces() -> Vec<Case> {
    vec![
        Case::refused("ns9_a_user_namespace_by_unshare_is_refused", EPERM, |_| {
            unshare(CLONE_NEWUSER)
        }),
        Case::refused("ns9_a_user_namespace_by_clone_is_refused", EPERM, |_| {
            clone(CLONE_NEWUSER)
        }),
        Case::refused("ns9_clone3_is_not_there", ENOSYS, |_| {
            zeroes(libc::SYS_clone3)
        }),
        Case::refused("ns9_a_mount_namespace_is_refused", EPERM, |_| {
            unshare(CLONE_NEWUSER | CLONE_NEWNS)
        }),
        Case::refused("ns9_a_pid_namespace_is_refused", EPERM, |_| {
            unshare(CLONE_NEWUSER | CLONE_NEWPID)
        }),
        Case::refused("ns9_a_network_namespace_is_refused", EPERM, |_| {
            unshare(CLONE_NEWUSER | CLONE_NEWNET)
        }),
        Case::refused("ns9_an_ipc_namespace_is_refused", EPERM, |_| {
            unshare(CLONE_NEWUSER | CLONE_NEWIPC)
        }),
        Case::refused("ns9_a_uts_namespace_is_refused", EPERM, |_| {
            unshare(CLONE_NEWUSER | CLONE_NEWUTS)
        }),
        Case::refused("ns9_a_cgroup_namespace_is_refused", EPERM, |_| {
            unshare(CLONE_NEWUSER | CLONE_NEWCGROUP)
        }),
        Case::refused("ns9_entering_a_namespace_is_refused", EPERM, |_| {
            Outcome::of(sys::numbers(libc::SYS_setns, &[-1, 0]))
        }),
        Case::works("a_browser_makes_its_namespaces_with_the_permission", |_| {
            clone(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)
        })
        .with(USER_NAMESPACES),
        Case::refused(
            "the_permission_for_user_namespaces_gives_no_mounts",
            EPERM,
            |_| unshare(CLONE_NEWUSER | CLONE_NEWNS),
        )
        .with(USER_NAMESPACES),
    ]
}

fn interfaces() -> Vec<Case> {
    vec![
        Case::refused("ns10_io_uring_is_refused", EPERM, |_| {
            zeroes(libc::SYS_io_uring_setup)
        }),
        Case::refused("ns10_entering_an_io_uring_is_refused", EPERM, |_| {
            Outcome::of(sys::numbers(libc::SYS_io_uring_enter, &[-1]))
        }),
        // An unknown command, about which an older kernel says the same to an ordinary user.
        Case::refused("ns10_bpf_is_refused", EPERM, |_| {
            Outcome::of(sys::numbers(libc::SYS_bpf, &[9999, 0, 0]))
        })
        .control(Control::AsRoot),
        Case::refused("ns10_perf_events_are_refused", EPERM, |_| {
            zeroes(libc::SYS_perf_event_open)
        }),
        Case::refused("ns10_userfaultfd_is_refused", EPERM, |_| {
            const UFFD_USER_MODE_ONLY: i64 = 1;
            Outcome::of(sys::numbers(libc::SYS_userfaultfd, &[UFFD_USER_MODE_ONLY]))
        }),
        Case::refused("ns10_keyctl_is_refused", EPERM, |_| {
            const KEYCTL_GET_KEYRING_ID: i64 = 0;
            const KEY_SPEC_SESSION_KEYRING: i64 = -3;
            Outcome::of(sys::numbers(
                libc::SYS_keyctl,
                &[KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 1],
            ))
        }),
        Case::refused("ns10_adding_a_key_is_refused", EPERM, |_| {
            zeroes(libc::SYS_add_key)
        }),
        Case::refused("ns10_requesting_a_key_is_refused", EPERM, |_| {
            zeroes(libc::SYS_request_key)
        }),
        Case::refused("ns10_loading_a_module_is_refused", EPERM, |_| {
            zeroes(libc::SYS_init_module)
        })
        .control(Control::AsRoot),
        Case::refused(
            "ns10_loading_a_module_from_a_file_is_refused",
            EPERM,
            |_| {
                let arguments = [Argument::Number(-1), Argument::Text(c"")];
                Outcome::of(sys::call(libc::SYS_finit_module, &arguments))
            },
        )
        .control(Control::AsRoot),
        Case::refused("ns10_unloading_a_module_is_refused", EPERM, |_| {
            Outcome::of(sys::call(
                libc::SYS_delete_module,
                &[Argument::Text(c"no-such-module")],
            ))
        })
        .control(Control::AsRoot),
        Case::refused(
            "ns10_watching_a_whole_file_system_is_refused",
            EPERM,
            |_| Outcome::of(sys::numbers(libc::SYS_fanotify_init, &[-1, 0])),
        )
        .control(Control::AsRoot),
    ]
}

fn mounts() -> Vec<Case> {
    vec![
        Case::refused("ns10_mounting_is_refused", EPERM, |_| {
            zeroes(libc::SYS_mount)
        }),
        Case::refused("ns10_unmounting_is_refused", EPERM, |_| {
            Outcome::of(sys::call(
                libc::SYS_umount2,
                &[Argument::Text(c"/"), Argument::Number(-1)],
            ))
        }),
        Case::refused("ns10_pivot_root_is_refused", EPERM, |_| {
            zeroes(libc::SYS_pivot_root)
        })
        .control(Control::AsRoot),
        Case::refused("ns10_opening_a_file_system_is_refused", EPERM, |_| {
            zeroes(libc::SYS_fsopen)
        })
        .control(Control::AsRoot),
        Case::refused("ns10_copying_a_mount_is_refused", EPERM, |_| {
            zeroes(libc::SYS_open_tree)
        }),
        Case::refused("ns10_moving_a_mount_is_refused", EPERM, |_| {
            Outcome::of(sys::numbers(libc::SYS_move_mount, &[-1, 0, -1, 0, 0]))
        })
        .control(Control::AsRoot),
        Case::refused("ns10_changing_a_mount_is_refused", EPERM, |_| {
            Outcome::of(sys::numbers(libc::SYS_mount_setattr, &[-1, 0, -1]))
        }),
        Case::refused("ns10_changing_the_root_is_refused", EPERM, |_| {
            Outcome::of(sys::call(libc::SYS_chroot, &[Argument::Text(c"/")]))
        })
        .control(Control::AsRoot),
        Case::refused("ns10_opening_by_handle_is_refused", EPERM, |_| {
            Outcome::of(sys::numbers(libc::SYS_open_by_handle_at, &[-1, 0, 0]))
        })
        .control(Control::AsRoot),
    ]
}

fn machine() -> Vec<Case> {
    vec![
        // The real thing would end the machine, so these are never tried without the layers.
        Case::refused("ns10_rebooting_is_refused", EPERM, |_| {
            zeroes(libc::SYS_reboot)
        })
        .control(Control::Never),
        Case::refused("ns10_kexec_is_refused", EPERM, |_| {
            Outcome::of(sys::numbers(libc::SYS_kexec_load, &[0, -1, 0, 0]))
        })
        .control(Control::Never),
        Case::refused("ns10_swapping_is_refused", EPERM, |_| {
            zeroes(libc::SYS_swapon)
        })
        .control(Control::AsRoot),
        Case::refused("ns10_ending_swap_is_refused", EPERM, |_| {
            zeroes(libc::SYS_swapoff)
        })
        .control(Control::AsRoot),
        Case::refused("ns10_setting_the_clock_is_refused", EPERM, |_| {
            Outcome::of(sys::numbers(libc::SYS_clock_settime, &[-1, 0]))
        }),
        Case::refused("ns10_adjusting_the_clock_is_refused", EPERM, |_| {
            zeroes(libc::SYS_adjtimex)
        }),
        Case::refused("ns10_accounting_is_refused", EPERM, |_| {
            Outcome::of(sys::call(
                libc::SYS_acct,
                &[Argument::Text(c"/no/such/file")],
            ))
        })
        .control(Control::AsRoot),
        Case::refused("ns10_quotas_are_refused", EPERM, |_| {
            Outcome::of(sys::numbers(libc::SYS_quotactl, &[-1, 0, 0, 0]))
        }),
        Case::refused("ns10_the_kernels_log_is_refused", EPERM, |_| {
            const SYSLOG_ACTION_SIZE_BUFFER: i64 = 10;
            Outcome::of(sys::numbers(
                libc::SYS_syslog,
                &[SYSLOG_ACTION_SIZE_BUFFER, 0, 0],
            ))
        })
        .control(Control::AsRoot),
        Case::refused("ns10_naming_the_machine_is_refused", EPERM, |_| {
            Outcome::of(sys::numbers(libc::SYS_sethostname, &[0, -1]))
        })
        .control(Control::AsRoot),
        #[cfg(target_arch = "x86_64")]
        Case::refused("ns10_port_access_is_refused", EPERM, |_| {
            Outcome::of(sys::numbers(libc::SYS_iopl, &[0]))
        }),
        #[cfg(target_arch = "x86_64")]
        Case::refused("ns10_single_ports_are_refused", EPERM, |_| {
            Outcome::of(sys::numbers(libc::SYS_ioperm, &[0x80, 1, 0]))
        }),
    ]
}

fn ways_around() -> Vec<Case> {
    vec![
        Case::refused(
            "ns10_mapping_everything_executable_is_refused",
            EPERM,
            |_| {
                const READ_IMPLIES_EXEC: i64 = 0x0040_0000;
                Outcome::of(sys::numbers(libc::SYS_personality, &[READ_IMPLIES_EXEC]))
            },
        ),
        Case::refused(
            "a_call_that_is_newer_than_the_profile_is_not_there",
            ENOSYS,
            |_| {
                const LISTMOUNT: c_long = 458;
                zeroes(LISTMOUNT)
            },
        ),
        // The kernel may have no x32 itself, and then says the same.
        #[cfg(target_arch = "x86_64")]
        Case::refused("ns10_the_x32_bit_is_no_way_around", ENOSYS, |_| {
            const X32: c_long = 0x4000_0000;
            Outcome::of(sys::numbers(X32 | libc::SYS_getpid, &[]))
        })
        .control(Control::Never),
        #[cfg(target_arch = "x86_64")]
        Case {
            name: "ns10_a_32_bit_call_ends_the_process",
            permissions: Permissions::NONE,
            attempt: |_| Outcome::done(&sys::call_as_32_bit().to_string()),
            expected: Outcome::Killed(libc::SIGSYS),
            control: Control::Always,
        },
        Case::works("a_program_may_confine_itself_further", |_| {
            let filter = zareba_confine::SeccompProfile::builtin(Permissions::NONE).unwrap();
            match filter.install() {
                Ok(()) => Outcome::done(""),
                Err(error) => Outcome::Broken(format!("{error:?}")),
            }
        }),
    ]
}

fn unshare(flags: c_int) -> Outcome {
    Outcome::of(sys::numbers(libc::SYS_unshare, &[i64::from(flags)]))
}

fn clone(flags: c_int) -> Outcome {
    Outcome::of(sys::clone_and_reap(flags))
}

/// The call with nothing: a kernel that gets to see it complains about null pointers or numbers.
fn zeroes(number: c_long) -> Outcome {
    Outcome::of(sys::call(number, &[Argument::Nothing; 6]))
}
