//! What a registry has: images that are built for a test.

use std::collections::HashMap;

use serde_json::{Value, json};
use zareba_image::Digest;

use crate::server::{Answer, Seen};

pub(crate) const REPOSITORY: &str = "team/tool";

pub(crate) const OCI_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub(crate) const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
pub(crate) const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
pub(crate) const DOCKER_INDEX: &str = "application/vnd.docker.distribution.manifest.list.v2+json";

/// Documents and blobs, by the path under which they are asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shelf {
    items: HashMap<String, Item>,
}

#[derive(Clone, Debug)]
struct Item {
    media_type: String,
    content: Vec<u8>,
    digest: Option<String>,
}

/// Whose words an image is described in.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Dialect {
    Docker,
    Oci,
}

/// An image with what its registry needs to have.
#[derive(Clone, Debug)]
pub(crate) struct Built {
    pub(crate) manifest: Value,
    pub(crate) media_type: &'static str,
    pub(crate) configuration: Vec<u8>,
    pub(crate) layers: Vec<Vec<u8>>,
}

impl Built {
    /// An image of `layers` for `linux/amd64`. What is in a layer does not matter to a pull.
    pub(crate) fn new(dialect: Dialect, layers: &[&[u8]]) -> Self {
        Self::for_platform(dialect, "amd64", layers)
    }

    pub(crate) fn for_platform(dialect: Dialect, architecture: &str, layers: &[&[u8]]) -> Self {
        let (media_type, config_type, layer_type) = match dialect {
            Dialect::Docker => (
                DOCKER_MANIFEST,
                "application/vnd.docker.container.image.v1+json",
                "application/vnd.docker.image.rootfs.diff.tar.gzip",
            ),
            Dialect::Oci => (
                OCI_MANIFEST,
                "application/vnd.oci.image.config.v1+json",
                "application/vnd.oci.image.layer.v1.tar",
            ),
        };
        let diff_ids: Vec<_> = layers.iter().map(|layer| digest(layer)).collect();
        let configuration = json!({
            "os": "linux",
            "architecture": architecture,
            "config": {"Env": ["A=b"]},
            "rootfs": {"type": "layers", "diff_ids": diff_ids},
        });
        let configuration = configuration.to_string().into_bytes();
        let described: Vec<_> = layers
            .iter()
            .map(|layer| descriptor(layer_type, layer))
            .collect();
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": media_type,
            "config": descriptor(config_type, &configuration),
            "layers": described,
        });
        Self {
            manifest,
            media_type,
            configuration,
            layers: layers.iter().map(|layer| layer.to_vec()).collect(),
        }
    }

    pub(crate) fn manifest_bytes(&self) -> Vec<u8> {
        self.manifest.to_string().into_bytes()
    }

    /// The digests of the layers, in order.
    pub(crate) fn layer_digests(&self) -> Vec<String> {
        self.layers.iter().map(|layer| digest(layer)).collect()
    }
}

impl Shelf {
    /// One image under the tag `1`.
    pub(crate) fn of(built: &Built) -> Self {
        let mut shelf = Self::default();
        shelf.put_image(built);
        shelf.put_manifest("1", built.media_type, built.manifest_bytes());
        shelf
    }

    /// An index under the tag `1`, with one image for each platform.
    pub(crate) fn of_index(media_type: &str, images: &[(&str, &str, &Built)]) -> Self {
        let mut shelf = Self::default();
        let mut entries = Vec::new();
        for (os, architecture, built) in images {
            shelf.put_image(built);
            let mut entry = descriptor(built.media_type, &built.manifest_bytes());
            entry["platform"] = json!({"os": os, "architecture": architecture});
            entries.push(entry);
        }
        let index = json!({"schemaVersion": 2, "mediaType": media_type, "manifests": entries});
        let index = index.to_string().into_bytes();
        shelf.put_manifest(&digest(&index), media_type, index.clone());
        shelf.put_manifest("1", media_type, index);
        shelf
    }

    pub(crate) fn put_image(&mut self, built: &Built) {
        let manifest = built.manifest_bytes();
        self.put_manifest(&digest(&manifest), built.media_type, manifest);
        self.put_blob(&digest(&built.configuration), &built.configuration);
        for layer in &built.layers {
            self.put_blob(&digest(layer), layer);
        }
    }

    pub(crate) fn put_manifest(&mut self, reference: &str, media_type: &str, content: Vec<u8>) {
        let path = format!("/v2/{REPOSITORY}/manifests/{reference}");
        let item = Item {
            media_type: media_type.to_owned(),
            digest: Some(digest(&content)),
            content,
        };
        self.items.insert(path, item);
    }

    /// Under a digest that a test may choose.
    pub(crate) fn put_blob(&mut self, digest: &str, content: &[u8]) {
        let item = Item {
            media_type: "application/octet-stream".to_owned(),
            digest: None,
            content: content.to_vec(),
        };
        self.items.insert(blob_path(digest), item);
    }

    pub(crate) fn answer(&self, seen: &Seen) -> Answer {
        let path = seen.target.split('?').next().unwrap();
        let Some(item) = self.items.get(path) else {
            return Answer::status(404);
        };
        let answer = match seen.range.as_deref().map(first_byte) {
            Some(first) => part_of(&item.content, first),
            None => Answer::ok(item.content.clone()),
        };
        let answer = answer.header("content-type", &item.media_type);
        match &item.digest {
            Some(digest) => answer.header("docker-content-digest", digest),
            None => answer,
        }
    }
}

fn part_of(content: &[u8], first: usize) -> Answer {
    let (last, length) = (content.len() - 1, content.len());
    Answer::ok(&content[first..])
        .with_status(206)
        .header("content-range", &format!("bytes {first}-{last}/{length}"))
}

pub(crate) fn first_byte(range: &str) -> usize {
    let range = range.strip_prefix("bytes=").unwrap();
    range.strip_suffix('-').unwrap().parse().unwrap()
}

pub(crate) fn blob_path(digest: &str) -> String {
    format!("/v2/{REPOSITORY}/blobs/{digest}")
}

pub(crate) fn digest(content: &[u8]) -> String {
    Digest::of(content).to_string()
}

fn descriptor(media_type: &str, content: &[u8]) -> Value {
    json!({"mediaType": media_type, "digest": digest(content), "size": content.len()})
}
