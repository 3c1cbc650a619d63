//! What is asked of an Engine that does not see the files of this machine: to take files, and to
//! carry streams to programs inside.

use std::io;

use bollard::{
    errors::Error as Reply,
    exec::{CreateExecOptions, StartExecOptions, StartExecResults},
    query_parameters::{ContainerArchiveInfoOptions, UploadToContainerOptions},
};
use bytes::Bytes;
use futures_core::Stream;

use super::{
    Attached, Engine, EngineError, EngineFault,
    calls::{again, call},
};

/// Room for what a program inside has written and nobody has read yet.
const OUTPUT_BYTES: usize = 64 * 1024;

impl Engine {
    /// Unpacks an archive into a container that was never started. One that runs could change
    /// links under the Engine's hands (DK-5).
    pub(crate) async fn unpack_into_new(
        &self,
        id: &str,
        path: &str,
        archive: impl Stream<Item = Result<Bytes, io::Error>> + Send + 'static,
    ) -> Result<(), EngineError> {
        let options = UploadToContainerOptions {
            path: path.to_owned(),
            ..UploadToContainerOptions::default()
        };
        let archive = bollard::body_try_stream(archive);
        let unpacked = self.docker.upload_to_container(id, Some(options), archive);
        call(format!("put files into the container `{id}`"), unpacked).await
    }

    /// Whether a container that was never started has this file.
    pub(crate) async fn has_file(&self, id: &str, path: &str) -> Result<bool, EngineError> {
        let options = ContainerArchiveInfoOptions {
            path: path.to_owned(),
        };
        let found = again(|| {
            let asked = self
                .docker
                .get_container_archive_info(id, Some(options.clone()));
            call(format!("look into the container `{id}`"), asked)
        });
        is_there(found.await.map(drop))
    }

    pub(crate) async fn has_volume(&self, name: &str) -> Result<bool, EngineError> {
        let found = again(|| {
            let asked = self.docker.inspect_volume(name);
            call(format!("inspect the volume `{name}`"), asked)
        });
        is_there(found.await.map(drop))
    }

    /// Starts another program in a container, as the same user and behind the same walls.
    pub(crate) async fn exec(
        &self,
        id: &str,
        command: Vec<String>,
    ) -> Result<Attached, EngineError> {
        let deed = format!("start a program in the container `{id}`");
        let options = CreateExecOptions {
            attach_stdin: Some(true),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            tty: Some(false),
            privileged: Some(false),
            cmd: Some(command),
            ..CreateExecOptions::default()
        };
        let made = call(deed.clone(), self.docker.create_exec(id, options)).await?;
        let options = StartExecOptions {
            output_capacity: Some(OUTPUT_BYTES),
            ..StartExecOptions::default()
        };
        let started = self.docker.start_exec(&made.id, Some(options));
        match call(deed.clone(), started).await? {
            StartExecResults::Attached { output, input } => Ok(Attached { output, input }),
            StartExecResults::Detached => {
                let lost = io::Error::from(io::ErrorKind::BrokenPipe);
                Err(EngineError::new(deed, Reply::from(lost)))
            }
        }
    }
}

fn is_there(found: Result<(), EngineError>) -> Result<bool, EngineError> {
    match found {
        Ok(()) => Ok(true),
        Err(error) if error.fault == EngineFault::Missing => Ok(false),
        Err(error) => Err(error),
    }
}
