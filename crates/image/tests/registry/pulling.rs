//! The ordinary way: what a registry has is what lies on the disk.

use std::collections::BTreeSet;

use serde_json::json;
use zareba_image::{
    Digest, ImageName, ImageStore, Stage,
    registry::{Platform, PullError, PullOptions, Transport, pull},
};

use crate::{
    server::{Answer, Server},
    shelf::{
        Built, DOCKER_INDEX, DOCKER_MANIFEST, Dialect, OCI_INDEX, OCI_MANIFEST, REPOSITORY, Shelf,
        digest,
    },
    workbench::Workbench,
};

fn hexes<'a>(digests: impl IntoIterator<Item = &'a String>) -> BTreeSet<String> {
    let hex = |digest: &String| digest.strip_prefix("sha256:").unwrap().to_owned();
    digests.into_iter().map(hex).collect()
}

#[tokio::test]
async fn an_image_in_either_dialect_becomes_a_layout() {
    for dialect in [Dialect::Docker, Dialect::Oci] {
        let built = Built::new(dialect, &[b"first layer", b"second layer"]);
        let server = Server::start(Shelf::of(&built), |_| None).await;
        let mut workbench = Workbench::new();
        let pulled = workbench.pull(&server).await.unwrap();

        let manifest = built.manifest_bytes();
        assert_eq!(pulled.resolved, Digest::of(&manifest));
        assert_eq!(pulled.manifest, Digest::of(&manifest));
        assert_eq!(pulled.configuration, Digest::of(&built.configuration));
        let size = built.configuration.len() + "first layersecond layer".len();
        assert_eq!(pulled.size_bytes, size as u64);
        assert_eq!(pulled.layout, workbench.layout());

        let mut expected = built.layer_digests();
        expected.extend([digest(&manifest), digest(&built.configuration)]);
        assert_eq!(workbench.blobs(), hexes(&expected));
        for digest in &expected {
            assert_eq!(&crate::shelf::digest(&workbench.blob(digest)), digest);
        }
        assert_eq!(
            workbench.file("oci-layout"),
            json!({"imageLayoutVersion": "1.0.0"})
        );
        assert_eq!(
            workbench.file("index.json"),
            json!({
                "schemaVersion": 2,
                "mediaType": OCI_INDEX,
                "manifests": [{
                    "mediaType": built.media_type,
                    "digest": digest(&manifest),
                    "size": manifest.len(),
                    "platform": {"os": "linux", "architecture": "amd64"},
                    "annotations": {"org.opencontainers.image.ref.name": "1"},
                }],
            })
        );
    }
}

#[tokio::test]
async fn of_several_platforms_only_ours_is_fetched() {
    for (index, dialect) in [(OCI_INDEX, Dialect::Oci), (DOCKER_INDEX, Dialect::Docker)] {
        let ours = Built::new(dialect, &[b"ours"]);
        let other = Built::for_platform(dialect, "arm64", &[b"other"]);
        let images = [("linux", "arm64", &other), ("linux", "amd64", &ours)];
        let server = Server::start(Shelf::of_index(index, &images), |_| None).await;
        let mut workbench = Workbench::new();
        let pulled = workbench.pull(&server).await.unwrap();
        assert_eq!(pulled.manifest, Digest::of(&ours.manifest_bytes()));
        assert_ne!(pulled.resolved, pulled.manifest);
        assert_eq!(workbench.blob(&digest(b"ours")), b"ours");
        assert_eq!(workbench.blobs().len(), 3);

        // The digest that was reported names the same image for ever (DK-10).
        let pinned = format!("@{}", pulled.resolved);
        let again = workbench.pull_reference(&server, &pinned).await.unwrap();
        assert_eq!(
            (again.resolved, again.manifest),
            (pulled.resolved, pulled.manifest)
        );
    }
}

#[tokio::test]
async fn every_kind_of_manifest_that_is_understood_is_asked_for() {
    let built = Built::new(Dialect::Oci, &[b"layer"]);
    let server = Server::start(Shelf::of(&built), |_| None).await;
    Workbench::new().pull(&server).await.unwrap();
    let requests = server.seen();
    let accept = requests[0].accept.as_deref().unwrap();
    let asked: BTreeSet<_> = accept.split(", ").collect();
    let understood = [OCI_INDEX, OCI_MANIFEST, DOCKER_INDEX, DOCKER_MANIFEST];
    assert_eq!(asked, BTreeSet::from(understood));
}

#[tokio::test]
async fn a_name_with_a_digest_gets_that_very_image() {
    let built = Built::new(Dialect::Oci, &[b"layer"]);
    let server = Server::start(Shelf::of(&built), |_| None).await;
    let mut workbench = Workbench::new();
    let pinned = format!(":moved@{}", digest(&built.manifest_bytes()));
    let pulled = workbench.pull_reference(&server, &pinned).await.unwrap();
    assert_eq!(pulled.resolved, Digest::of(&built.manifest_bytes()));
    assert!(
        server
            .seen()
            .iter()
            .all(|seen| !seen.target.contains("moved"))
    );
}

#[tokio::test]
async fn an_image_for_other_platforms_is_refused_with_what_there_is() {
    let other = Built::for_platform(Dialect::Oci, "arm64", &[b"other"]);
    let shelf = Shelf::of_index(OCI_INDEX, &[("linux", "arm64", &other)]);
    let server = Server::start(shelf, |_| None).await;
    let error = Workbench::new().pull(&server).await.unwrap_err();
    assert!(error.to_string().contains("linux/arm64"), "{error}");

    // Without an index only the configuration says it, and no layer is fetched for that.
    let server = Server::start(Shelf::of(&other), |_| None).await;
    let error = Workbench::new().pull(&server).await.unwrap_err();
    assert!(matches!(error, PullError::NoPlatform { .. }), "{error}");
    let layer = digest(b"other");
    assert!(
        server
            .seen()
            .iter()
            .all(|seen| !seen.target.contains(&layer))
    );
}

#[tokio::test]
async fn a_layer_that_an_image_has_twice_is_fetched_once() {
    let built = Built::new(Dialect::Oci, &[b"same", b"other", b"same"]);
    let server = Server::start(Shelf::of(&built), |_| None).await;
    let mut workbench = Workbench::new();
    workbench.pull(&server).await.unwrap();
    let same = digest(b"same");
    let requests = server.seen();
    assert_eq!(
        requests
            .iter()
            .filter(|seen| seen.target.contains(&same))
            .count(),
        1
    );
}

#[tokio::test]
async fn a_layer_that_the_caller_has_is_not_fetched() {
    let built = Built::new(Dialect::Oci, &[b"old", b"new"]);
    let server = Server::start(Shelf::of(&built), |_| None).await;
    let mut workbench = Workbench::new();
    workbench.options.have = Some(&|diff_id| *diff_id == Digest::of(b"old"));
    workbench.pull(&server).await.unwrap();
    let old = digest(b"old");
    let requests = server.seen();
    assert!(requests.iter().all(|seen| !seen.target.ends_with(&old)));
    assert_eq!(workbench.blob(&digest(b"new")), b"new");
    assert_eq!(workbench.blobs().len(), 3);
    let shared = workbench
        .progress
        .iter()
        .filter(|step| step.stage == Stage::Shared);
    let shared: Vec<_> = shared.map(|step| step.digest.clone()).collect();
    assert_eq!(shared, [Some(Digest::of(b"old"))]);
}

/// An archive with one file.
fn archive(name: &str, content: &str) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(content.len() as u64);
    header.set_mode(0o644);
    builder
        .append_data(&mut header, name, content.as_bytes())
        .unwrap();
    builder.into_inner().unwrap()
}

#[tokio::test]
async fn what_was_pulled_is_imported_as_it_lies_and_shares_what_was_there() {
    let platform = Platform::host();
    let (lower, upper) = (archive("lower", "one"), archive("upper", "two"));
    let both = [lower.as_slice(), upper.as_slice()];
    let first = Built::for_platform(Dialect::Oci, platform.architecture(), &both[..1]);
    let second = Built::for_platform(Dialect::Oci, platform.architecture(), &both);
    let directory = tempfile::tempdir().unwrap();
    let store = ImageStore::open(&directory.path().join("store")).unwrap();
    for built in [&first, &second] {
        let server = Server::start(Shelf::of(built), |_| None).await;
        let name = ImageName::parse(&format!("{}/{REPOSITORY}:1", server.address)).unwrap();
        let scratch = store.scratch().unwrap();
        let options = PullOptions {
            have: Some(&|diff_id| store.has_layer(diff_id).unwrap()),
            ..PullOptions::anonymous()
        };
        let pulled = pull(&name, scratch.path(), &options, &mut |_| {}).await;
        let layout = pulled.unwrap().layout;
        let asked_for = name.to_string();
        store
            .import(&layout, Some(&asked_for), &mut |_| {})
            .unwrap();
        let image = store.find(&asked_for).unwrap();
        assert_eq!(image.layers.len(), built.layers.len());
        let top = image.layers.first().unwrap();
        let (file, content) = match built.layers.len() {
            1 => ("lower", "one"),
            _ => ("upper", "two"),
        };
        assert_eq!(std::fs::read_to_string(top.join(file)).unwrap(), content);
        let fetched = server.seen().len();
        assert_eq!(fetched, 3, "manifest, configuration and the new layer");
    }
}

#[tokio::test]
async fn an_empty_layer_and_many_layers_come_whole() {
    let many: Vec<Vec<u8>> = (0..20_u8).map(|number| vec![number; 100_000]).collect();
    let mut layers: Vec<&[u8]> = many.iter().map(Vec::as_slice).collect();
    layers.push(b"");
    let built = Built::new(Dialect::Oci, &layers);
    let server = Server::start(Shelf::of(&built), |_| None).await;
    let mut workbench = Workbench::new();
    workbench.pull(&server).await.unwrap();
    for layer in layers {
        assert_eq!(workbench.blob(&digest(layer)), layer);
    }
}

#[tokio::test]
async fn progress_tells_every_layer_from_nothing_to_all() {
    let built = Built::new(Dialect::Oci, &[&[1; 300_000], &[2; 10]]);
    let server = Server::start(Shelf::of(&built), |_| None).await;
    let mut workbench = Workbench::new();
    let pulled = workbench.pull(&server).await.unwrap();
    let steps = &workbench.progress;
    assert_eq!(steps.first().unwrap().stage, Stage::Resolving);
    let last = steps.last().unwrap();
    assert_eq!(
        (last.stage, last.done_bytes, last.total_bytes),
        (Stage::Finished, pulled.size_bytes, Some(pulled.size_bytes))
    );
    for layer in &built.layers {
        let digest = Digest::of(layer);
        let of_layer = steps
            .iter()
            .filter(|step| step.digest.as_ref() == Some(&digest));
        let done: Vec<_> = of_layer.map(|step| step.done_bytes).collect();
        assert_eq!(done.first(), Some(&0));
        assert_eq!(done.last(), Some(&(layer.len() as u64)));
        assert!(done.is_sorted());
    }
}

#[tokio::test]
async fn an_image_that_is_not_there_is_said_to_be_missing() {
    let server = Server::start(Shelf::default(), |_| None).await;
    let error = Workbench::new().pull(&server).await.unwrap_err();
    assert!(matches!(error, PullError::NotFound { .. }), "{error}");
    assert!(error.to_string().contains(REPOSITORY), "{error}");
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn what_a_registry_says_is_shown_without_what_could_harm_a_terminal() {
    let server = Server::start(Shelf::default(), |_| {
        let body = "{\"errors\":[{\"message\":\"no \\u001b[2Jthanks\"}]}";
        Some(Answer::ok(body).with_status(418))
    })
    .await;
    let error = Workbench::new().pull(&server).await.unwrap_err();
    let shown = error.to_string();
    assert!(
        shown.contains("418") && shown.contains("no [2Jthanks"),
        "{shown}"
    );
}

#[tokio::test]
async fn a_registry_elsewhere_is_reached_through_the_proxy_that_was_named() {
    let built = Built::new(Dialect::Oci, &[b"layer"]);
    let shelf = Shelf::of(&built);
    let behind = shelf.clone();
    let proxy = Server::start(shelf, move |seen| {
        let mut inner = seen.clone();
        inner.target = seen.target.strip_prefix("http://images.test")?.to_owned();
        Some(behind.answer(&inner))
    })
    .await;
    let mut workbench = Workbench::new();
    workbench.options.transport = Transport::PlainHttp;
    workbench.options.proxy = Some(proxy.url(""));
    let name = format!("images.test/{REPOSITORY}:1");
    workbench.pull_name(&name).await.unwrap();

    // What is on this machine is not asked of a proxy.
    let asked = proxy.seen().len();
    let local = Server::start(Shelf::of(&built), |_| None).await;
    workbench.pull(&local).await.unwrap();
    assert_eq!(proxy.seen().len(), asked);
}

#[tokio::test]
async fn a_pull_can_be_made_from_any_thread() {
    let built = Built::new(Dialect::Oci, &[b"layer"]);
    let server = Server::start(Shelf::of(&built), |_| None).await;
    let pulled = tokio::spawn(async move { Workbench::new().pull(&server).await });
    pulled.await.unwrap().unwrap();
}
