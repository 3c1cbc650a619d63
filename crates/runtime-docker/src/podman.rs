//! Podman, where it answers in the place of a Docker Engine.
//!
//! It takes the same request in other words (`adapt`), and tells less of what came of it: what it
//! keeps to itself is asked of the kernel (`check`). So it must be on this machine, which its
//! filter of system calls must be anyway, because it takes that as a file.

use std::{
    fs::{self, File, Permissions},
    io::{self, Write as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use bollard::models::{
    ContainerCreateBody, ContainerInspectResponse, HostConfig, MountPoint, MountType,
    ResourcesUlimits,
};
use rustix::process::{Resource, getrlimit};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::{
    kernel::HoldError,
    request::{MASKED, READ_ONLY},
};

/// What is said of one that shares no files with us.
pub(crate) const ELSEWHERE: &str = "Podman takes filters of system calls only as files of its own \
     machine, so it can be used on this machine only, by root; use a Docker Engine elsewhere";

/// What filters begin with among the files of our directory.
const PROFILE: &str = ".seccomp-";

/// What Podman takes for a limit of processes when none is named; it may not be able to set it.
const PROCESSES_USUAL: u64 = 1_048_576;

/// Says the same in Podman's words. Filters are kept in `directory`.
pub(crate) fn adapt(body: &mut ContainerCreateBody, directory: &Path) -> io::Result<()> {
    let Some(host) = &mut body.host_config else {
        return Ok(());
    };
    for option in host.security_opt.iter_mut().flatten() {
        if let Some(profile) = option.strip_prefix("seccomp=") {
            *option = format!("seccomp={}", keep_profile(directory, profile)?.display());
        }
    }
    // The list of its interface is not looked at, and its own is shorter than ours.
    let masks = format!("mask={}", MASKED.join(":"));
    host.security_opt.get_or_insert_default().push(masks);
    for options in host.tmpfs.iter_mut().flat_map(|places| places.values_mut()) {
        *options = of_its_user(options);
    }
    name_limit_of_processes(host);
    Ok(())
}

/// Puts a filter where Podman can read it, by the hash of what it says.
fn keep_profile(directory: &Path, profile: &str) -> io::Result<PathBuf> {
    let hash = Sha256::digest(profile);
    let name: String = hash[..16]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let path = directory.join(format!("{PROFILE}{name}.json"));
    if fs::read(&path).is_ok_and(|kept| kept == profile.as_bytes()) {
        return Ok(path);
    }
    let draft = directory.join(format!("{PROFILE}{:016x}", rand::random::<u64>()));
    let mut file = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&draft)?;
    file.write_all(profile.as_bytes())?;
    file.set_permissions(Permissions::from_mode(0o644))?;
    fs::rename(draft, &path)?;
    Ok(path)
}

/// Scratch places belong to whom the container runs as, and begin empty as with a Docker Engine. Podman
/// refuses a number of files.
fn of_its_user(options: &str) -> String {
    let kept = options.split(',');
    let is_known = |it: &&str| {
        !["uid=", "gid=", "nr_inodes="]
            .iter()
            .any(|name| it.starts_with(name))
    };
    let kept = kept.filter(is_known);
    kept.chain(["U", "notmpcopyup"])
        .collect::<Vec<_>>()
        .join(",")
}

/// How many processes there are is bounded by the control group; this only keeps Podman from
/// asking for more than it may have itself.
fn name_limit_of_processes(host: &mut HostConfig) {
    let limits = host.ulimits.get_or_insert_default();
    if limits.iter().any(|it| it.name.as_deref() == Some("nproc")) {
        return;
    }
    let ours = getrlimit(Resource::Nproc).maximum;
    let most = ours.unwrap_or(PROCESSES_USUAL).min(PROCESSES_USUAL);
    let most = i64::try_from(most).ok();
    limits.push(ResourcesUlimits {
        name: Some("nproc".to_owned()),
        soft: most,
        hard: most,
    });
}

/// Brings what was sent and what Podman says of it to the same words. What it does not tell is
/// taken out: the kernel is asked for that later.
pub(crate) fn translate(wanted: &mut Value, found: &mut Value) {
    for silent in [
        "CapDrop",
        "MaskedPaths",
        "ReadonlyPaths",
        "Mounts",
        "CgroupnsMode",
        "Sysctls",
    ] {
        forget(wanted, silent);
    }
    if let Some(log) = wanted.get_mut("LogConfig") {
        forget(log, "Config");
    }
    if let Some(Value::Array(options)) = wanted.get_mut("SecurityOpt") {
        options.retain(|it| !it.as_str().unwrap_or_default().starts_with("mask="));
    }
    // Its own namespaces, by the names that Podman has for them.
    for (field, name, ours) in [
        ("IpcMode", "shareable", "private"),
        ("PidMode", "private", ""),
        ("UTSMode", "private", ""),
    ] {
        if found[field] == name {
            found[field] = ours.into();
        }
    }
    for limit in found["Ulimits"].as_array_mut().into_iter().flatten() {
        let name = limit["Name"].as_str().unwrap_or_default();
        limit["Name"] = name.trim_start_matches("RLIMIT_").to_lowercase().into();
    }
    let Some(places) = wanted.get_mut("Tmpfs").and_then(Value::as_object_mut) else {
        return;
    };
    for (place, options) in places {
        // It may add to them, and leaves out what is no option of a mount.
        let has_all = found["Tmpfs"][place].as_str().is_some_and(|found| {
            let mut wanted = options.as_str().unwrap_or_default().split(',');
            wanted.all(|it| it == "notmpcopyup" || found.split(',').any(|other| other == it))
        });
        if has_all {
            *options = found["Tmpfs"][place].clone();
        }
    }
}

fn forget(object: &mut Value, field: &str) {
    if let Some(fields) = object.as_object_mut() {
        fields.remove(field);
    }
}

/// Where mounts differ from those that were asked for; there may be no others.
pub(crate) fn compare_mounts(
    sent: &ContainerCreateBody,
    seen: &ContainerInspectResponse,
) -> Vec<String> {
    let wanted = sent.host_config.as_ref().and_then(|it| it.mounts.as_ref());
    let wanted = wanted.map(Vec::as_slice).unwrap_or_default();
    let found = seen.mounts.as_deref().unwrap_or_default();
    let mut differences: Vec<String> = wanted
        .iter()
        .filter(|mount| !found.iter().any(|point| is_of(point, mount)))
        .map(|mount| {
            let target = mount.target.as_deref().unwrap_or_default();
            format!("`{target}` is not mounted as it was asked for")
        })
        .collect();
    if found.len() > wanted.len() {
        differences.push("something else is mounted".to_owned());
    }
    differences
}

fn is_of(point: &MountPoint, mount: &bollard::models::Mount) -> bool {
    let source = match mount.typ {
        Some(MountType::VOLUME) => &point.name,
        _ => &point.source,
    };
    point.destination == mount.target
        && *source == mount.source
        && point.rw == mount.read_only.map(|it| !it)
}

/// Asks the kernel for what Podman does not tell, and returns what is weaker than it could be.
pub(crate) fn check(pid: i64) -> Result<Vec<String>, HoldError> {
    let unseen = |_| HoldError::Unseen(ELSEWHERE);
    let namespace = |whose: &str, kind: &str| fs::read_link(format!("/proc/{whose}/ns/{kind}"));
    let is_shared = |kind: &str| -> io::Result<bool> {
        Ok(namespace("self", kind)? == namespace(&pid.to_string(), kind)?)
    };
    for kind in ["ipc", "mnt", "pid", "uts"] {
        if is_shared(kind).map_err(unseen)? {
            return Err(HoldError::Loose("it shares a namespace with this machine"));
        }
    }
    let table = fs::read_to_string(format!("/proc/{pid}/mountinfo")).map_err(unseen)?;
    let inside = |path: &str| PathBuf::from(format!("/proc/{pid}/root{path}"));
    for path in MASKED.iter().chain(&READ_ONLY) {
        let is_there = inside(path).try_exists().map_err(unseen)?;
        let options = options_of(&table, path);
        let is_closed = match options {
            None => false,
            Some(_) if MASKED.contains(path) => true,
            Some(options) => options.split(',').any(|it| it == "ro"),
        };
        if is_there && !is_closed {
            return Err(HoldError::Loose("files of the kernel are open to it"));
        }
    }
    let mut loose = vec!["files in memory: their number has no bound (Podman)".to_owned()];
    if is_shared("cgroup").map_err(unseen)? {
        loose.push("control groups: it sees where its own are (Podman with cgroups v1)".to_owned());
    }
    Ok(loose)
}

/// The options of what is mounted last at a path.
fn options_of<'a>(table: &'a str, path: &str) -> Option<&'a str> {
    table.lines().rev().find_map(|line| {
        let mut words = line.split(' ').skip(4);
        (words.next()? == path).then(|| words.next())?
    })
}

#[cfg(test)]
#[path = "podman_tests.rs"]
mod tests;
