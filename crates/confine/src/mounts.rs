//! Mounting below a directory without ever being led out of it.
//!
//! Every mount is made as a detached tree, given its attributes there, and only then attached
//! to a place that was opened beneath the new root. So there is no moment at which something
//! is visible with more rights than it shall have, and a symbolic link inside can point the
//! launcher nowhere else.

use std::{
    cell::RefCell,
    ffi::{CString, OsStr},
    io,
    os::{
        fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{
        AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, chmodat, mkdirat, mknodat, openat,
        openat2, statat, symlinkat,
    },
    io::Errno,
    mount::{
        FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
        fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
    },
};

use crate::{
    owner_map::Owners,
    policy::{Access, MemoryCap},
    sys::{MountAttributes, set_mount_attributes, set_one_mount_attributes},
};

/// Terminals of one sandbox. All of a machine have 4,096 together, and one without a cap takes them all.
const TERMINALS_MAX: u32 = 256;

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
pub(crate) struct Detached {
    mount: OwnedFd,
    /// A directory or not, where that need not be asked for.
    shape: Option<Shape>,
    /// Where it comes from, when its owners still have to be translated as the sandbox's own are.
    untranslated: Option<PathBuf>,
}

/// What can be mounted on what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Directory,
    Other,
}

impl From<FileType> for Shape {
    fn from(found: FileType) -> Self {
        match found {
            FileType::Directory => Self::Directory,
            _ => Self::Other,
        }
    }
}

impl AsFd for Detached {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.mount.as_fd()
    }
}

impl From<OwnedFd> for Detached {
    fn from(mount: OwnedFd) -> Self {
        Self {
            mount,
            shape: None,
            untranslated: None,
        }
    }
}

/// The directory that takes the changes of an overlay.
#[derive(Debug)]
pub(crate) enum Changes {
    OnDisk(PathBuf),
    InMemory(PathBuf),
}

/// The directory that becomes the root.
#[derive(Debug)]
pub(crate) struct NewRoot {
    root: OwnedFd,
    /// The directory in which something was done last: more will be.
    recent: RefCell<Option<(PathBuf, OwnedFd)>>,
}

/// Whether something was there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Made {
    Now,
    Before,
}

/// Opens a directory as a place to mount on or to name, and for nothing else.
fn open_place(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat(CWD, path, flags, Mode::empty())?)
}

/// A file or directory of this machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outside<'a> {
    pub(crate) path: &'a Path,
    /// Whether a link on the way to it is an error.
    is_direct: bool,
}

impl<'a> Outside<'a> {
    pub(crate) fn new(path: &'a Path, is_direct: bool) -> Self {
        Self { path, is_direct }
    }
}

/// Opens a path that has no links in it. One that has some now was changed since it was chosen.
pub(crate) fn open_direct(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS;
    Ok(openat2(CWD, path, flags, Mode::empty(), resolve)?)
}

/// A name for an open directory that needs no right to the directories above it. The process
/// file system is still the machine's when it is used.
pub(crate) fn handle_path(handle: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd()))
}

impl Detached {
    /// A copy of a file or directory of this machine, with everything mounted below it, and with
    /// the owners of files translated if they shall be.
    pub(crate) fn bind(
        source: Outside<'_>,
        access: Access,
        owners: Owners<'_>,
    ) -> io::Result<Self> {
        Self::bind_with(source, OpenTreeFlags::AT_RECURSIVE, access, owners)
    }

    /// The same without what is mounted below, which an overlay does not show, and which would
    /// keep a sandbox from using the directory: mounts of another user cannot be taken off.
    pub(crate) fn bind_one(
        source: Outside<'_>,
        access: Access,
        owners: Owners<'_>,
    ) -> io::Result<Self> {
        let bound = Self::bind_with(source, OpenTreeFlags::empty(), access, owners)?;
        Ok(bound.shaped(Shape::Directory))
    }

    fn shaped(self, shape: Shape) -> Self {
        Self {
            shape: Some(shape),
            ..self
        }
    }

    fn bind_with(
        source: Outside<'_>,
        extent: OpenTreeFlags,
        access: Access,
        owners: Owners<'_>,
    ) -> io::Result<Self> {
        let attributes = bound_attributes(access, owners);
        let bound = Self::with_attributes(source, extent, &attributes)?;
        let is_translated_later = matches!(owners, Owners::OfTheSandbox);
        Ok(Self {
            untranslated: is_translated_later.then(|| source.path.to_owned()),
            ..bound
        })
    }

    /// What is left to do before it is used.
    pub(crate) fn untranslated(&self) -> Option<&Path> {
        self.untranslated.as_deref()
    }

    /// Shows files of the sandbox's user, whose namespace that is, as those of the user outside.
    /// Nothing of the mount may be in use yet.
    pub(crate) fn translate(&self, namespace: BorrowedFd<'_>) -> io::Result<()> {
        let attributes = MountAttributes {
            set: libc::MOUNT_ATTR_IDMAP,
            userns_fd: u64::try_from(namespace.as_raw_fd()).unwrap_or(u64::MAX),
            ..MountAttributes::default()
        };
        set_mount_attributes(&self.mount, &attributes)
    }

    /// A device node, which may be used as one but neither executed nor trusted with its set bits.
    pub(crate) fn device(source: &Path) -> io::Result<Self> {
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        Ok(Self::tree(source, attributes)?.shaped(Shape::Other))
    }

    fn tree(source: &Path, set: MountAttrFlags) -> io::Result<Self> {
        let attributes = MountAttributes {
            set: u64::from(set.bits()),
            ..PRIVATE
        };
        let source = Outside::new(source, false);
        Self::with_attributes(source, OpenTreeFlags::AT_RECURSIVE, &attributes)
    }

    fn with_attributes(
        source: Outside<'_>,
        extent: OpenTreeFlags,
        attributes: &MountAttributes,
    ) -> io::Result<Self> {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | extent;
        let tree = match source.is_direct {
            true => {
                let place = open_direct(source.path)?;
                open_tree(&place, "", flags | OpenTreeFlags::AT_EMPTY_PATH)?
            }
            false => open_tree(CWD, source.path, flags)?,
        };
        set_mount_attributes(&tree, attributes)?;
        Ok(tree.into())
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

    /// Makes it unwritable, and nothing that is mounted below.
    pub(crate) fn seal(&self) -> io::Result<()> {
        seal_one(&self.mount)
    }

    /// Directories as one, under a layer that takes all changes if there is one. The layer is
    /// thrown away with the sandbox, so it is never synced (NS-21); in memory there is nothing to
    /// sync, and no need to make the marks that say so.
    pub(crate) fn overlay(lower: &[PathBuf], changes: Option<&Changes>) -> io::Result<Self> {
        let context = stack(lower)?;
        fsconfig_set_flag(&context, "userxattr")?;
        let mut attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
        match changes {
            Some(Changes::OnDisk(layer) | Changes::InMemory(layer)) => {
                fsconfig_set_string(&context, "upperdir", layer.join("upper"))?;
                fsconfig_set_string(&context, "workdir", layer.join("work"))?;
            }
            None => attributes |= MountAttrFlags::MOUNT_ATTR_RDONLY,
        }
        if let Some(Changes::OnDisk(_)) = changes {
            fsconfig_set_flag(&context, "volatile")?;
        }
        Self::finish(&context, attributes)
    }

    /// A copy of a single mount that is attached in our own mount table, with the same attributes.
    pub(crate) fn copy(&self) -> io::Result<Self> {
        self.copy_with(OpenTreeFlags::empty())
    }

    /// The same with all that is mounted below. One that nobody sees yet can be copied since Linux 6.15.
    pub(crate) fn copy_all(&self) -> io::Result<Self> {
        self.copy_with(OpenTreeFlags::AT_RECURSIVE)
    }

    fn copy_with(&self, extent: OpenTreeFlags) -> io::Result<Self> {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_EMPTY_PATH
            | extent;
        Ok(Self {
            mount: open_tree(&self.mount, "", flags)?,
            shape: self.shape,
            untranslated: None,
        })
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
        fsconfig_set_string(&context, "max", TERMINALS_MAX.to_string())?;
        Self::finish(
            &context,
            MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC,
        )
    }

    fn finish(context: &OwnedFd, attributes: MountAttrFlags) -> io::Result<Self> {
        fsconfig_create(context)?;
        let made = fsmount(context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
        Ok(Self::from(made).shaped(Shape::Directory))
    }

    /// Attaches it to something that is in a directory and is no link, or is covered as a link.
    fn attach_in(&self, directory: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        Ok(move_mount(&self.mount, "", directory, name, flags)?)
    }

    fn attach(&self, place: &OwnedFd) -> io::Result<()> {
        let flags =
            MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
        Ok(move_mount(&self.mount, "", place, "", flags)?)
    }

    fn shape(&self) -> io::Result<Shape> {
        if let Some(known) = self.shape {
            return Ok(known);
        }
        let found = statat(&self.mount, "", AtFlags::EMPTY_PATH)?;
        Ok(FileType::from_raw_mode(found.st_mode).into())
    }
}

fn bound_attributes(access: Access, owners: Owners<'_>) -> MountAttributes {
    let mut set = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    if access == Access::ReadOnly {
        set |= MountAttrFlags::MOUNT_ATTR_RDONLY;
    }
    let plain = MountAttributes {
        set: u64::from(set.bits()),
        ..PRIVATE
    };
    match owners {
        Owners::AsTheyAre | Owners::OfTheSandbox => plain,
        Owners::Mapped(map) => MountAttributes {
            set: plain.set | libc::MOUNT_ATTR_IDMAP,
            userns_fd: u64::try_from(map.namespace().as_raw_fd()).unwrap_or(u64::MAX),
            ..plain
        },
    }
}

impl NewRoot {
    /// Covers a directory with another file system and opens that.
    pub(crate) fn cover(stage: &Path, root: &Detached) -> io::Result<Self> {
        // Opened here, because a place of another mount table cannot be mounted on.
        root.attach(&open_place(stage)?)?;
        Self::detached(root)
    }

    /// Opens one that nobody sees yet. Since Linux 6.15 more can be mounted on it.
    pub(crate) fn detached(root: &Detached) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self {
            root: openat(&root.mount, ".", flags, Mode::empty())?,
            recent: RefCell::default(),
        })
    }

    /// A name for a path inside while we are still outside.
    pub(crate) fn outside(&self, inside: &Path) -> PathBuf {
        handle_path(&self.root).join(inside.strip_prefix("/").unwrap_or(inside))
    }

    /// A view of a directory in it, to be mounted elsewhere.
    pub(crate) fn part(&self, inside: &Path) -> io::Result<Detached> {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        let relative = inside.strip_prefix("/").unwrap_or(inside);
        let part = Detached::from(open_tree(&self.root, relative, flags)?);
        Ok(part.shaped(Shape::Directory))
    }

    /// Mounts at a path inside, which is made when missing.
    pub(crate) fn mount(&self, inside: &Path, mount: &Detached) -> io::Result<()> {
        let shape = mount.shape()?;
        self.in_made_parent(inside, |parent, name| {
            let made = match shape {
                Shape::Directory => make_directory(parent, name, 0o755)?,
                Shape::Other => make_file(parent, name)?,
            };
            match made {
                Made::Now => mount.attach_in(parent, name),
                Made::Before => mount.attach(&open_beneath(parent, Path::new(name))?),
            }
        })?;
        self.forget_below(inside);
        Ok(())
    }

    pub(crate) fn make_directory(&self, inside: &Path, mode: u32) -> io::Result<()> {
        self.in_made_parent(inside, |parent, name| {
            Ok(make_directory(parent, name, mode).map(drop)?)
        })
    }

    pub(crate) fn make_link(&self, inside: &Path, target: &Path) -> io::Result<()> {
        self.in_made_parent(inside, |parent, name| Ok(symlinkat(target, parent, name)?))
    }

    /// Does something in the directory that a path is in, which is made when missing.
    fn in_made_parent<T>(
        &self,
        inside: &Path,
        act: impl FnOnce(BorrowedFd<'_>, &OsStr) -> io::Result<T>,
    ) -> io::Result<T> {
        self.in_opened_parent(inside, Self::open_or_make, act)
    }

    /// The same in one that is there.
    fn in_parent<T>(
        &self,
        inside: &Path,
        act: impl FnOnce(BorrowedFd<'_>, &OsStr) -> io::Result<T>,
    ) -> io::Result<T> {
        self.in_opened_parent(inside, Self::open, act)
    }

    fn in_opened_parent<T>(
        &self,
        inside: &Path,
        open: fn(&Self, &Path) -> io::Result<OwnedFd>,
        act: impl FnOnce(BorrowedFd<'_>, &OsStr) -> io::Result<T>,
    ) -> io::Result<T> {
        let names = names(inside)?;
        let (name, above) = names.split_last().ok_or(io::ErrorKind::InvalidInput)?;
        if above.is_empty() {
            return act(self.root.as_fd(), name);
        }
        let parent = inside.parent().unwrap_or(Path::new("/"));
        let (path, opened) = match self.recent.take().filter(|(path, _)| path == parent) {
            Some(recent) => recent,
            None => (parent.to_owned(), open(self, parent)?),
        };
        let done = act(opened.as_fd(), name);
        self.recent.replace(Some((path, opened)));
        done
    }

    fn open_or_make(&self, directory: &Path) -> io::Result<OwnedFd> {
        match self.open(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.make_directory(directory, 0o755)?;
                self.open(directory)
            }
            opened => opened,
        }
    }

    /// What is at a path now is another directory than before, and so is all that is in it.
    fn forget_below(&self, inside: &Path) {
        let recent = self.recent.take();
        self.recent
            .replace(recent.filter(|(path, _)| !path.starts_with(inside)));
    }

    fn open(&self, inside: &Path) -> io::Result<OwnedFd> {
        open_beneath(self.root.as_fd(), inside)
    }

    /// What is at a path inside, if anything.
    pub(crate) fn find(&self, inside: &Path) -> io::Result<Option<Shape>> {
        self.in_parent(inside, |parent, name| {
            match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(found) => Ok(Some(FileType::from_raw_mode(found.st_mode).into())),
                Err(Errno::NOENT) => Ok(None),
                Err(error) => Err(error.into()),
            }
        })
    }

    /// Mounts over something that was found; if it is a link, over the link.
    pub(crate) fn cover_found(&self, inside: &Path, mount: &Detached) -> io::Result<()> {
        self.in_parent(inside, |parent, name| mount.attach_in(parent, name))?;
        self.forget_below(inside);
        Ok(())
    }

    /// Covers a path inside with another view of what is there, and of what is mounted below.
    pub(crate) fn mount_again(&self, inside: &Path, access: Access) -> io::Result<()> {
        let place = self.open(inside)?;
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_EMPTY_PATH
            | OpenTreeFlags::AT_RECURSIVE;
        let view = open_tree(&place, "", flags)?;
        set_mount_attributes(&view, &bound_attributes(access, Owners::AsTheyAre))?;
        Detached::from(view).attach(&place)?;
        self.forget_below(inside);
        Ok(())
    }

    /// Makes the file system that holds the root itself unwritable.
    pub(crate) fn seal(&self) -> io::Result<()> {
        seal_one(&self.root)
    }

    /// Makes the file system that is mounted at a path unwritable, and none below it.
    pub(crate) fn make_read_only(&self, inside: &Path) -> io::Result<()> {
        seal_one(&self.open(inside)?)
    }

    /// Leaves the old root for this one, for ever.
    pub(crate) fn enter(self) -> io::Result<()> {
        rustix::process::fchdir(&self.root)?;
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

/// Covers a directory of the present root with an unwritable view of itself. What is done to it
/// before that may forbid to make any view.
pub(crate) fn make_read_only<E>(
    path: &Path,
    before: impl FnOnce() -> Result<(), E>,
) -> Result<io::Result<()>, E> {
    let view = Detached::tree(path, MountAttrFlags::MOUNT_ATTR_RDONLY);
    before()?;
    Ok(view.and_then(|view| view.attach(&open_place(path)?)))
}

fn make_directory(parent: BorrowedFd<'_>, name: &OsStr, mode: u32) -> Result<Made, Errno> {
    match mkdirat(parent, name, Mode::from_raw_mode(mode)) {
        Err(Errno::EXIST) => return Ok(Made::Before),
        made => made?,
    }
    // What others may change is kept from them by the mask that we work under.
    if mode & 0o022 != 0 {
        chmodat(parent, name, Mode::from_raw_mode(mode), AtFlags::empty())?;
    }
    Ok(Made::Now)
}

fn make_file(parent: BorrowedFd<'_>, name: &OsStr) -> Result<Made, Errno> {
    match mknodat(
        parent,
        name,
        FileType::RegularFile,
        Mode::from_raw_mode(0o644),
        0,
    ) {
        Err(Errno::EXIST) => Ok(Made::Before),
        made => made.map(|()| Made::Now),
    }
}

/// Opens a path as if this directory were the root. A link anywhere on it is an error: whoever made
/// it may want the mount somewhere else.
fn open_beneath(directory: BorrowedFd<'_>, path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_SYMLINKS;
    Ok(openat2(directory, path, flags, Mode::empty(), resolve)?)
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

/// An overlay to be, with what is below it. Newer kernels take directories one by one; older ones
/// take all of them as one text, of at most 255 bytes.
fn stack(lower: &[PathBuf]) -> io::Result<OwnedFd> {
    let context = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    let one_by_one = lower
        .iter()
        .try_for_each(|directory| fsconfig_set_string(&context, "lowerdir+", directory));
    match one_by_one {
        Err(Errno::INVAL) => {}
        stacked => {
            stacked?;
            return Ok(context);
        }
    }
    let context = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    let mut lowers = Vec::new();
    for (index, directory) in lower.iter().enumerate() {
        if index > 0 {
            lowers.push(b':');
        }
        escape(directory, &mut lowers);
    }
    fsconfig_set_string(&context, "lowerdir", c_string(lowers)?)?;
    Ok(context)
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
