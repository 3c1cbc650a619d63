//! Switches of a system that keep user namespaces, or the rights in them, from an ordinary user.
//!
//! The kernel answers all of them with the same error numbers, so the switch itself is read to name the
//! one remedy that helps.

use std::{fs, path::Path};

use crate::privilege::is_root_of_machine;

/// A switch that is set against user namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restriction {
    /// No user may make one: `user.max_user_namespaces` is 0.
    Limit,
    /// Only root may make one: `kernel.unprivileged_userns_clone` of Debian's kernels is 0.
    Root,
    /// AppArmor takes the rights from those of programs without a profile of their own, as on Ubuntu
    /// since 23.10. The namespace is made, and the first mount in it is refused.
    AppArmor,
    /// A profile of AppArmor confines this process, as Docker's does by default, and refuses mounts.
    Profile,
}

/// What helps where the switch is not known.
pub(crate) const ANY: &str = "this system restricts user namespaces: as root, \
     `sysctl -w user.max_user_namespaces=15000`, `sysctl -w kernel.unprivileged_userns_clone=1` (Debian) or \
     `sysctl -w kernel.apparmor_restrict_unprivileged_userns=0` (Ubuntu), or run as root; start a \
     container with `--security-opt seccomp=unconfined --security-opt systempaths=unconfined`";

impl Restriction {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Limit, Self::Root, Self::AppArmor, Self::Profile];

    /// The switch that is set for this process.
    pub fn find() -> Option<Self> {
        let found = Self::find_in(Path::new("/proc"))?;
        // The others are for users without root.
        let binds_root = matches!(found, Self::Limit | Self::Profile);
        (binds_root || !is_root_of_machine()).then_some(found)
    }

    /// The same with `/proc` elsewhere.
    fn find_in(processes: &Path) -> Option<Self> {
        let read = |path: &str| fs::read_to_string(processes.join(path)).ok();
        let is = |path: &str, value: &str| read(path).is_some_and(|text| text.trim() == value);
        if is("sys/user/max_user_namespaces", "0") {
            return Some(Self::Limit);
        }
        if is("sys/kernel/unprivileged_userns_clone", "0") {
            return Some(Self::Root);
        }
        // The first is there where several security modules are active.
        let label = read("self/attr/apparmor/current").or_else(|| read("self/attr/current"));
        let label = label.as_deref().map_or("unconfined", str::trim);
        if label.ends_with("(enforce)") {
            return Some(Self::Profile);
        }
        // A profile that allows `userns` is not called so, even where it confines nothing else.
        let restricts = is("sys/kernel/apparmor_restrict_unprivileged_userns", "1");
        (restricts && label == "unconfined").then_some(Self::AppArmor)
    }

    /// What a person can do about it.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::Limit => {
                "this system allows no user namespaces: `sudo sysctl -w user.max_user_namespaces=15000`"
            }
            Self::Root => {
                "this system allows user namespaces to root only: \
                 `sudo sysctl -w kernel.unprivileged_userns_clone=1`"
            }
            Self::AppArmor => {
                "AppArmor takes all rights from user namespaces of programs without a profile (Ubuntu 23.10 and \
                 later): install the profile `deploy/apparmor/zareba` for this program, or turn it off for all, \
                 `sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`"
            }
            Self::Profile => {
                "the AppArmor profile of this process refuses mounts: start a container with \
                 `--security-opt apparmor=unconfined` as well"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found where these files of `/proc` say this.
    fn found(files: &[(&str, &str)]) -> Option<Restriction> {
        let processes = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = processes.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Restriction::find_in(processes.path())
    }

    #[test]
    fn the_switch_that_is_set_is_found() {
        const LIMIT: &str = "sys/user/max_user_namespaces";
        const DEBIAN: &str = "sys/kernel/unprivileged_userns_clone";
        const UBUNTU: &str = "sys/kernel/apparmor_restrict_unprivileged_userns";
        assert_eq!(found(&[]), None);
        assert_eq!(found(&[(LIMIT, "0\n")]), Some(Restriction::Limit));
        assert_eq!(found(&[(LIMIT, "9\n"), (DEBIAN, "1\n")]), None);
        assert_eq!(found(&[(DEBIAN, "0\n")]), Some(Restriction::Root));
        assert_eq!(found(&[(UBUNTU, "1\n")]), Some(Restriction::AppArmor));
        assert_eq!(found(&[(UBUNTU, "0\n")]), None);
    }

    #[test]
    fn the_profile_of_the_process_tells_whether_apparmor_restricts_it() {
        const UBUNTU: (&str, &str) = ("sys/kernel/apparmor_restrict_unprivileged_userns", "1\n");
        let with = |label| found(&[UBUNTU, ("self/attr/current", label)]);
        assert_eq!(with("unconfined\n"), Some(Restriction::AppArmor));
        const PROFILE: &str = include_str!("../../../deploy/apparmor/zareba");
        assert!(PROFILE.contains("\nprofile zareba ") && PROFILE.contains("\n  userns,\n"));
        assert_eq!(with("zareba (unconfined)\n"), None);
        let docker = ("self/attr/apparmor/current", "docker-default (enforce)\n");
        assert_eq!(found(&[docker]), Some(Restriction::Profile));
    }
}
