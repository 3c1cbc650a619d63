//! Mounting below a directory without ever being led out of it.
//!
//! Every mount is made as a detached tree, given its attributes there, and only then attached
//! to a place that was opened beneath the new root. So there is no moment at which something
//! is visible with more rights than it shall have, and a symbolic link inside can point the
//! launcher nowhere else.

use std::{
    ffi::{CString, OsStr},
    io,
    os::{
        fd::{AsFd, AsRawFd as _, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, mkdirat, openat, openat2, symlinkat},
    io::Errno,
    mount::{
        FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
        fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
    },
};

use crate::{
    owner_map::OwnerMap,
    policy::{Access, MemoryCap},
    sys::{MountAttributes, set_mount_attributes, set_one_mount_attributes},
};

/// A copy of a shared mount is its peer: what is mounted on it inside would appear outside, and
/// the other way round.
const PRIVATE: MountAttributes = MountAttributes {
    set: 0,
    clear: 0,
    propagation: libc::MS_PRIVATE,
    userns_fd: 0,
};

/// A detached mount: nobody sees it until it is attached.
#[derive(Debug)]
pub(crate) struct Detached(OwnedFd);

/// The directory that becomes the root.
#[derive(Debug)]
pub(crate) struct NewRoot(OwnedFd);

/// Opens a directory as a place to mount on or to name, and for nothing else.
fn open_place(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat(CWD, path, flags, Mode::empty())?)
}

/// A name for an open directory that needs no right to the directories above it. The process
/// file system is still the machine's when it is used.
fn handle_path(handle: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd()))
}

impl Detached {
    /// A copy of a file or directory of this machine, with everything mounted below it.
    pub(crate) fn bind(source: &Path, access: Access) -> io::Result<Self> {
        Self::tree(source, Self::bound(access))
    }

    /// The same, with the owners of files translated as a user namespace says.
    pub(crate) fn bind_mapped(source: &Path, access: Access, map: &OwnerMap) -> io::Result<Self> {
        let attributes = MountAttributes {
            set: u64::from(Self::bound(access).bits()) | libc::MOUNT_ATTR_IDMAP,
            userns_fd: u64::try_from(map.namespace().as_raw_fd()).unwrap_or(u64::MAX),
            ..PRIVATE
        };
        Self::with_attributes(source, &attributes)
    }

    fn bound(access: Access) -> MountAttrFlags {
        let set = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
        match access {
            Access::ReadOnly => set | MountAttrFlags::MOUNT_ATTR_RDONLY,
            Access::ReadWrite => set,
        }
    }

    /// A device node, which may be used as one but neither executed nor trusted with its set bits.
    pub(crate) fn device(source: &Path) -> io::Result<Self> {
        Self::tree(
            source,
            MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC,
        )
    }

    fn tree(source: &Path, set: MountAttrFlags) -> io::Result<Self> {
        let attributes = MountAttributes {
            set: u64::from(set.bits()),
            ..PRIVATE
        };
        Self::with_attributes(source, &attributes)
    }

    fn with_attributes(source: &Path, attributes: &MountAttributes) -> io::Result<Self> {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_RECURSIVE;
        let tree = open_tree(CWD, source, flags)?;
        set_mount_attributes(&tree, attributes)?;
        Ok(Self(tree))
    }

    /// A file system in memory.
    pub(crate) fn memory(cap: MemoryCap, mode: u32) -> io::Result<Self> {
        let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_set_string(&context, "size", cap.bytes.to_string())?;
        fsconfig_set_string(&context, "nr_inodes", cap.inodes.to_string())?;
        fsconfig_set_string(&context, "mode", format!("{mode:o}"))?;
        Self::finish(
            &context,
            MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV,
        )
    }

    /// Directories under a layer that takes all changes. The layer is thrown away with the
    /// sandbox, so it is never synced.
    pub(crate) fn overlay(lower: &[PathBuf], layer: &Path) -> io::Result<Self> {
        let context = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
        let mut lowers = Vec::new();
        for (index, directory) in lower.iter().enumerate() {
            if index > 0 {
                lowers.push(b':');
            }
            escape(directory, &mut lowers);
        }
        fsconfig_set_string(&context, "lowerdir", c_string(lowers)?)?;
        fsconfig_set_string(&context, "upperdir", layer.join("upper"))?;
        fsconfig_set_string(&context, "workdir", layer.join("work"))?;
        fsconfig_set_flag(&context, "userxattr")?;
        fsconfig_set_flag(&context, "volatile")?;
        Self::finish(
            &context,
            MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV,
        )
    }

    /// A fresh `/proc` of the caller's process namespace.
    pub(crate) fn proc() -> io::Result<Self> {
        let context = fsopen("proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
            | MountAttrFlags::MOUNT_ATTR_NODEV
            | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        Self::finish(&context, attributes)
    }

    /// Terminals of the sandbox's own.
    pub(crate) fn terminals() -> io::Result<Self> {
        let context = fsopen("devpts", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_set_string(&context, "mode", "620")?;
        fsconfig_set_string(&context, "ptmxmode", "666")?;
        Self::finish(
            &context,
            MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC,
        )
    }

    fn finish(context: &OwnedFd, attributes: MountAttrFlags) -> io::Result<Self> {
        fsconfig_create(context)?;
        Ok(Self(fsmount(
            context,
            FsMountFlags::FSMOUNT_CLOEXEC,
            attributes,
        )?))
    }

    fn attach(&self, place: &OwnedFd) -> io::Result<()> {
        let flags =
            MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
        Ok(move_mount(&self.0, "", place, "", flags)?)
    }

    fn is_directory(&self) -> io::Result<bool> {
        let found = rustix::fs::statat(&self.0, "", AtFlags::EMPTY_PATH)?;
        Ok(FileType::from_raw_mode(found.st_mode) == FileType::Directory)
    }
}

impl NewRoot {
    /// Covers a directory with an empty file system and opens that.
    pub(crate) fn cover(stage: &Path, memory: &Detached) -> io::Result<Self> {
        // Opened here, because a place of another mount table cannot be mounted on.
        memory.attach(&open_place(stage)?)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(openat(&memory.0, ".", flags, Mode::empty())?))
    }

    /// A name for a path inside while we are still outside.
    pub(crate) fn outside(&self, inside: &Path) -> PathBuf {
        handle_path(&self.0).join(inside.strip_prefix("/").unwrap_or(inside))
    }

    /// Mounts at a path inside, which is made when missing.
    pub(crate) fn mount(&self, inside: &Path, mount: &Detached) -> io::Result<()> {
        if mount.is_directory()? {
            self.make_directory(inside, 0o755)?;
        } else {
            self.make_file(inside)?;
        }
        mount.attach(&self.open(inside)?)
    }

    pub(crate) fn make_directory(&self, inside: &Path, mode: u32) -> io::Result<()> {
        let mut done = Path::new("/").to_owned();
        for name in names(inside)? {
            let parent = self.open(&done)?;
            match mkdirat(&parent, name, Mode::from_raw_mode(mode)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            done.push(name);
        }
        Ok(())
    }

    pub(crate) fn make_link(&self, inside: &Path, target: &Path) -> io::Result<()> {
        let (parent, name) = self.parent(inside)?;
        Ok(symlinkat(target, &parent, name)?)
    }

    fn make_file(&self, inside: &Path) -> io::Result<()> {
        let (parent, name) = self.parent(inside)?;
        let flags =
            OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        match openat(&parent, name, flags, Mode::from_raw_mode(0o644)) {
            Ok(_) | Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn parent<'a>(&self, inside: &'a Path) -> io::Result<(OwnedFd, &'a OsStr)> {
        let name = names(inside)?.pop().ok_or(io::ErrorKind::InvalidInput)?;
        let parent = inside.parent().unwrap_or(Path::new("/"));
        self.make_directory(parent, 0o755)?;
        Ok((self.open(parent)?, name))
    }

    /// Opens a path as if this were the root already: links are resolved inside.
    fn open(&self, inside: &Path) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        Ok(openat2(&self.0, inside, flags, Mode::empty(), resolve)?)
    }

    /// Takes off what is mounted at a path, and the empty directory below it.
    pub(crate) fn remove_mount(&self, inside: &Path) -> io::Result<()> {
        rustix::mount::unmount(self.outside(inside), rustix::mount::UnmountFlags::DETACH)?;
        let (parent, name) = self.parent(inside)?;
        Ok(rustix::fs::unlinkat(&parent, name, AtFlags::REMOVEDIR)?)
    }

    /// Makes the file system that holds the root itself unwritable.
    pub(crate) fn seal(&self) -> io::Result<()> {
        seal_one(&self.0)
    }

    /// Makes the file system that is mounted at a path unwritable, and none below it.
    pub(crate) fn make_read_only(&self, inside: &Path) -> io::Result<()> {
        seal_one(&self.open(inside)?)
    }

    /// Leaves the old root for this one, for ever.
    pub(crate) fn enter(self) -> io::Result<()> {
        rustix::process::fchdir(&self.0)?;
        // Both on the same place: the old root comes to lie on top and is taken off.
        rustix::process::pivot_root(".", ".")?;
        rustix::mount::unmount(".", rustix::mount::UnmountFlags::DETACH)?;
        rustix::process::chdir("/")?;
        Ok(())
    }
}

fn seal_one(mount: impl AsFd) -> io::Result<()> {
    let set = u64::from(MountAttrFlags::MOUNT_ATTR_RDONLY.bits());
    set_one_mount_attributes(
        mount,
        &MountAttributes {
            set,
            ..MountAttributes::default()
        },
    )
}

/// Covers a directory of the present root with an unwritable view of itself.
pub(crate) fn make_read_only(path: &Path) -> io::Result<()> {
    let view = Detached::tree(path, MountAttrFlags::MOUNT_ATTR_RDONLY)?;
    view.attach(&open_place(path)?)
}

/// The names of an absolute path without `.` or `..`.
fn names(inside: &Path) -> io::Result<Vec<&OsStr>> {
    let mut names = Vec::new();
    for component in inside.components() {
        match component {
            Component::RootDir => {}
            Component::Normal(name) => names.push(name),
            Component::CurDir | Component::ParentDir | Component::Prefix(_) => {
                return Err(io::ErrorKind::InvalidInput.into());
            }
        }
    }
    if inside.is_absolute() {
        Ok(names)
    } else {
        Err(io::ErrorKind::InvalidInput.into())
    }
}

/// overlayfs separates directories with colons and takes a backslash as escape.
fn escape(directory: &Path, into: &mut Vec<u8>) {
    for &byte in directory.as_os_str().as_bytes() {
        if matches!(byte, b':' | b'\\') {
            into.push(b'\\');
        }
        into.push(byte);
    }
}

fn c_string(bytes: Vec<u8>) -> io::Result<CString> {
    CString::new(bytes).map_err(|_| io::ErrorKind::InvalidInput.into())
}
