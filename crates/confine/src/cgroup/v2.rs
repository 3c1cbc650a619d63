//! The second generation: handing controllers down to our groups, and writing limits.
//!
//! The kernel lets a group hand controllers to the groups inside it only while it has no
//! processes of its own; the root is exempt. So a place is used as it is when it is free. When
//! this process alone is in it and it was delegated to us, this process steps into the leaf
//! `zareba/self`. Other processes are never moved: then root falls back to the root of the
//! hierarchy, and everybody else is told how to get a place of their own.

use std::{io, path::Path};

use rustix::{
    fs::{Access as Permission, AtFlags, CWD},
    process::geteuid,
};

use super::{
    Access, Controller, Hierarchy, IoLimit, Limit, Limits, OWN_LEAF, Outcome, Reason, Version,
    directory::{Directory, PROCESSES},
    limits::{CPU_PERIOD_MICROSECONDS, whole_pages},
    place::{Vacancy, access_to},
    report::{ask, settle, settle_if},
};

/// What a group can have, and what it has handed down so far.
const CONTROLLERS: &str = "cgroup.controllers";
const SUBTREE_CONTROL: &str = "cgroup.subtree_control";

/// The attributes by which systemd marks a place as handed over to whoever runs in it.
const DELEGATION_MARKS: [&str; 2] = ["trusted.delegate", "user.delegate"];

/// What can be had in one directory.
struct Survey {
    usable: Vec<Controller>,
    withheld: Vec<(Controller, Reason)>,
    vacancy: Vacancy,
}

/// Finds out what our own place can give, and takes the root instead when that gives more.
pub(super) fn choose_home(hierarchy: &mut Hierarchy) {
    let Some(mount) = hierarchy.mount.clone() else {
        return;
    };
    let mut survey = survey(&hierarchy.directory, &hierarchy.path);
    let root = mount.mount_point.clone();
    // The fallback: only for those who may write there anyway, and only to the true root, where
    // a directory more disturbs nobody.
    let may_use_root = mount.root == "/"
        && hierarchy.directory != root
        && is_true_root(&root)
        && access_to(&mount, &root, Version::V2) == Access::Writable;
    if may_use_root {
        let at_root = self::survey(&root, "/");
        if at_root.usable.len() > survey.usable.len() {
            survey = at_root;
            hierarchy.directory = root;
            hierarchy.path = "/".to_owned();
            hierarchy.access = Access::Writable;
        }
    }
    hierarchy.controllers = survey.usable;
    hierarchy.withheld = survey.withheld;
    hierarchy.vacancy = survey.vacancy;
}

fn survey(directory: &Path, path: &str) -> Survey {
    let read = |file: &str| std::fs::read_to_string(directory.join(file)).unwrap_or_default();
    let offered = named(&read(CONTROLLERS));
    let handed_down = named(&read(SUBTREE_CONTROL));
    let vacancy = vacancy(directory, path, &read(PROCESSES));
    let subtree_control = directory.join(SUBTREE_CONTROL);
    let may_hand_down = rustix::fs::accessat(
        CWD,
        &subtree_control,
        Permission::WRITE_OK,
        AtFlags::EACCESS,
    )
    .is_ok();
    let mut usable = Vec::new();
    let mut withheld = Vec::new();
    for controller in Controller::LIMITING {
        let reason = if handed_down.contains(&controller) {
            None
        } else if !offered.contains(&controller) {
            // A tree without any controller is the second half of a hybrid machine: there the
            // first generation has them, and nothing is withheld.
            Some(Reason::NotDelegated).filter(|_| !offered.is_empty())
        } else if !may_hand_down {
            Some(Reason::NotPermitted)
        } else if vacancy == Vacancy::Occupied {
            Some(Reason::Occupied)
        } else {
            None
        };
        match reason {
            Some(reason) => withheld.push((controller, reason)),
            None if offered.contains(&controller) => usable.push(controller),
            None => {}
        }
    }
    Survey {
        usable,
        withheld,
        vacancy,
    }
}

fn vacancy(directory: &Path, path: &str, processes: &str) -> Vacancy {
    let this_process = std::process::id().to_string();
    if is_true_root(directory) || processes.trim().is_empty() {
        Vacancy::Free
    } else if processes.trim() == this_process && is_ours(directory, path) {
        Vacancy::OnlyThisProcess
    } else {
        Vacancy::Occupied
    }
}

/// The root of the whole hierarchy, not only of a namespace, is the only group without a type.
fn is_true_root(directory: &Path) -> bool {
    directory.join(CONTROLLERS).exists() && !directory.join("cgroup.type").exists()
}

/// Whether a place was handed over to this user: they own it, or, as everything is root's, it is
/// marked as delegated or is all that this container has.
fn is_ours(directory: &Path, path: &str) -> bool {
    let user = geteuid();
    if !user.is_root() {
        return rustix::fs::stat(directory).is_ok_and(|status| status.st_uid == user.as_raw());
    }
    let is_marked = |name: &&str| {
        let mut value = [0; 8];
        rustix::fs::getxattr(directory, *name, &mut value[..])
            .is_ok_and(|length| value.get(..length) == Some(b"1"))
    };
    path == "/" || DELEGATION_MARKS.iter().any(is_marked)
}

fn named(text: &str) -> Vec<Controller> {
    Controller::among(Version::V2, text.split_ascii_whitespace())
}

/// Makes sure that `home` can give controllers to the groups in it.
///
/// What does not succeed here shows in the group's own list of controllers, which is what
/// limits are decided by; so there is no error.
pub(super) fn prepare_home(hierarchy: &Hierarchy, home: &Directory) {
    let controllers = &hierarchy.controllers;
    if controllers.is_empty() || hands_down(home, controllers) {
        return;
    }
    let Ok(place) = Directory::open(&hierarchy.directory) else {
        return;
    };
    if hierarchy.vacancy == Vacancy::OnlyThisProcess && !hands_down(&place, controllers) {
        // A failure leaves the place occupied, and handing down fails below.
        let _ = step_aside(home);
    }
    hand_down(&place, controllers);
    hand_down(home, controllers);
}

/// Moves this process, with all its threads, out of the way.
fn step_aside(home: &Directory) -> io::Result<()> {
    home.ensure_child(OWN_LEAF)?.write(PROCESSES, "0")
}

fn hands_down(directory: &Directory, controllers: &[Controller]) -> bool {
    let present = named(&directory.read(SUBTREE_CONTROL).unwrap_or_default());
    controllers
        .iter()
        .all(|controller| present.contains(controller))
}

/// Gives `controllers` to the groups inside `directory`, as far as the kernel agrees.
pub(super) fn hand_down(directory: &Directory, controllers: &[Controller]) {
    if controllers.is_empty() || hands_down(directory, controllers) {
        return;
    }
    let request = |controller: &Controller| format!("+{}", controller.name(Version::V2));
    let together: Vec<String> = controllers.iter().map(request).collect();
    if directory
        .write(SUBTREE_CONTROL, &together.join(" "))
        .is_err()
    {
        // All or nothing is the kernel's rule for one write; one that it refuses must not take
        // the others with it.
        for single in &together {
            let _ = directory.write(SUBTREE_CONTROL, single);
        }
    }
}

/// The controllers that a group really has.
pub(super) fn controllers_of(directory: &Directory) -> Vec<Controller> {
    named(&directory.read(CONTROLLERS).unwrap_or_default())
}

/// Writes one limit and says what came of it.
pub(super) fn apply(directory: &Directory, limit: Limit, limits: &Limits) -> Outcome {
    let settle = |file, value: String| settle(Version::V2, directory, file, &value);
    match limit {
        Limit::Memory => ask(limits.memory_bytes, |bytes| {
            settle("memory.max", whole_pages(bytes).to_string())
        }),
        Limit::Swap => ask(limits.memory_bytes, |_| {
            settle("memory.swap.max", "0".to_owned())
        }),
        Limit::Pids => ask(limits.pids, |pids| settle("pids.max", pids.to_string())),
        Limit::Cpu => ask(limits.cpu_millis, |millis| {
            let quota = u64::from(millis) * CPU_PERIOD_MICROSECONDS / 1000;
            settle("cpu.max", format!("{quota} {CPU_PERIOD_MICROSECONDS}"))
        }),
        Limit::Io => Outcome::all(limits.io.iter().map(|limit| apply_io(directory, limit))),
    }
}

fn apply_io(directory: &Directory, limit: &IoLimit) -> Outcome {
    let rates: Vec<String> = [
        ("rbps", limit.read_bytes_per_second),
        ("wbps", limit.written_bytes_per_second),
        ("riops", limit.reads_per_second),
        ("wiops", limit.writes_per_second),
    ]
    .into_iter()
    .filter_map(|(key, rate)| Some(format!("{key}={}", rate?)))
    .collect();
    let (major, minor) = limit.device;
    let device = format!("{major}:{minor}");
    let value = format!("{device} {}", rates.join(" "));
    settle_if(Version::V2, directory, "io.max", &value, |found| {
        let line = found
            .lines()
            .find_map(|line| line.strip_prefix(&device)?.strip_prefix(' '));
        let set: Vec<&str> = line.unwrap_or_default().split(' ').collect();
        rates.iter().all(|rate| set.contains(&rate.as_str()))
    })
}

/// Decides who dies when memory runs out in `directory`: one process, or all in it.
pub(super) fn set_oom_group(directory: &Directory, value: &str) -> Outcome {
    settle(Version::V2, directory, "memory.oom.group", value)
}

#[cfg(test)]
#[path = "v2_tests.rs"]
mod v2_tests;
