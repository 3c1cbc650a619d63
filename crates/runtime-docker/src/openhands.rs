//! An image that an unmodified OpenHands starts: its Docker, remote and Kubernetes runtimes find
//! our executor where they look for theirs.
//!
//! Nothing is run and nothing is fetched for it. A container of the base image is made and never
//! started, our files are put into it, and what it is then becomes the new image. All of them lie
//! below `/openhands`, where the original has its own.

use std::{
    fs::File,
    io::{self, Write},
    path::{Path, PathBuf},
};

use bollard::models::ContainerCreateBody;
use zareba_runtime::RuntimeError;

use crate::{
    archive::{Packing, Pieces},
    docker::Shared,
    engine::Engine,
    image,
    make::cannot_start,
    program::StaticProgram,
    request::{OWNER_LABEL, owned},
};

/// Where the program is in the image.
const PROGRAM: &str = "openhands/bin/zareba";

/// What OpenHands starts its server with. It asks a package manager to run a Python module; all
/// that counts are the arguments behind the module's name.
const SHIM_PATH: &str = "openhands/micromamba/bin/micromamba";
const SHIM: &str = r#"#!/bin/sh
# Started as: micromamba run -n openhands poetry run python -u -m MODULE ARGUMENTS...
while [ $# -gt 0 ]; do
  case $1 in
    openhands.runtime.action_execution_server)
      shift
      exec /openhands/bin/zareba executor "$@"
      ;;
  esac
  shift
done
echo 'only openhands.runtime.action_execution_server can be run here' >&2
exit 127
"#;

/// The interpreter that its tests look for.
const INTERPRETER: &str = "openhands/poetry/openhands-ai-5O4_aCHf-py3.12/bin/python";
const PYTHON: &str = "/usr/bin/python3";

/// Directories that are there before anything else.
const DIRECTORIES: [&str; 2] = ["openhands/code", "openhands/bin"];

/// Makes the image `tag` from the image `base` and returns its id.
pub(crate) async fn make_image(
    shared: &Shared,
    base: &str,
    tag: &str,
) -> Result<String, RuntimeError> {
    let program = StaticProgram::check(&shared.options.program).map_err(cannot_start)?;
    let engine = shared.engine().await?;
    image::find(&engine, &shared.options, &program, base, |_| {}).await?;
    let body = ContainerCreateBody {
        image: Some(base.to_owned()),
        cmd: Some(vec![format!("/{PROGRAM}"), "--help".to_owned()]),
        labels: Some(owned([(OWNER_LABEL, shared.owner.as_str())])),
        ..ContainerCreateBody::default()
    };
    let name = format!("zareba-image-{:016x}", rand::random::<u64>());
    let platform = shared.options.platform.as_deref();
    let container = engine.create(&name, platform, body).await;
    let container = container.map_err(cannot_start)?;
    let made = turn_into_image(&engine, &container, program.path, tag).await;
    engine.remove(&container).await.map_err(cannot_start)?;
    made
}

async fn turn_into_image(
    engine: &Engine,
    container: &str,
    program: PathBuf,
    tag: &str,
) -> Result<String, RuntimeError> {
    let archive = Packing::begin(move |pieces| pack(&program, pieces));
    archive.unpack_into(engine, container, "/").await?;
    engine.commit(container, tag).await.map_err(cannot_start)
}

fn pack(program: &Path, pieces: Pieces) -> io::Result<()> {
    let mut archive = tar::Builder::new(pieces);
    let header = |kind, mode, size| {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_uid(0);
        header.set_gid(0);
        header.set_size(size);
        header
    };
    for directory in DIRECTORIES {
        let mut entry = header(tar::EntryType::Directory, 0o755, 0);
        archive.append_data(&mut entry, directory, io::empty())?;
    }
    let size = u64::try_from(SHIM.len()).map_err(io::Error::other)?;
    let mut entry = header(tar::EntryType::Regular, 0o755, size);
    archive.append_data(&mut entry, SHIM_PATH, SHIM.as_bytes())?;
    let mut entry = header(tar::EntryType::Symlink, 0o777, 0);
    archive.append_link(&mut entry, INTERPRETER, PYTHON)?;
    let file = File::open(program)?;
    let mut entry = header(tar::EntryType::Regular, 0o755, file.metadata()?.len());
    archive.append_data(&mut entry, PROGRAM, file)?;
    archive.into_inner()?.flush()
}
