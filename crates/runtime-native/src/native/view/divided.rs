//! System directories in which other file systems are mounted, as users without root can show them.
//!
//! In a sandbox of theirs all mounts of the machine are locked to the directories that they lie on, and
//! overlayfs takes no directory with a locked mount in it. So such a directory is shown in parts: a
//! place that has the names of what is in it, and on each of these what the machine has there. WSL,
//! machines with graphics processors, and containers have such mounts.

use std::{
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use zareba_confine::parse_mounts;

use super::skeleton::{Kind, Top};

/// A directory with more in it is shown as it is, and cannot be changed: each part costs a mount.
const PARTS_MAX: usize = 40;

/// File systems that overlayfs is known to show. Those of other machines and programs are shown as they
/// are.
const FOR_OVERLAYS: [&str; 11] = [
    "btrfs", "erofs", "ext2", "ext3", "ext4", "f2fs", "overlay", "squashfs", "tmpfs", "xfs", "zfs",
];

/// What is mounted somewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mounted {
    at: PathBuf,
    file_system: String,
}

/// What is mounted in directories, or on them, as this process sees it.
pub(super) fn mounted_in(directories: &[&str]) -> io::Result<Vec<Mounted>> {
    let table = fs::read("/proc/self/mountinfo")?;
    let lines = parse_mounts(&table).map_err(io::Error::other)?;
    let is_in = |point: &Path| directories.iter().any(|it| point.starts_with(it));
    Ok(lines
        .into_iter()
        .filter(|line| is_in(&line.point))
        .map(|line| Mounted {
            at: line.point,
            file_system: line.file_system,
        })
        .collect())
}

/// A directory, or the parts of it where something is mounted in it.
pub(super) fn divide(path: &Path, mounted: &[Mounted]) -> io::Result<Vec<Top>> {
    let mut tops = Vec::new();
    divide_into(path, mounted, &mut tops)?;
    Ok(tops)
}

fn divide_into(path: &Path, mounted: &[Mounted], tops: &mut Vec<Top>) -> io::Result<()> {
    let mut push = |kind| {
        tops.push(Top {
            path: path.to_owned(),
            kind,
        });
    };
    if !mounted
        .iter()
        .any(|it| it.at != path && it.at.starts_with(path))
    {
        // The last one lies on top.
        let on_it = mounted.iter().rev().find(|it| it.at == path);
        let is_known = |it: &Mounted| FOR_OVERLAYS.contains(&it.file_system.as_str());
        push(match on_it.is_none_or(is_known) {
            true => Kind::Mirrored,
            false => Kind::Bound,
        });
        return Ok(());
    }
    if path == Path::new("/etc") {
        push(Kind::Copied);
        return Ok(());
    }
    let parts = parts(path)?;
    if parts.len() > PARTS_MAX {
        push(Kind::Bound);
        return Ok(());
    }
    push(Kind::Divided);
    for part in parts {
        let found = fs::symlink_metadata(&part)?;
        if found.is_dir() {
            divide_into(&part, mounted, tops)?;
        } else if found.is_file() {
            tops.push(Top {
                path: part,
                kind: Kind::Bound,
            });
        }
    }
    Ok(())
}

/// What a directory has that everyone may see, in the order of names. Sockets, pipes and devices are
/// left out: through a mount of their own they would be the machine's (NS-4).
pub(super) fn parts(path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut parts = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?.path();
        let found = fs::symlink_metadata(&entry)?;
        let is_open = match found.file_type() {
            kind if kind.is_dir() => found.mode() & 0o005 == 0o005,
            kind if kind.is_file() => found.mode() & 0o004 == 0o004,
            kind => kind.is_symlink(),
        };
        if is_open {
            parts.push(entry);
        }
    }
    parts.sort();
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mounted(at: &Path, file_system: &str) -> Mounted {
        Mounted {
            at: at.to_owned(),
            file_system: file_system.to_owned(),
        }
    }

    #[test]
    fn a_directory_is_divided_along_the_way_to_what_is_mounted_in_it() {
        let place = tempfile::tempdir().unwrap();
        let top = place.path().join("usr");
        for directory in ["bin", "lib/wsl", "lib/x", "many", "secret"] {
            fs::create_dir_all(top.join(directory)).unwrap();
        }
        for number in 0..=PARTS_MAX {
            fs::write(top.join(format!("many/{number}")), "").unwrap();
        }
        fs::write(top.join("file"), "").unwrap();
        std::os::unix::fs::symlink("bin", top.join("link")).unwrap();
        rustix::fs::chmod(top.join("secret"), rustix::fs::Mode::RWXU).unwrap();
        let told = |mounts: &[(&str, &str)]| {
            let mounts: Vec<Mounted> = mounts
                .iter()
                .map(|(at, kind)| mounted(&top.join(at), kind))
                .collect();
            let tops = divide(&top, &mounts).unwrap();
            let name = |top_: &Top| top_.path.strip_prefix(&top).unwrap().display().to_string();
            tops.iter()
                .map(|it| (name(it), it.kind))
                .collect::<Vec<_>>()
        };
        let row = |name: &str, kind| (name.to_owned(), kind);
        assert_eq!(told(&[]), [row("", Kind::Mirrored)]);
        assert_eq!(
            told(&[("lib/wsl", "9p"), ("many/1", "ext4")]),
            [
                row("", Kind::Divided),
                row("bin", Kind::Mirrored),
                row("file", Kind::Bound),
                row("lib", Kind::Divided),
                row("lib/wsl", Kind::Bound),
                row("lib/x", Kind::Mirrored),
                row("many", Kind::Bound),
            ]
        );
    }
}
