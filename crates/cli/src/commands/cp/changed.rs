//! `zareba cp --changed`: what a sandbox has changed in its workspace, into a directory here.
//!
//! Names, links and contents were chosen by the sandbox. Each path is resolved below the
//! destination's descriptor and without links, so nothing is written elsewhere, also where the
//! destination has links of its own; links that lead out of it are not made.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{self, Write as _},
    os::fd::OwnedFd,
    path::{Component, Path},
};

use futures_util::StreamExt as _;
use rustix::{
    fs::{
        AtFlags, CWD, Mode, OFlags, ResolveFlags, fchmod, mkdirat, openat, openat2, renameat,
        symlinkat, unlinkat,
    },
    io::Errno,
};
use serde_json::json;
use zareba_executor::meant_path;
use zareba_runtime::{ChangeKind, ChangedContent, ChangesRequest, Sandbox, WorkspaceChange};
use zareba_wire::files::{Digest, ReadRequest};

use crate::{
    arguments::{CpArguments, OutputFormat},
    commands::{Context, diff},
    exit::Exit,
    failure::{Failure, OrFail as _},
    sandbox::{self, Fleet},
    say,
};

/// The name under which a file lies until it is whole.
const DRAFT: &str = ".zareba-copy";

/// Copies what has changed.
pub(super) fn perform(context: &Context, arguments: &CpArguments) -> Result<Exit, Failure> {
    let directory = Path::new(&arguments.destination);
    let deed = format!("cannot copy into `{}`", directory.display());
    Fleet::visit(context, async |fleet| {
        let id = arguments.source.trim_end_matches(':');
        let sandbox = fleet.find(id).await?.attach().await?;
        let found = sandbox.changes(ChangesRequest::default()).await;
        let found = found.map_err(|error| sandbox::failure(&error))?;
        fs::create_dir_all(directory).or_fail(Exit::Usage, &deed)?;
        let mut copy = Copy {
            sandbox: &*sandbox,
            here: Destination::open(directory).or_fail(Exit::Usage, &deed)?,
            may_delete: arguments.delete,
            exit: diff::tell_unread(&found.unread),
            done: Done::default(),
        };
        // What is deleted first: it may be in the way of what has come in its place.
        let (gone, there): (Vec<_>, Vec<_>) = found
            .changes
            .iter()
            .partition(|change| change.kind == ChangeKind::Deleted);
        for change in gone.into_iter().chain(there) {
            copy.take(change).await;
        }
        if context.globals.output == OutputFormat::Json {
            say::line(copy.done.as_json())?;
        }
        Ok(copy.exit)
    })
}

/// Paths by what became of them.
#[derive(Debug, Default)]
struct Done {
    copied: Vec<String>,
    deleted: Vec<String>,
    kept: Vec<String>,
    failed: Vec<String>,
}

impl Done {
    fn as_json(&self) -> serde_json::Value {
        json!({
            "copied": self.copied,
            "deleted": self.deleted,
            "kept": self.kept,
            "failed": self.failed,
        })
    }
}

struct Copy<'a> {
    sandbox: &'a dyn Sandbox,
    here: Destination,
    may_delete: bool,
    exit: Exit,
    done: Done,
}

impl Copy<'_> {
    /// Does one change here, or says why not and goes on.
    async fn take(&mut self, change: &WorkspaceChange) {
        if let ChangeKind::Renamed { from } = &change.kind {
            self.delete(from);
        }
        if change.kind == ChangeKind::Deleted {
            return self.delete(&change.path);
        }
        match self.place(change).await {
            Ok(()) => self.done.copied.push(change.path.clone()),
            Err(error) => self.fail("copy", &change.path, &error),
        }
    }

    fn delete(&mut self, path: &str) {
        if !self.may_delete {
            say::note(format_args!(
                "`{path}` is deleted in the sandbox and stays here; `--delete` removes it"
            ));
            return self.done.kept.push(path.to_owned());
        }
        match self.here.remove(&meant_path(path)) {
            Ok(()) => self.done.deleted.push(path.to_owned()),
            Err(error) => self.fail("delete", path, &error),
        }
    }

    fn fail(&mut self, deed: &str, path: &str, error: &io::Error) {
        say::warning(format_args!("cannot {deed} `{path}`: {error}"));
        self.exit = Exit::Negative;
        self.done.failed.push(path.to_owned());
    }

    async fn place(&self, change: &WorkspaceChange) -> io::Result<()> {
        let path = meant_path(&change.path);
        match &change.content {
            ChangedContent::Directory => self.here.directory(&path).map(drop),
            ChangedContent::Link { target } => self.here.link(&path, &meant_path(target)),
            ChangedContent::Special => Err(io::Error::other("it is a pipe, a socket or a device")),
            ChangedContent::File { is_executable, .. } => {
                self.file(&change.path, &path, *is_executable).await
            }
        }
    }

    async fn file(&self, asked: &str, path: &Path, is_executable: bool) -> io::Result<()> {
        let request = ReadRequest {
            path: format!("./{asked}"),
            range: None,
            digest: Digest::default(),
        };
        let files = self.sandbox.files().map_err(io::Error::other)?;
        let mut content = files.read(request).await.map_err(io::Error::other)?;
        let mut draft = self.here.draft(path)?;
        while let Some(piece) = content.stream.next().await {
            draft.file.write_all(&piece?)?;
        }
        draft.finish(is_executable)
    }
}

/// A directory of this machine, which nothing is written outside of.
struct Destination(OwnedFd);

/// A file that gets its name when it is whole.
struct Draft<'a> {
    file: File,
    parent: OwnedFd,
    name: &'a OsStr,
}

impl Destination {
    fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(openat(CWD, path, flags, Mode::empty())?))
    }

    /// Opens a directory below, and makes what is missing of its path.
    fn directory(&self, path: &Path) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let open = |at: &OwnedFd, name: &Path| openat2(at, name, flags, Mode::empty(), resolve);
        let mut here = open(&self.0, Path::new("."))?;
        for part in path.components() {
            let Component::Normal(name) = part else {
                return Err(io::ErrorKind::InvalidInput.into());
            };
            match mkdirat(&here, name, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            here = open(&here, Path::new(name))?;
        }
        Ok(here)
    }

    /// The directory of a path, and the name in it.
    fn parent<'a>(&self, path: &'a Path) -> io::Result<(OwnedFd, &'a OsStr)> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let parent = self.directory(path.parent().unwrap_or(Path::new("")))?;
        Ok((parent, name))
    }

    fn draft<'a>(&self, path: &'a Path) -> io::Result<Draft<'a>> {
        let (parent, name) = self.parent(path)?;
        // What an interrupted copy has left.
        let _ = unlinkat(&parent, DRAFT, AtFlags::empty());
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&parent, DRAFT, flags, Mode::from_raw_mode(0o644))?;
        Ok(Draft {
            file: file.into(),
            parent,
            name,
        })
    }

    fn link(&self, path: &Path, target: &Path) -> io::Result<()> {
        if leads_out(path, target) {
            let problem = format!("it is a link that leads to `{}`", target.display());
            return Err(io::Error::other(problem));
        }
        let (parent, name) = self.parent(path)?;
        let _ = unlinkat(&parent, DRAFT, AtFlags::empty());
        symlinkat(target, &parent, DRAFT)?;
        renameat(&parent, DRAFT, &parent, name).map_err(|error| {
            let _ = unlinkat(&parent, DRAFT, AtFlags::empty());
            error.into()
        })
    }

    /// Removes a file, a link or an empty directory, and directories that become empty by that.
    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut flags = AtFlags::empty();
        for path in path.ancestors() {
            let Some(name) = path.file_name() else { break };
            let parent = self.existing(path.parent().unwrap_or(Path::new("")));
            let removed = parent.and_then(|parent| match unlinkat(&parent, name, flags) {
                Err(Errno::ISDIR) => unlinkat(&parent, name, AtFlags::REMOVEDIR),
                removed => removed,
            });
            match removed {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(Errno::NOTEMPTY | Errno::EXIST) if flags == AtFlags::REMOVEDIR => break,
                Err(error) => return Err(error.into()),
            }
            flags = AtFlags::REMOVEDIR;
        }
        Ok(())
    }

    fn existing(&self, path: &Path) -> Result<OwnedFd, Errno> {
        let path = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        openat2(&self.0, path, flags, Mode::empty(), resolve)
    }
}

impl Draft<'_> {
    fn finish(self, is_executable: bool) -> io::Result<()> {
        if is_executable {
            fchmod(&self.file, Mode::from_raw_mode(0o755))?;
        }
        Ok(renameat(&self.parent, DRAFT, &self.parent, self.name)?)
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        // It has another name by now, or is not wanted.
        let _ = unlinkat(&self.parent, DRAFT, AtFlags::empty());
    }
}

/// Whether a link at this path could lead out of the directory that the path starts in. A step up is
/// only taken at the beginning: behind a name, which may be another link, it could lead anywhere.
fn leads_out(path: &Path, target: &Path) -> bool {
    let mut up_max = path.components().count().saturating_sub(1);
    let mut is_below = false;
    target.components().any(|part| match part {
        Component::Normal(_) => {
            is_below = true;
            false
        }
        Component::CurDir => false,
        Component::ParentDir if is_below || up_max == 0 => true,
        Component::ParentDir => {
            up_max -= 1;
            false
        }
        Component::RootDir | Component::Prefix(_) => true,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn nothing_is_written_or_removed_through_links_of_the_destination() {
        let root = tempfile::tempdir().unwrap();
        let (inside, outside) = (root.path().join("in"), root.path().join("out"));
        for directory in [&inside, &outside] {
            fs::create_dir(directory).unwrap();
        }
        fs::write(outside.join("file"), "theirs").unwrap();
        symlink(&outside, inside.join("link")).unwrap();
        symlink(outside.join("file"), inside.join("file")).unwrap();
        let here = Destination::open(&inside).unwrap();
        assert!(here.draft(Path::new("link/file")).is_err());
        assert!(here.directory(Path::new("../out/made")).is_err());
        assert!(here.remove(Path::new("link/file")).is_err());
        assert!(here.link(Path::new("out"), Path::new("../out")).is_err());
        here.draft(Path::new("file"))
            .unwrap()
            .finish(false)
            .unwrap();
        assert_eq!(fs::read(outside.join("file")).unwrap(), b"theirs");
        assert!(fs::symlink_metadata(inside.join("file")).unwrap().is_file());
        here.remove(Path::new("link")).unwrap();
        assert!(outside.join("file").exists());
        drop(here.draft(Path::new("a/b")).unwrap());
        here.remove(Path::new("a/b")).unwrap();
        let mut names: Vec<_> = fs::read_dir(&inside)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        assert_eq!(names, ["file"]);
    }

    #[test]
    fn links_lead_out_by_their_path() {
        let leads = |path: &str, target: &str| leads_out(Path::new(path), Path::new(target));
        assert!(!leads("a/b", "../c"));
        assert!(!leads("a", "./b"));
        // `s` may be a link to its own directory.
        assert!(leads("a/b", "s/.."));
        assert!(leads("a", "../c"));
        assert!(leads("a/b", "../../c"));
        assert!(leads("a", "/etc/passwd"));
    }
}
