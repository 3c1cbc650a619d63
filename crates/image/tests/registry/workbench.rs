//! What every test of a pull has: a place to pull into, patience for tests, and a look at the
//! result.

use std::{
    collections::BTreeSet,
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::Value;
use tempfile::TempDir;
use tokio::net::TcpSocket;
use zareba_image::{
    ImageName, Progress,
    registry::{Patience, Platform, PullError, PullOptions, PulledImage, pull},
};

use crate::{server::Server, shelf::REPOSITORY};

/// One pull into a directory of its own.
pub(crate) struct Workbench {
    directory: TempDir,
    pub(crate) options: PullOptions<'static>,
    pub(crate) progress: Vec<Progress>,
}

impl Workbench {
    pub(crate) fn new() -> Self {
        let patience = Patience {
            connect: Duration::from_secs(10),
            idle: Duration::from_secs(10),
            pause: Duration::from_millis(1),
            pause_max: Duration::from_secs(2),
            overall: Duration::from_secs(60),
        };
        Self {
            directory: tempfile::tempdir().unwrap(),
            options: PullOptions {
                platform: Platform::linux("amd64"),
                patience,
                ..PullOptions::anonymous()
            },
            progress: Vec::new(),
        }
    }

    /// A file like `docker login` writes it, with `me:swordfish` for `registry`.
    pub(crate) fn with_credentials(mut self, registry: &str) -> Self {
        let file = self.directory.path().join("config.json");
        let text = format!(r#"{{"auths":{{"{registry}":{{"auth":"bWU6c3dvcmRmaXNo"}}}}}}"#);
        fs::write(&file, text).unwrap();
        self.options.credentials = Some(file);
        self
    }

    pub(crate) fn layout(&self) -> PathBuf {
        self.directory.path().join("layout")
    }

    /// Pulls `team/tool:1`.
    pub(crate) async fn pull(&mut self, server: &Server) -> Result<PulledImage, PullError> {
        self.pull_reference(server, ":1").await
    }

    /// Pulls `team/tool`, with what follows in its name.
    pub(crate) async fn pull_reference(
        &mut self,
        server: &Server,
        reference: &str,
    ) -> Result<PulledImage, PullError> {
        self.pull_name(&format!("{}/{REPOSITORY}{reference}", server.address))
            .await
    }

    pub(crate) async fn pull_name(&mut self, name: &str) -> Result<PulledImage, PullError> {
        let name = ImageName::parse(name).unwrap();
        let layout = self.layout();
        let mut told = Vec::new();
        let pulled = pull(&name, &layout, &self.options, &mut |step| told.push(step)).await;
        self.progress.extend(told);
        if pulled.is_err() {
            self.assert_no_layout();
        }
        pulled
    }

    /// Whatever went wrong, nothing may look like an image, and nothing unchecked may stay.
    fn assert_no_layout(&self) {
        assert!(!self.layout().join("index.json").exists());
        for name in self.blobs() {
            assert_checked(&self.blob_directory().join(&name));
        }
        let outside: Vec<_> = names(self.directory.path())
            .into_iter()
            .filter(|name| !["layout", "config.json"].contains(&name.as_str()))
            .collect();
        assert_eq!(outside, Vec::<String>::new());
    }

    pub(crate) fn blobs(&self) -> BTreeSet<String> {
        names(&self.blob_directory())
    }

    fn blob_directory(&self) -> PathBuf {
        self.layout().join("blobs/sha256")
    }

    /// A blob by its digest.
    pub(crate) fn blob(&self, digest: &str) -> Vec<u8> {
        let hex = digest.strip_prefix("sha256:").unwrap();
        fs::read(self.blob_directory().join(hex)).unwrap()
    }

    pub(crate) fn file(&self, name: &str) -> Value {
        serde_json::from_slice(&fs::read(self.layout().join(name)).unwrap()).unwrap()
    }
}

/// A port that refuses every connection, and that nobody else can be given meanwhile.
pub(crate) struct ClosedPort(TcpSocket);

impl ClosedPort {
    pub(crate) fn new() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        Self(socket)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.0.local_addr().unwrap()
    }
}

fn assert_checked(path: &Path) {
    let content = fs::read(path).unwrap();
    let name = path.file_name().unwrap().to_str().unwrap();
    assert_eq!(zareba_image::Digest::of(&content).hex(), name);
}

/// What is in a directory; nothing when it is not there.
fn names(directory: &Path) -> BTreeSet<String> {
    let Ok(entries) = fs::read_dir(directory) else {
        return BTreeSet::new();
    };
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}
