//! Our program on an Engine that does not see the files of this machine.
//!
//! It is sent once and kept in a volume, which all sandboxes of this installation mount read-only.
//! The volume is called by what the program is, so another version gets another one. Only a
//! container that is never started is written to (DK-5), and a mark that is written last tells a
//! program that has arrived from one that was cut off. A lock of this installation keeps two from
//! sending at once, and from removing what another is about to mount.

use std::{
    fs::File,
    io::{self, Read, Write as _},
    path::Path,
};

use bollard::models::{
    ContainerCreateBody, HostConfig, Mount, MountType, MountVolumeOptions, VolumeCreateRequest,
};
use rustix::fs::{FlockOperation, flock};
use sha2::{Digest as _, Sha256};
use zareba_runtime::RuntimeError;

use crate::{
    EngineError, EngineFault,
    archive::{Packing, Pieces},
    docker::Shared,
    engine::Engine,
    make::cannot_start,
    program::StaticProgram,
    request::{OWNER_LABEL, owned},
};

/// Where the volume is mounted, and the program's name in it.
pub(crate) const DIRECTORY: &str = "/.zareba/program";
const NAME: &str = "zareba";
/// Says that the program is whole.
const MARK: &str = "whole";

/// Tells our programs from other volumes of ours; its value is the owner.
const PROGRAM_LABEL: &str = "dev.zareba.program";

/// The lock file, in the directory of all sandboxes.
const LOCK: &str = ".program";

/// So much of the digest tells programs apart.
const DIGEST_LETTERS: usize = 24;

/// A program that has arrived. It stays as long as this, or as a container mounts it.
#[derive(Debug)]
pub(crate) struct Delivered {
    pub(crate) volume: String,
    _lock: File,
}

/// The program changed between two looks at it.
#[derive(Debug, thiserror::Error)]
#[error("the program was changed while it was sent; try again")]
struct Changed;

/// Sends the program unless it is there already. `image` is any image that the Engine has.
pub(crate) async fn deliver(
    shared: &Shared,
    engine: &Engine,
    program: &StaticProgram,
    image: &str,
) -> Result<Delivered, RuntimeError> {
    let digest = digest(shared, program).await?;
    let volume = volume_of(shared, &digest);
    let lock = lock(shared, FlockOperation::LockShared).await?;
    let was_sent = shared.delivered.get() == Some(&volume);
    if was_sent && engine.has_volume(&volume).await.map_err(cannot_start)? {
        return Ok(Delivered {
            volume,
            _lock: lock,
        });
    }
    drop(lock);
    let lock = self::lock(shared, FlockOperation::LockExclusive).await?;
    let errand = Errand {
        shared,
        engine,
        program,
        volume: &volume,
        digest,
    };
    errand.run(image).await?;
    // Another program in the same process gets another look at the Engine each time.
    let _ = shared.delivered.set(volume.clone());
    Ok(Delivered {
        volume,
        _lock: lock,
    })
}

/// Removes programs of this installation that are not the present one and that nobody mounts.
pub(crate) async fn sweep(shared: &Shared, engine: &Engine) -> Result<(), RuntimeError> {
    let label = format!("{PROGRAM_LABEL}={}", shared.owner);
    let found = engine.volumes(&label).await.map_err(cannot_start)?;
    if found.is_empty() {
        return Ok(());
    }
    let program = StaticProgram::check(&shared.options.program).map_err(cannot_start)?;
    let present = volume_of(shared, &digest(shared, &program).await?);
    let _lock = lock(shared, FlockOperation::LockExclusive).await?;
    for volume in found.into_iter().filter(|volume| *volume != present) {
        match engine.remove_volume(&volume).await {
            Err(error) if error.fault == EngineFault::Conflict => {}
            removed => removed.map_err(cannot_start)?,
        }
    }
    Ok(())
}

/// An empty volume would be filled with what the image has at its place, which is anybody's.
pub(crate) fn only_ours() -> MountVolumeOptions {
    MountVolumeOptions {
        no_copy: Some(true),
        ..MountVolumeOptions::default()
    }
}

/// The program's path inside.
pub(crate) fn program_path() -> String {
    format!("{DIRECTORY}/{NAME}")
}

/// Bringing the program there.
struct Errand<'a> {
    shared: &'a Shared,
    engine: &'a Engine,
    program: &'a StaticProgram,
    volume: &'a str,
    digest: String,
}

impl Errand<'_> {
    async fn run(&self, image: &str) -> Result<(), RuntimeError> {
        let owner = self.shared.owner.as_str();
        let request = VolumeCreateRequest {
            name: Some(self.volume.to_owned()),
            driver: Some("local".to_owned()),
            labels: Some(owned([(OWNER_LABEL, owner), (PROGRAM_LABEL, owner)])),
            ..VolumeCreateRequest::default()
        };
        let made = self.engine.make_volume(request).await;
        made.map_err(cannot_start)?;
        let container = self.carrier(image).await.map_err(cannot_start)?;
        let filled = self.fill(&container).await;
        let removed = self.engine.remove(&container).await;
        filled?;
        removed.map_err(cannot_start)
    }

    /// A container that is never started and only holds the volume. Its name is always the same,
    /// so that one that was left is found: under the lock nobody needs it.
    async fn carrier(&self, image: &str) -> Result<String, EngineError> {
        let body = ContainerCreateBody {
            image: Some(image.to_owned()),
            entrypoint: Some(vec![program_path()]),
            labels: Some(owned([(OWNER_LABEL, self.shared.owner.as_str())])),
            host_config: Some(HostConfig {
                network_mode: Some("none".to_owned()),
                mounts: Some(vec![Mount {
                    typ: Some(MountType::VOLUME),
                    source: Some(self.volume.to_owned()),
                    target: Some(DIRECTORY.to_owned()),
                    volume_options: Some(only_ours()),
                    ..Mount::default()
                }]),
                ..HostConfig::default()
            }),
            ..ContainerCreateBody::default()
        };
        let name = format!("zareba-carrier-{}", self.shared.owner);
        let platform = self.shared.options.platform.as_deref();
        match self.engine.create(&name, platform, body.clone()).await {
            Err(error) if error.fault == EngineFault::Conflict => {
                self.engine.remove(&name).await?;
                self.engine.create(&name, platform, body).await
            }
            made => made,
        }
    }

    async fn fill(&self, container: &str) -> Result<(), RuntimeError> {
        let mark = format!("{DIRECTORY}/{MARK}");
        let is_whole = self.engine.has_file(container, &mark).await;
        if is_whole.map_err(cannot_start)? {
            return Ok(());
        }
        tracing::info!(volume = self.volume, "sending our program to the Engine");
        let (path, digest) = (self.program.path.clone(), self.digest.clone());
        let archive = Packing::begin(move |pieces| pack_program(&path, &digest, pieces));
        archive
            .unpack_into(self.engine, container, DIRECTORY)
            .await?;
        let archive = Packing::begin(pack_mark);
        archive.unpack_into(self.engine, container, DIRECTORY).await
    }
}

fn volume_of(shared: &Shared, digest: &str) -> String {
    let letters = digest.get(..DIGEST_LETTERS).unwrap_or(digest);
    format!("zareba-program-{}-{letters}", shared.owner)
}

/// What the program is, read once: it is large.
async fn digest(shared: &Shared, program: &StaticProgram) -> Result<String, RuntimeError> {
    let path = program.path.clone();
    let read =
        || async move { tokio::task::spawn_blocking(move || digest_of(File::open(path)?)).await? };
    let digest = shared.digest.get_or_try_init(read).await;
    digest.cloned().map_err(cannot_start)
}

fn digest_of(file: File) -> io::Result<String> {
    let mut reader = Hashing::new(file);
    io::copy(&mut reader, &mut io::sink())?;
    Ok(reader.finish())
}

fn pack_program(path: &Path, digest: &str, pieces: Pieces) -> io::Result<()> {
    let file = File::open(path)?;
    let mut header = header(0o755, file.metadata()?.len());
    let mut reader = Hashing::new(file);
    let mut archive = tar::Builder::new(pieces);
    archive.append_data(&mut header, NAME, &mut reader)?;
    if reader.finish() != digest {
        return Err(io::Error::other(Changed));
    }
    archive.into_inner()?.flush()
}

fn pack_mark(pieces: Pieces) -> io::Result<()> {
    let mut archive = tar::Builder::new(pieces);
    archive.append_data(&mut header(0o444, 0), MARK, io::empty())?;
    archive.into_inner()?.flush()
}

fn header(mode: u32, size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(size);
    header
}

/// Reads a file and makes its digest on the way.
struct Hashing {
    file: File,
    hash: Sha256,
}

impl Hashing {
    fn new(file: File) -> Self {
        let hash = Sha256::new();
        Self { file, hash }
    }

    fn finish(self) -> String {
        let digest = self.hash.finalize();
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl Read for Hashing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.file.read(buffer)?;
        self.hash.update(buffer.get(..length).unwrap_or_default());
        Ok(length)
    }
}

/// Takes the lock, on a thread that may block.
async fn lock(shared: &Shared, operation: FlockOperation) -> Result<File, RuntimeError> {
    let path = shared.directory.join(LOCK);
    let locked = tokio::task::spawn_blocking(move || {
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)?;
        flock(&file, operation)?;
        Ok::<_, io::Error>(file)
    });
    let locked = locked.await.map_err(cannot_start)?;
    locked.map_err(cannot_start)
}
