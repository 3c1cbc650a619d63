//! Attempts on parts of the kernel that no program inside has any business with (NS-9, NS-10),
//! and on its settings (NS-5).

use super::{Control, Prison, refused};

/// One test for each attempt: its name, what is tried, what it comes to inside, and who fares
/// better with it outside. None of them would change the machine if it worked there: what they
/// ask for does not exist.
macro_rules! refusals {
    ($($name:ident: $attempt:literal is $error:ident, better outside for $control:ident;)*) => {$(
        #[tokio::test]
        async fn $name() {
            refused($attempt, stringify!($error), Control::$control).await;
        }
    )*};
}

// Namespaces.
refusals! {
    a_user_namespace_cannot_be_unshared_ns_9:
        "call('unshare', 0x10000000)" is EPERM, better outside for Everybody;
    a_user_namespace_cannot_be_cloned_ns_9:
        "call('clone', 0x10000000 | 17, 0, 0, 0, 0) or os._exit(0)" is EPERM, better outside for Everybody;
    a_mount_namespace_cannot_be_unshared_ns_9:
        "call('unshare', 0x10000000 | 0x20000)" is EPERM, better outside for Everybody;
    a_process_namespace_cannot_be_unshared_ns_9:
        "call('unshare', 0x10000000 | 0x20000000)" is EPERM, better outside for Everybody;
    a_network_namespace_cannot_be_unshared_ns_9:
        "call('unshare', 0x10000000 | 0x40000000)" is EPERM, better outside for Everybody;
    an_ipc_namespace_cannot_be_unshared_ns_9:
        "call('unshare', 0x10000000 | 0x8000000)" is EPERM, better outside for Everybody;
    a_host_name_namespace_cannot_be_unshared_ns_9:
        "call('unshare', 0x10000000 | 0x4000000)" is EPERM, better outside for Everybody;
    a_control_group_namespace_cannot_be_unshared_ns_9:
        "call('unshare', 0x10000000 | 0x2000000)" is EPERM, better outside for Everybody;
    a_time_namespace_cannot_be_unshared_ns_9:
        "call('unshare', 0x10000000 | 0x80)" is EPERM, better outside for Everybody;
    clone3_looks_like_a_call_of_a_later_kernel_ns_9:
        "call('clone3', 0, 0)" is ENOSYS, better outside for Everybody;
    ones_own_namespace_cannot_be_entered_again_ns_10:
        "call('setns', os.open('/proc/self/ns/uts', 0), 0)" is EPERM, better outside for Root;
    the_namespaces_of_a_process_cannot_be_entered_ns_10:
        "call('setns', call('pidfd_open', os.getpid(), 0), 0x20000)" is EPERM, better outside for Root;
    a_descriptor_that_is_none_is_not_even_looked_at_ns_10:
        "call('setns', -1, 0)" is EPERM, better outside for Everybody;
    a_map_of_users_cannot_be_written_ns_1:
        "write('/proc/self/uid_map', b'0 0 1')" is EPERM, better outside for Nobody;
}

// Mounts and roots.
refusals! {
    a_file_system_cannot_be_mounted_ns_10:
        "call('mount', b'none', b'/tmp', b'no-such-file-system', 0, 0)" is EPERM, better outside for Root;
    a_directory_cannot_be_bound_over_another_ns_10:
        "call('mount', b'/no-such-directory', b'/tmp', 0, 0x1000, 0)" is EPERM, better outside for Root;
    kernel_settings_cannot_be_remounted_for_writing_ns_10:
        "call('mount', 0, b'/no-such-directory', 0, 0x1020, 0)" is EPERM, better outside for Root;
    mounts_cannot_be_made_to_propagate_ns_10:
        "call('mount', 0, b'/no-such-directory', 0, 0x100000, 0)" is EPERM, better outside for Root;
    a_mask_cannot_be_unmounted_ns_10:
        "call('umount2', b'/no-such-mask', 2)" is EPERM, better outside for Everybody;
    a_file_system_cannot_be_opened_ns_10:
        "call('fsopen', b'no-such-file-system', 0)" is EPERM, better outside for Root;
    a_tree_cannot_be_cloned_ns_10:
        "call('open_tree', -100, b'/no-such-directory', 1)" is EPERM, better outside for Root;
    a_mount_cannot_be_moved_ns_10:
        "call('move_mount', -1, b'', -1, b'', 0)" is EPERM, better outside for Root;
    the_flags_of_a_mount_cannot_be_changed_ns_10:
        "call('mount_setattr', -1, b'', 0x1000, 0, 0)" is EPERM, better outside for Root;
    mounts_cannot_be_listed_by_a_newer_call_ns_10:
        "call('listmount', 0, 0, 0, 0)" is ENOSYS, better outside for Nobody;
    another_root_cannot_be_pivoted_to_ns_10:
        "call('pivot_root', b'/no-such', b'/directory')" is EPERM, better outside for Root;
    another_root_cannot_be_changed_to_ns_10:
        "call('chroot', b'/no-such-directory')" is EPERM, better outside for Everybody;
    a_file_has_no_handle_ns_10:
        "call('name_to_handle_at', -1, b'', 0, 0, 0)" is EPERM, better outside for Everybody;
    a_file_cannot_be_opened_by_its_number_ns_10:
        "call('open_by_handle_at', -1, 0, 0)" is EPERM, better outside for Root;
    whole_file_systems_cannot_be_watched_ns_10:
        "call('fanotify_init', -1, 0)" is EPERM, better outside for Root;
}

// Interfaces that are large, or go past all checks.
refusals! {
    io_uring_cannot_be_set_up_ns_10:
        "call('io_uring_setup', 1, 0)" is EPERM, better outside for Everybody;
    no_program_can_be_put_into_the_kernel_ns_10:
        "call('bpf', 9999, 0, 0)" is EPERM, better outside for Root;
    the_kernels_events_cannot_be_read_ns_10:
        "call('perf_event_open', 0, 0, -1, -1, 0)" is EPERM, better outside for Everybody;
    page_faults_cannot_be_held_ns_10:
        "call('userfaultfd', 1)" is EPERM, better outside for Everybody;
    a_key_cannot_be_added_ns_10:
        "call('add_key', 0, 0, 0, 0, 0)" is EPERM, better outside for Everybody;
    a_key_cannot_be_requested_ns_10:
        "call('request_key', 0, 0, 0, 0)" is EPERM, better outside for Everybody;
    keyrings_cannot_be_used_ns_10:
        "call('keyctl', 0, -3, 0)" is EPERM, better outside for Everybody;
}

// The machine itself.
refusals! {
    a_module_cannot_be_loaded_from_memory_ns_10:
        "call('init_module', 0, 0, 0)" is EPERM, better outside for Root;
    a_module_cannot_be_loaded_from_a_file_ns_10:
        "call('finit_module', -1, b'', 0)" is EPERM, better outside for Root;
    a_module_cannot_be_unloaded_ns_10:
        "call('delete_module', b'no-such-module', 0)" is EPERM, better outside for Root;
    another_kernel_cannot_be_loaded_ns_10:
        "call('kexec_load', 0, 0, 0, -1)" is EPERM, better outside for Root;
    the_machine_cannot_be_rebooted_ns_10:
        "call('reboot', 0, 0, 0, 0)" is EPERM, better outside for Root;
    swapping_cannot_be_started_ns_10:
        "call('swapon', b'/no-such-file', 0)" is EPERM, better outside for Root;
    swapping_cannot_be_stopped_ns_10:
        "call('swapoff', b'/no-such-file')" is EPERM, better outside for Root;
    the_time_of_day_cannot_be_set_ns_10:
        "call('settimeofday', 0, 0)" is EPERM, better outside for Root;
    a_clock_cannot_be_set_ns_10:
        "call('clock_settime', -1, 0)" is EPERM, better outside for Everybody;
    the_clock_cannot_be_adjusted_ns_10:
        "call('adjtimex', 0)" is EPERM, better outside for Everybody;
    the_host_name_cannot_be_changed_ns_10:
        "call('sethostname', 0, -1)" is EPERM, better outside for Root;
    the_domain_name_cannot_be_changed_ns_10:
        "call('setdomainname', 0, -1)" is EPERM, better outside for Root;
    accounting_cannot_be_turned_on_ns_10:
        "call('acct', b'/no-such-file')" is EPERM, better outside for Root;
    quotas_cannot_be_changed_ns_10:
        "call('quotactl', -1, b'/no-such-device', 0, 0)" is EPERM, better outside for Everybody;
    the_kernels_messages_cannot_be_read_ns_10:
        "call('syslog', -1, 0, 0)" is EPERM, better outside for Root;
}

#[cfg(target_arch = "x86_64")]
refusals! {
    the_level_of_hardware_access_cannot_be_raised_ns_10:
        "call('iopl', 4)" is EPERM, better outside for Everybody;
    hardware_ports_cannot_be_opened_ns_10:
        "call('ioperm', -1, -1, 1)" is EPERM, better outside for Everybody;
    segments_cannot_be_described_ns_10:
        "call('modify_ldt', 99, 0, 0)" is EPERM, better outside for Everybody;
    the_x32_form_of_a_call_is_not_there_ns_10:
        "numbered(0x40000000 + CALLS['getpid'][0])" is ENOSYS, better outside for Nobody;
}

// Settings, and files that act when they are written.
refusals! {
    the_program_for_core_dumps_cannot_be_set_ns_5:
        "os.open('/proc/sys/kernel/core_pattern', os.O_WRONLY)" is EACCES, better outside for Root;
    the_limit_of_user_namespaces_cannot_be_raised_ns_9:
        "os.open('/proc/sys/user/max_user_namespaces', os.O_WRONLY)" is EACCES, better outside for Nobody;
    control_groups_are_not_there_to_be_left_ns_4:
        "os.listdir('/sys')" is ENOENT, better outside for Everybody;
    a_control_group_cannot_be_chosen_ns_5:
        "os.open('/proc/self/cgroup', os.O_WRONLY)" is EACCES, better outside for Nobody;
    one_cannot_be_made_the_last_to_be_killed_ns_17:
        "write('/proc/self/oom_score_adj', b'-1000')" is EACCES, better outside for Nobody;
    a_capability_cannot_be_put_on_a_file_ns_8:
        "os.setxattr(b'/tmp', 'security.capability', bytes([1, 0, 0, 2] + [0] * 16))"
            is EPERM, better outside for Nobody;
    a_layer_cannot_be_given_attributes_of_overlays_ns_3:
        "os.setxattr('/usr', 'trusted.overlay.opaque', b'y')" is EPERM, better outside for Nobody;
    a_user_with_more_rights_cannot_be_become_ns_8:
        "os.setuid(0)" is EINVAL, better outside for Root;
    a_group_cannot_be_joined_ns_8:
        "os.setgroups([0])" is EPERM, better outside for Root;
}

#[tokio::test]
async fn the_kernel_takes_no_emergency_commands_ns_5() {
    let prison = Prison::new().await;
    let written = prison
        .attempt("write('/proc/sysrq-trigger', b'no command')")
        .await;
    // Covered by nothing where the kernel has it.
    let is_covered = std::path::Path::new("/proc/sysrq-trigger").exists();
    let expected = if is_covered { "worked: 10" } else { "ENOENT" };
    assert_eq!(written, expected);
    let covers = prison
        .shell("stat -L -c '%t:%T' /proc/sysrq-trigger")
        .await
        .1;
    assert!(!is_covered || covers == "1:3", "{covers}");
    prison.end().await;
}

/// Machine code for `getpid` by the 32-bit way in, whose numbers mean other calls.
#[cfg(target_arch = "x86_64")]
#[tokio::test]
async fn a_32_bit_call_ends_the_process_ns_10() {
    const PROGRAM: &str = r"
import mmap
page = mmap.mmap(-1, 4096, prot=7)
page.write(bytes([0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0xc3]))
start = ctypes.addressof(ctypes.c_char.from_buffer(page))
print(ctypes.CFUNCTYPE(ctypes.c_int)(start)() == os.getpid())";
    const SIGSYS: i64 = 31;
    let outside = super::python::outside(PROGRAM);
    let prison = Prison::new().await;
    let (status, shown) = prison.shell(&super::python::inside(PROGRAM)).await;
    assert!(!shown.contains("True"), "{shown}");
    // A kernel without 32-bit calls ends it as well, by another signal and on both sides.
    if outside == "True" {
        assert_eq!(status, 128 + SIGSYS, "{shown}");
    }
    prison.end().await;
}

#[tokio::test]
async fn no_mount_inside_hears_of_mounts_outside_ns_3() {
    let prison = Prison::new().await;
    let (_, mounts) = prison.shell("cat /proc/self/mountinfo").await;
    assert!(mounts.lines().count() > 10, "{mounts}");
    for mount in mounts.lines() {
        assert!(!mount.contains(" shared:"), "{mount}");
        assert!(!mount.contains(" master:"), "{mount}");
        let kind = mount.split(" - ").nth(1).unwrap();
        let closed = ["cgroup", "sysfs", "debugfs", "tracefs", "securityfs", "bpf"];
        assert!(!closed.iter().any(|name| kind.starts_with(name)), "{mount}");
    }
    prison.end().await;
}
