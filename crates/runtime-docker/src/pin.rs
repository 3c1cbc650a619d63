//! Paths of this machine that are mounted, held by what they led to when that was decided (G-4).
//!
//! The Engine takes paths, and looks them up later, as root and through links. Another sandbox that can
//! change a directory above could put a link in between. So each path is opened once without links, and what
//! is mounted has to be the same inode before the executor gets its key: a name that leads elsewhere by then
//! ends the start. Only root can look into a container that has no rights of its own.

use std::{
    fs::{File, Metadata},
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use bollard::models::{HostConfig, MountType};
use rustix::fs::{AtFlags, CWD, Gid, Mode, OFlags, ResolveFlags, Uid, chownat, fstat, openat2};

use crate::{
    kernel::HoldError,
    request::{DOOR, PROGRAM},
};

/// A file or directory of this machine, and where it is mounted.
#[derive(Debug)]
pub(crate) struct Pinned {
    pub(crate) source: PathBuf,
    target: PathBuf,
    /// Of the moment in which it was opened.
    pub(crate) metadata: Metadata,
    /// As long as it is open, no other file gets its number.
    file: File,
}

impl Pinned {
    /// Opens a path that has no links, which a real path had when it was found out.
    pub(crate) fn open(source: &Path, target: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let file: File =
            openat2(CWD, source, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?.into();
        Ok(Self {
            source: source.to_owned(),
            target: target.to_owned(),
            metadata: file.metadata()?,
            file,
        })
    }

    /// Those of a container that was made earlier; ours, which nothing inside can change, are left out.
    pub(crate) fn of_container(host: &HostConfig) -> io::Result<Vec<Self>> {
        let mounts = host.mounts.iter().flatten();
        let bound = mounts.filter(|mount| mount.typ == Some(MountType::BIND));
        let paths =
            bound.filter_map(|mount| Some((mount.source.as_deref()?, mount.target.as_deref()?)));
        let theirs = paths.filter(|(_, target)| ![PROGRAM, DOOR].contains(target));
        theirs
            .map(|(source, target)| Self::open(source.as_ref(), target.as_ref()))
            .collect()
    }

    /// Gives it away, whatever its name leads to by now.
    pub(crate) fn give(&self, uid: u32, gid: u32) -> io::Result<()> {
        let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
        chownat(&self.file, "", Some(uid), Some(gid), AtFlags::EMPTY_PATH)?;
        Ok(())
    }

    /// Whether it is what a process sees in its place.
    pub(crate) fn check(&self, pid: i64) -> Result<(), HoldError> {
        let outside = (self.metadata.dev(), self.metadata.ino());
        match inode_inside(pid, &self.target) {
            Ok(inside) if inside == outside => Ok(()),
            _ => Err(HoldError::OtherMount {
                target: self.target.clone(),
                source_path: self.source.clone(),
            }),
        }
    }
}

/// Looked up as the container sees it: links of the image lead to where they do inside.
fn inode_inside(pid: i64, target: &Path) -> io::Result<(u64, u64)> {
    let root = File::open(format!("/proc/{pid}/root"))?;
    let below = target.strip_prefix("/").unwrap_or(target);
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let found = openat2(&root, below, flags, Mode::empty(), ResolveFlags::IN_ROOT)?;
    let found = fstat(&found)?;
    Ok((found.st_dev, found.st_ino))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use rustix::io::Errno;

    use super::*;

    /// Seen from a process that is in no container, which needs the right to look at itself only.
    fn check(pinned: &Pinned) -> bool {
        pinned.check(std::process::id().into()).is_ok()
    }

    #[test]
    fn a_directory_above_that_was_swapped_for_a_link_is_noticed_g_4() {
        let place = tempfile::tempdir().unwrap();
        let place = fs::canonicalize(place.path()).unwrap();
        let [above, project, secret] =
            ["above", "above/project", "secret/project"].map(|path| place.join(path));
        fs::create_dir_all(&project).unwrap();
        fs::create_dir_all(&secret).unwrap();
        let pinned = Pinned::open(&project, &project).unwrap();
        assert!(check(&pinned));
        fs::rename(&above, place.join("moved")).unwrap();
        symlink(place.join("secret"), &above).unwrap();
        // What the Engine would mount now, and what the path alone leads to.
        assert!(!check(&pinned));
        let refusal = Pinned::open(&project, &project).unwrap_err();
        assert_eq!(Errno::from_io_error(&refusal), Some(Errno::LOOP));
        // Back in place it is the same.
        fs::remove_file(&above).unwrap();
        fs::rename(place.join("moved"), &above).unwrap();
        assert!(check(&pinned));
    }

    #[test]
    #[ignore = "needs root"]
    fn what_is_given_away_is_what_was_pinned() {
        let place = tempfile::tempdir().unwrap();
        let place = fs::canonicalize(place.path()).unwrap();
        let [project, secret] = ["project", "secret"].map(|path| place.join(path));
        fs::create_dir(&project).unwrap();
        fs::create_dir(&secret).unwrap();
        let pinned = Pinned::open(&project, &project).unwrap();
        fs::rename(&project, place.join("moved")).unwrap();
        symlink(&secret, &project).unwrap();
        pinned.give(1000, 1000).unwrap();
        assert_eq!(fs::metadata(&secret).unwrap().uid(), 0);
        assert_eq!(fs::metadata(place.join("moved")).unwrap().uid(), 1000);
    }
}
