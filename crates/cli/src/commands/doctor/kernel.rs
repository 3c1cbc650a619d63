//! What the kernel offers, read from `/proc` and `/sys` without changing anything.

use std::fs;

use zareba_confine::Restriction;

use super::check::Finding;

/// The kernel's name and release.
pub(super) fn release() -> String {
    let name = rustix::system::uname();
    format!(
        "{} {}",
        name.sysname().to_string_lossy(),
        name.release().to_string_lossy()
    )
}

/// The file system `name`, if the kernel knows it. One in a module that was never used is not
/// in the list.
pub(super) fn file_system(name: &str) -> Option<String> {
    let known = read("/proc/filesystems")?;
    let mut names = known
        .lines()
        .filter_map(|line| line.split_whitespace().last());
    names
        .any(|known| known == name)
        .then(|| "known to the kernel".to_owned())
}

/// User namespaces, or the switch that keeps them from this user.
pub(super) fn user_namespaces() -> Finding {
    // Whether a profile refuses mounts is told by the trial start.
    let found = Restriction::find().filter(|found| *found != Restriction::Profile);
    if let Some(restriction) = found {
        return Finding::Missing(restriction.remedy().to_owned());
    }
    let limit = read("/proc/sys/user/max_user_namespaces");
    let limit = limit.map(|limit| format!("up to {} for this user", limit.trim()));
    Finding::of(limit, "boot a kernel with CONFIG_USER_NS")
}

/// Landlock, if it is among the active security modules. Which version of it would take a system
/// call to find out.
pub(super) fn landlock() -> Finding {
    let Some(modules) = read("/sys/kernel/security/lsm") else {
        let reason = "securityfs is not mounted, so the active security modules cannot be seen";
        return Finding::Unknown(reason.to_owned());
    };
    let is_active = modules.trim().split(',').any(|module| module == "landlock");
    let found = is_active.then(|| "active; its version is not looked at yet".to_owned());
    Finding::of(
        found,
        "boot Linux 5.13 or later with `landlock` in the list of `lsm=`",
    )
}

/// What seccomp filters may answer with.
pub(super) fn seccomp() -> Option<String> {
    let actions = read("/proc/sys/kernel/seccomp/actions_avail")?;
    Some(format!("filters may answer with {}", actions.trim()))
}

/// Which generation of control groups is mounted.
pub(super) fn control_groups() -> Option<String> {
    generation(&read("/proc/mounts")?).map(str::to_owned)
}

fn generation(mounts: &str) -> Option<&'static str> {
    let has = |wanted: &str| {
        let mut kinds = mounts
            .lines()
            .filter_map(|line| line.split_whitespace().nth(2));
        kinds.any(|kind| kind == wanted)
    };
    match (has("cgroup"), has("cgroup2")) {
        (true, true) => Some("hybrid (v1 controllers with a v2 tree)"),
        (true, false) => Some("v1"),
        (false, true) => Some("v2"),
        (false, false) => None,
    }
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generation_of_control_groups_is_told_from_the_mounts() {
        let one = "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n";
        let two = "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n";
        assert_eq!(generation(one), Some("v1"));
        assert_eq!(generation(two), Some("v2"));
        assert_eq!(
            generation(&[one, two].concat()),
            Some("hybrid (v1 controllers with a v2 tree)")
        );
        assert_eq!(generation("proc /proc proc rw 0 0\n"), None);
    }
}
