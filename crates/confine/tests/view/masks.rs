//! What `/proc` does not tell inside.

use std::path::Path;

use crate::{
    harness::Case,
    sandbox::{Ground, run},
};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case {
            name: "what_tells_of_the_machine_is_empty_ns_5",
            run: what_tells_of_the_machine_is_empty_ns_5,
        },
        Case {
            name: "settings_of_the_kernel_can_be_read_and_not_written_ns_5",
            run: settings_of_the_kernel_can_be_read_and_not_written_ns_5,
        },
    ]
}

fn what_tells_of_the_machine_is_empty_ns_5() {
    let files = [
        "kallsyms",
        "modules",
        "interrupts",
        "keys",
        "key-users",
        "kcore",
        "sysrq-trigger",
        "timer_list",
        "sched_debug",
        "kpagecount",
        "iomem",
        "config.gz",
        "latency_stats",
    ];
    let directories = ["acpi", "asound", "bus", "fs", "irq", "scsi"];
    let ground = Ground::new(1000);
    let policy = ground.policy(Vec::new());
    let mut checked = 0;
    for name in files
        .iter()
        .filter(|name| Path::new("/proc").join(name).exists())
    {
        assert_eq!(run(&policy, &format!("cat /proc/{name}")), "", "{name}");
        checked += 1;
    }
    for name in directories
        .iter()
        .filter(|name| Path::new("/proc").join(name).exists())
    {
        assert_eq!(
            run(
                &policy,
                &format!("ls -A /proc/{name}; touch /proc/{name}/x 2>/dev/null")
            ),
            "",
            "{name}"
        );
        checked += 1;
    }
    assert!(checked >= 6, "every kernel has most of them: {checked}");
    assert_ne!(run(&policy, "cat /proc/meminfo"), "");
}

fn settings_of_the_kernel_can_be_read_and_not_written_ns_5() {
    let ground = Ground::new(1000);
    let said = run(
        &ground.policy(Vec::new()),
        "cat /proc/sys/user/max_user_namespaces; touch /proc/sys/kernel/x 2>/dev/null || echo refused
         echo 1 2>/dev/null > /proc/sys/user/max_user_namespaces || echo refused",
    );
    assert_eq!(said.lines().next(), Some("0"));
    assert_eq!(said.matches("refused").count(), 2);
}
