//! `zareba cp`: files into a sandbox and out of it.

mod changed;

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::json;
use zareba_protocol::ErrorClass;
use zareba_runtime::{RuntimeError, Sandbox, SandboxId};

use crate::{
    arguments::{CpArguments, OutputFormat},
    commands::Context,
    exit::Exit,
    failure::{Failure, OrFail as _},
    sandbox::{self, Fleet},
    say,
};

/// One side of the copy.
#[derive(Debug, PartialEq, Eq)]
enum Side<'a> {
    Here(&'a str),
    Inside { id: &'a str, path: &'a str },
}

/// Copies in the direction that the two sides say.
pub(crate) fn perform(context: &Context, arguments: &CpArguments) -> Result<Exit, Failure> {
    if arguments.changed {
        return changed::perform(context, arguments);
    }
    let (source, destination) = (side(&arguments.source), side(&arguments.destination));
    let (id, way) = match (source, destination) {
        (Side::Here(from), Side::Inside { id, path }) => (id, Way::In(from, path)),
        (Side::Inside { id, path }, Side::Here(to)) => (id, Way::Out(path, to)),
        _ => {
            let message = "one side must be in a sandbox, and the other on this machine";
            return Err(Failure::new(Exit::Usage, message).hint(
                "write `ID:PATH` for a path in a sandbox, and `./` before one with a colon",
            ));
        }
    };
    Fleet::visit(context, async |fleet| {
        let sandbox = fleet.find(id).await?.attach().await?;
        let id = sandbox.id().as_str();
        match way {
            Way::In(from, to) => copy_in(&*sandbox, Path::new(from), to).await?,
            Way::Out(from, to) => {
                let copied = copy_out(&*sandbox, from, to).await;
                copied.map_err(|refused| refused.explain(id, from))?;
            }
        }
        if context.globals.output == OutputFormat::Json {
            let (source, destination) = (&arguments.source, &arguments.destination);
            say::line(json!({ "source": source, "destination": destination }))?;
        }
        Ok(Exit::Success)
    })
}

/// From where to where.
#[derive(Clone, Copy, Debug)]
enum Way<'a> {
    In(&'a str, &'a str),
    Out(&'a str, &'a str),
}

/// What stands before the first colon is a sandbox if it can be the name of one.
fn side(text: &str) -> Side<'_> {
    match text.split_once(':') {
        Some((id, path)) if SandboxId::new(id).is_some() => Side::Inside { id, path },
        _ => Side::Here(text),
    }
}

async fn copy_in(sandbox: &dyn Sandbox, from: &Path, to: &str) -> Result<(), Failure> {
    let metadata = fs::metadata(from);
    let metadata = metadata.or_fail(Exit::Usage, format!("cannot read `{}`", from.display()))?;
    let inside = inside(sandbox, to);
    let copied = match (name(&inside), inside.parent()) {
        (Some(name), Some(parent))
            if metadata.is_file() && !is_directory(sandbox, to, &inside).await =>
        {
            // A link is copied under its own name with the content of what it leads to.
            let renamed = renamed(from, name)?;
            sandbox.copy_to(&renamed.path().join(name), parent).await
        }
        _ => sandbox.copy_to(from, &inside).await,
    };
    copied.map_err(|error| sandbox::failure(&error))
}

/// Why nothing came out.
enum NotCopied {
    Sandbox(RuntimeError),
    Here(Failure),
}

impl NotCopied {
    /// The failure for people, who have typed the path.
    fn explain(self, id: &str, path: &str) -> Failure {
        match self {
            Self::Here(failure) => failure,
            Self::Sandbox(RuntimeError::NotFound { .. } | RuntimeError::Closed { .. }) => {
                Failure::new(Exit::Lost, format!("the sandbox `{id}` has ended"))
            }
            Self::Sandbox(error) if error.class() == ErrorClass::NotFound => {
                let message = format!("there is no `{path}` in the sandbox `{id}`");
                Failure::new(Exit::Usage, message)
            }
            Self::Sandbox(error) => sandbox::failure(&error),
        }
    }
}

impl From<RuntimeError> for NotCopied {
    fn from(error: RuntimeError) -> Self {
        Self::Sandbox(error)
    }
}

impl From<Failure> for NotCopied {
    fn from(failure: Failure) -> Self {
        Self::Here(failure)
    }
}

async fn copy_out(sandbox: &dyn Sandbox, from: &str, to: &str) -> Result<(), NotCopied> {
    let inside = inside(sandbox, from);
    let here = Path::new(to);
    let into = here.is_dir() || to.ends_with('/');
    let copied = match name(&inside) {
        Some(name) if is_directory(sandbox, from, &inside).await => {
            sandbox.copy_from(&inside, &here.join(name)).await
        }
        Some(_) if !into => return copy_file_out(sandbox, &inside, here).await,
        _ => sandbox.copy_from(&inside, here).await,
    };
    Ok(copied?)
}

/// Copies one file to a new name, which it gets when it is complete.
async fn copy_file_out(sandbox: &dyn Sandbox, from: &Path, to: &Path) -> Result<(), NotCopied> {
    let deed = format!("cannot write `{}`", to.display());
    let parent = match to.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let staging = tempfile::Builder::new()
        .prefix(".zareba-")
        .tempdir_in(parent)
        .or_fail(Exit::Usage, &deed)?;
    sandbox.copy_from(from, staging.path()).await?;
    let mut entries = fs::read_dir(staging.path()).or_fail(Exit::Failure, &deed)?;
    match entries.next() {
        Some(entry) => {
            let copy = entry.or_fail(Exit::Failure, &deed)?.path();
            Ok(fs::rename(copy, to).or_fail(Exit::Failure, &deed)?)
        }
        None => {
            let cause = format!("`{}` was not sent", from.display());
            Err(Failure::new(Exit::Failure, cause).while_doing(deed).into())
        }
    }
}

/// A directory with a link of that name to a file.
fn renamed(from: &Path, name: &str) -> Result<tempfile::TempDir, Failure> {
    let deed = "cannot make a place for a link to the file";
    let directory = tempfile::tempdir().or_fail(Exit::Failure, deed)?;
    fs::canonicalize(from)
        .and_then(|from| std::os::unix::fs::symlink(from, directory.path().join(name)))
        .or_fail(Exit::Failure, deed)?;
    Ok(directory)
}

/// A path inside; relative ones start in the workspace.
fn inside(sandbox: &dyn Sandbox, path: &str) -> PathBuf {
    sandbox.workspace().join(path)
}

/// Its last part, unless that is `.` or `..`, which name nothing new.
fn name(path: &Path) -> Option<&str> {
    let ends_plainly = !path.as_os_str().as_encoded_bytes().ends_with(b"/.");
    let name = path.file_name().filter(|_| ends_plainly)?;
    name.to_str()
}

/// Whether something inside is a directory, or written like one.
async fn is_directory(sandbox: &dyn Sandbox, text: &str, path: &Path) -> bool {
    let (Some(name), Some(parent)) = (name(path), path.parent().and_then(Path::to_str)) else {
        return true;
    };
    if text.is_empty() || text.ends_with('/') {
        return true;
    }
    // Directories have a slash behind. What cannot be listed is told of by the copy.
    let beside = sandbox.list_files(Some(parent.to_owned())).await;
    let wanted = format!("{name}/");
    beside.is_ok_and(|names| names.contains(&wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_is_inside_when_it_begins_with_a_name() {
        let inside = |id, path| Side::Inside { id, path };
        assert_eq!(side("build:/a:b"), inside("build", "/a:b"));
        assert_eq!(side("build:"), inside("build", ""));
        for here in ["/a", "./a:b", "../a:b", "a b:c", ":c"] {
            assert_eq!(side(here), Side::Here(here));
        }
    }

    #[test]
    fn a_path_that_ends_in_dots_has_no_name() {
        for (path, expected) in [
            ("/a/b", Some("b")),
            ("/a/b/", Some("b")),
            ("/a/.", None),
            ("/a/..", None),
            ("/", None),
        ] {
            assert_eq!(name(Path::new(path)), expected, "{path}");
        }
    }
}
