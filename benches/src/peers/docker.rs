//! `docker run`, where a Docker Engine answers. None is started for the sake of a measurement.

use std::{
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use anyhow::{Context, ensure};

/// What is said when nobody answers.
const NO_ENGINE: &str = "no Docker Engine answers `docker version`";

/// The smallest image that can say something: a static busybox. Removed when it is dropped.
#[derive(Debug)]
pub(crate) struct DockerImage {
    name: String,
}

/// What is in an image beside busybox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beside {
    Nothing,
    /// This machine's, which is then the shell that is found.
    Bash,
}

impl DockerImage {
    /// Makes the image, or says why there is none.
    pub(crate) fn make(scratch: &Path) -> Result<Self, String> {
        Self::with(Beside::Nothing, scratch)
    }

    /// Makes one that has this machine's bash as well.
    pub(crate) fn with_bash(scratch: &Path) -> Result<Self, String> {
        Self::with(Beside::Bash, scratch)
    }

    fn with(beside: Beside, scratch: &Path) -> Result<Self, String> {
        let mut version = Command::new("docker");
        version.args(["version", "--format", "{{.Server.Version}}"]);
        succeed(&mut version).map_err(|_| NO_ENGINE.to_owned())?;
        import(scratch, beside).map_err(|error| format!("no image to run: {error:#}"))
    }

    /// What the Engine calls it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// `echo hi` in a new container that goes when it has ended.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new("docker");
        command.args(["run", "--rm", &self.name, "echo", "hi"]);
        command
    }
}

impl Drop for DockerImage {
    fn drop(&mut self) {
        let mut remove = Command::new("docker");
        // Nobody else has an image of this name, and it is small should it stay.
        let _ = succeed(remove.args(["image", "rm", "--force", &self.name]));
    }
}

fn import(scratch: &Path, beside: Beside) -> anyhow::Result<DockerImage> {
    let busybox = find("busybox").context("install busybox (Debian: busybox-static)")?;
    let place = tempfile::tempdir_in(scratch)?;
    let (root, archive) = (place.path().join("image"), place.path().join("image.tar"));
    let programs = root.join("bin");
    fs::create_dir_all(&programs)?;
    fs::copy(busybox, programs.join("busybox")).context("cannot copy busybox")?;
    for program in ["echo", "sh", "true"] {
        symlink("busybox", programs.join(program))?;
    }
    if beside == Beside::Bash {
        add_bash(&root)?;
    }
    let mut pack = Command::new("tar");
    pack.arg("--create").arg("--file").arg(&archive);
    succeed(pack.arg("--directory").arg(&root).arg("."))?;
    let tag = if beside == Beside::Bash {
        "bash"
    } else {
        "busybox"
    };
    let name = format!("zareba-bench:{tag}-{}", std::process::id());
    succeed(
        Command::new("docker")
            .arg("import")
            .arg(&archive)
            .arg(&name),
    )?;
    let image = DockerImage { name };
    succeed(&mut image.command()).context("busybox must be a static one")?;
    Ok(image)
}

/// Copies bash to where shells are looked for, and its libraries to where it finds them.
fn add_bash(root: &Path) -> anyhow::Result<()> {
    let bash = find("bash").context("install bash")?;
    let listed = succeed(Command::new("ldd").arg(&bash))?;
    let listed = String::from_utf8_lossy(&listed.stdout);
    let libraries = listed.split_whitespace().filter_map(|word| {
        let path = word.strip_prefix('/')?;
        Some((PathBuf::from(word), root.join(path)))
    });
    for (from, to) in libraries.chain([(bash, root.join("bin/bash"))]) {
        fs::create_dir_all(to.parent().context("a library has no directory")?)?;
        fs::copy(&from, &to).with_context(|| format!("cannot copy {}", from.display()))?;
    }
    Ok(())
}

fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|directory| directory.join(program))
        .find(|file| file.is_file())
}

fn succeed(command: &mut Command) -> anyhow::Result<Output> {
    let name = command.get_program().display().to_string();
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {name}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "{name} failed: {}",
        said.lines().next_back().unwrap_or("it said nothing")
    );
    Ok(output)
}
