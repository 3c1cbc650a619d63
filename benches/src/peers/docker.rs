//! `docker run`, where a Docker Engine answers. None is started for the sake of a measurement.

use std::{
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, ensure};

/// What is said when nobody answers.
const NO_ENGINE: &str = "no Docker Engine answers `docker version`";

/// The smallest image that can say something: a static busybox. Removed when it is dropped.
#[derive(Debug)]
pub(crate) struct DockerImage {
    name: String,
}

impl DockerImage {
    /// Makes the image, or says why there is none.
    pub(crate) fn make(scratch: &Path) -> Result<Self, String> {
        let mut version = Command::new("docker");
        version.args(["version", "--format", "{{.Server.Version}}"]);
        succeed(&mut version).map_err(|_| NO_ENGINE.to_owned())?;
        import(scratch).map_err(|error| format!("no image to run: {error:#}"))
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

fn import(scratch: &Path) -> anyhow::Result<DockerImage> {
    let busybox = find("busybox").context("install busybox (Debian: busybox-static)")?;
    let place = tempfile::tempdir_in(scratch)?;
    let (root, archive) = (place.path().join("image"), place.path().join("image.tar"));
    let programs = root.join("bin");
    fs::create_dir_all(&programs)?;
    fs::copy(busybox, programs.join("busybox")).context("cannot copy busybox")?;
    for program in ["echo", "sh", "true"] {
        symlink("busybox", programs.join(program))?;
    }
    let mut pack = Command::new("tar");
    pack.arg("--create").arg("--file").arg(&archive);
    succeed(pack.arg("--directory").arg(&root).arg("."))?;
    let name = format!("zareba-bench:{}", std::process::id());
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

fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|directory| directory.join(program))
        .find(|file| file.is_file())
}

fn succeed(command: &mut Command) -> anyhow::Result<()> {
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
    Ok(())
}
