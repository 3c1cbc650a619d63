//! Archives for tests, also such as no honest tool writes.

use std::io::Write as _;

use tar::{EntryType, Header};

use crate::Digest;

/// An archive being made, entry by entry, without any check.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tar {
    bytes: Vec<u8>,
}

impl Tar {
    pub(crate) fn file(self, name: &str, content: &str) -> Self {
        self.entry(
            EntryType::Regular,
            name.as_bytes(),
            b"",
            0o644,
            content.as_bytes(),
        )
    }

    pub(crate) fn blob(self, name: &str, content: &[u8]) -> Self {
        self.entry(EntryType::Regular, name.as_bytes(), b"", 0o644, content)
    }

    pub(crate) fn directory(self, name: &str) -> Self {
        self.entry(EntryType::Directory, name.as_bytes(), b"", 0o755, b"")
    }

    pub(crate) fn symlink(self, name: &str, target: &str) -> Self {
        self.entry(
            EntryType::Symlink,
            name.as_bytes(),
            target.as_bytes(),
            0o777,
            b"",
        )
    }

    pub(crate) fn hard_link(self, name: &str, target: &str) -> Self {
        self.entry(
            EntryType::Link,
            name.as_bytes(),
            target.as_bytes(),
            0o644,
            b"",
        )
    }

    /// Any entry at all; names that do not fit a header get a record of their own.
    pub(crate) fn entry(
        mut self,
        kind: EntryType,
        name: &[u8],
        link: &[u8],
        mode: u32,
        content: &[u8],
    ) -> Self {
        if name.len() > 100 {
            self = self.entry(EntryType::GNULongName, b"././@LongLink", b"", 0, name);
        }
        let mut header = Header::new_gnu();
        let old = header.as_old_mut();
        for (to, from) in old.name.iter_mut().zip(name) {
            *to = *from;
        }
        for (to, from) in old.linkname.iter_mut().zip(link) {
            *to = *from;
        }
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_uid(12_345);
        header.set_gid(12_345);
        header.set_mtime(1_000_000_000);
        header.set_size(content.len() as u64);
        header.set_cksum();
        self.raw(header.as_bytes()).raw(content).padded()
    }

    pub(crate) fn raw(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    fn padded(mut self) -> Self {
        self.bytes.resize(self.bytes.len().next_multiple_of(512), 0);
        self
    }

    /// The archive with its end marker.
    pub(crate) fn finish(&self) -> Vec<u8> {
        self.clone().raw(&[0; 1024]).bytes
    }
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

/// The configuration of an image with these layers, as texts of digests.
pub(crate) fn configuration(layers: &[&[u8]], architecture: &str) -> String {
    let diff_ids: Vec<String> = layers
        .iter()
        .map(|layer| Digest::of(layer).to_string())
        .collect();
    serde_json::json!({
        "created": "2024-05-06T07:08:09Z",
        "os": "linux",
        "architecture": architecture,
        "config": {
            "Env": ["PATH=/bin", "A=b"],
            "WorkingDir": "/srv",
            "User": "",
            "Entrypoint": null,
            "Cmd": ["sh"],
            "Labels": {"maker": "test"},
        },
        "rootfs": {"type": "layers", "diff_ids": diff_ids},
    })
    .to_string()
}

/// What `docker save` wrote before it wrote OCI layouts.
pub(crate) fn saved(layers: &[&[u8]], tags: &[&str]) -> Vec<u8> {
    let config = configuration(layers, crate::platform::architecture());
    let config_name = format!("{}.json", Digest::of(config.as_bytes()).hex());
    let mut tar = Tar::default();
    let mut names = Vec::new();
    for layer in layers {
        let directory = Digest::of(layer).hex().to_owned();
        let name = format!("{directory}/layer.tar");
        tar = tar.directory(&directory).blob(&name, layer);
        names.push(name);
    }
    let manifest = serde_json::json!([
        {"Config": config_name, "RepoTags": tags, "Layers": names}
    ]);
    tar.file(&config_name, &config)
        .file("manifest.json", &manifest.to_string())
        .finish()
}

/// The parts of an OCI image layout: names and contents.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    pub(crate) parts: Vec<(String, Vec<u8>)>,
    manifests: Vec<serde_json::Value>,
}

impl Layout {
    pub(crate) fn blob(&mut self, content: &[u8]) -> serde_json::Value {
        let digest = Digest::of(content);
        let name = format!("blobs/sha256/{}", digest.hex());
        self.parts.push((name, content.to_vec()));
        serde_json::json!({"digest": digest.to_string(), "size": content.len()})
    }

    /// Adds a manifest for layers that are transported as the second of each pair.
    pub(crate) fn manifest(
        &mut self,
        layers: &[(&[u8], &[u8])],
        architecture: &str,
    ) -> serde_json::Value {
        let plain: Vec<&[u8]> = layers.iter().map(|(plain, _)| *plain).collect();
        let config = self.blob(configuration(&plain, architecture).as_bytes());
        let layers: Vec<_> = layers.iter().map(|(_, blob)| self.blob(blob)).collect();
        let manifest = serde_json::json!({"schemaVersion": 2, "config": config, "layers": layers});
        let mut descriptor = self.blob(manifest.to_string().as_bytes());
        descriptor["platform"] = serde_json::json!({"os": "linux", "architecture": architecture});
        descriptor
    }

    pub(crate) fn list(&mut self, mut descriptor: serde_json::Value, name: &str) {
        descriptor["annotations"] = serde_json::json!({"io.containerd.image.name": name});
        self.manifests.push(descriptor);
    }

    /// All parts, with the index.
    pub(crate) fn finish(&self) -> Vec<(String, Vec<u8>)> {
        let index = serde_json::json!({"schemaVersion": 2, "manifests": self.manifests});
        let mut parts = self.parts.clone();
        let version = br#"{"imageLayoutVersion":"1.0.0"}"#.to_vec();
        parts.push(("oci-layout".to_owned(), version));
        parts.push(("index.json".to_owned(), index.to_string().into_bytes()));
        parts
    }

    pub(crate) fn to_tar(&self) -> Vec<u8> {
        let parts = self.finish();
        let tar = parts.iter().fold(Tar::default(), |tar, (name, content)| {
            tar.blob(name, content)
        });
        tar.finish()
    }

    pub(crate) fn write(&self, directory: &std::path::Path) {
        std::fs::create_dir_all(directory.join("blobs/sha256")).unwrap();
        for (name, content) in self.finish() {
            std::fs::write(directory.join(name), content).unwrap();
        }
    }
}
