//! Nothing is kept that is not what its digest says, and nothing is read past its limit.

use serde_json::{Value, json};
use zareba_image::registry::{Part, PullError};

use crate::{
    server::{Answer, Server},
    shelf::{Built, Dialect, OCI_INDEX, OCI_MANIFEST, Shelf, blob_path, digest},
    workbench::Workbench,
};

const LAYER: &[u8] = b"twenty bytes of text";

fn built() -> Built {
    Built::new(Dialect::Oci, &[LAYER])
}

/// Pulls an image whose layer is answered as told.
async fn with_layer(answer: Answer) -> (PullError, usize) {
    let layer = blob_path(&digest(LAYER));
    let server = Server::start(Shelf::of(&built()), move |seen| {
        (seen.target == layer).then(|| answer.clone())
    })
    .await;
    let error = Workbench::new().pull(&server).await.unwrap_err();
    (error, server.seen().len())
}

/// Pulls an image whose manifest has been tampered with, in a way that its digest does not show.
async fn with_manifest(change: impl FnOnce(&mut Value)) -> PullError {
    let mut built = built();
    change(&mut built.manifest);
    let server = Server::start(Shelf::of(&built), |_| None).await;
    Workbench::new().pull(&server).await.unwrap_err()
}

/// Pulls what is answered in place of a manifest.
async fn with_document(answer: Answer) -> PullError {
    let server = Server::start(Shelf::default(), move |_| Some(answer.clone())).await;
    Workbench::new().pull(&server).await.unwrap_err()
}

#[tokio::test]
async fn a_layer_with_other_content_is_refused_with_both_digests() {
    let other = b"twenty bytes of TEXT";
    let (error, requests) = with_layer(Answer::ok(other)).await;
    match &error {
        PullError::DigestMismatch {
            expected, actual, ..
        } => {
            assert_eq!(expected.to_string(), digest(LAYER));
            assert_eq!(actual.to_string(), digest(other));
        }
        other => panic!("{other}"),
    }
    assert_eq!(requests, 3, "what is wrong is not asked for again");
}

#[tokio::test]
async fn a_layer_of_another_length_is_refused_however_it_is_sent() {
    let long = [LAYER, b"!"].concat();
    let short = &LAYER[..19];
    for (answer, length) in [
        (Answer::ok(long.clone()), 21),
        (Answer::ok(long).streamed(), 21),
        (Answer::ok(short), 19),
        (Answer::ok(short).streamed(), 19),
        (Answer::ok(""), 0),
    ] {
        let (error, requests) = with_layer(answer).await;
        match &error {
            PullError::SizeMismatch {
                declared, received, ..
            } => assert_eq!((*declared, *received), (20, length)),
            other => panic!("{other}"),
        }
        assert_eq!(requests, 3);
    }
}

#[tokio::test]
async fn a_layer_that_never_comes_whole_is_given_up() {
    let layer = blob_path(&digest(LAYER));
    let server = Server::start(Shelf::of(&built()), move |seen| {
        (seen.target == layer).then(|| Answer::ok(LAYER).cut_after(0))
    })
    .await;
    let error = Workbench::new().pull(&server).await.unwrap_err();
    assert!(matches!(error, PullError::Interrupted { .. }), "{error}");
    assert_eq!(server.seen().len(), 2 + 3);
}

#[tokio::test]
async fn a_layer_whose_size_is_declared_wrong_is_refused() {
    let error = with_manifest(|manifest| manifest["layers"][0]["size"] = 19.into()).await;
    assert!(matches!(error, PullError::SizeMismatch { .. }), "{error}");
    let error = with_manifest(|manifest| manifest["config"]["size"] = 1.into()).await;
    assert!(
        matches!(
            error,
            PullError::SizeMismatch {
                part: Part::Configuration { .. },
                ..
            }
        ),
        "{error}"
    );
}

#[tokio::test]
async fn a_manifest_is_held_against_the_digest_that_was_asked_for() {
    let built = built();
    let server = Server::start(Shelf::of(&built), |seen| {
        // With a header that agrees with the wrong content, which therefore says nothing.
        let other = Built::new(Dialect::Oci, &[b"other"]).manifest_bytes();
        let header = digest(&other);
        let answer = Answer::ok(other).header("docker-content-digest", &header);
        seen.is_manifest().then_some(answer)
    })
    .await;
    let pinned = format!("@{}", digest(&built.manifest_bytes()));
    let error = Workbench::new()
        .pull_reference(&server, &pinned)
        .await
        .unwrap_err();
    assert!(matches!(error, PullError::DigestMismatch { .. }), "{error}");
}

#[tokio::test]
async fn a_manifest_is_held_against_the_digest_that_it_is_sent_with() {
    let manifest = built().manifest_bytes();
    let error = with_document(
        Answer::ok(manifest.clone()).header("docker-content-digest", &digest(b"other")),
    )
    .await;
    assert!(matches!(error, PullError::DigestMismatch { .. }), "{error}");
    for hostile in ["sha256:../../x", "sha512:00", ""] {
        let answer = Answer::ok(manifest.clone()).header("docker-content-digest", hostile);
        let error = with_document(answer).await;
        assert!(matches!(error, PullError::InvalidDigest { .. }), "{error}");
    }
}

#[tokio::test]
async fn the_manifest_of_a_platform_is_held_against_its_index() {
    let ours = built();
    let shelf = Shelf::of_index(OCI_INDEX, &[("linux", "amd64", &ours)]);
    let inner = digest(&ours.manifest_bytes());
    let manifest = ours.manifest.to_string();
    let same_length = manifest.replace("schemaVersion", "schemaVERSION");
    let server = Server::start(shelf, move |seen| {
        let answer = || Answer::ok(same_length.clone()).header("content-type", OCI_MANIFEST);
        seen.target.ends_with(&inner).then(answer)
    })
    .await;
    let error = Workbench::new().pull(&server).await.unwrap_err();
    assert!(
        matches!(
            error,
            PullError::DigestMismatch {
                part: Part::PlatformManifest { .. },
                ..
            }
        ),
        "{error}"
    );
}

#[tokio::test]
async fn a_digest_that_is_a_path_never_reaches_the_disk_or_the_network() {
    for hostile in [
        "sha256:../../x",
        "sha256:../../../../etc/passwd",
        "sha512:00",
    ] {
        for place in ["/config/digest", "/layers/0/digest"] {
            let error = with_manifest(|manifest| {
                *manifest.pointer_mut(place).unwrap() = hostile.into();
            })
            .await;
            assert!(matches!(error, PullError::InvalidDigest { .. }), "{error}");
        }
    }
}

#[tokio::test]
async fn documents_that_are_deep_huge_or_nonsense_are_refused() {
    let deep = format!("{{\"config\":{}", "[".repeat(1_000_000));
    for text in [deep.as_str(), "", "[]", "{", "\u{1b}"] {
        let error = with_document(Answer::ok(text)).await;
        assert!(
            matches!(error, PullError::InvalidDocument { .. }),
            "{error}"
        );
    }
    let huge = vec![b' '; 4 * 1024 * 1024 + 1];
    for answer in [Answer::ok(huge.clone()), Answer::ok(huge).streamed()] {
        let error = with_document(answer).await;
        assert!(matches!(error, PullError::TooLarge { .. }), "{error}");
    }
}

#[tokio::test]
async fn a_manifest_that_is_an_index_in_disguise_is_refused() {
    let ours = built();
    let mut manifest = ours.manifest.clone();
    manifest["manifests"] = json!([]);
    let answer = Answer::ok(manifest.to_string()).header("content-type", OCI_INDEX);
    let error = with_document(answer).await;
    assert!(
        matches!(error, PullError::InvalidDocument { .. }),
        "{error}"
    );
}

#[tokio::test]
async fn an_image_larger_than_the_limit_is_not_begun() {
    let server = Server::start(Shelf::of(&built()), |_| None).await;
    let mut workbench = Workbench::new();
    workbench.options.image_bytes_max = 19;
    let error = workbench.pull(&server).await.unwrap_err();
    assert!(matches!(error, PullError::ImageTooLarge { .. }), "{error}");
    assert!(server.seen().iter().all(|seen| !seen.is_blob()));
}

#[tokio::test]
async fn a_place_that_cannot_be_written_is_named() {
    let server = Server::start(Shelf::of(&built()), |_| None).await;
    let mut workbench = Workbench::new();
    std::fs::write(workbench.layout(), "a file where the layout should be").unwrap();
    let error = workbench.pull(&server).await.unwrap_err();
    assert!(matches!(error, PullError::Write { .. }), "{error}");
    assert!(error.to_string().contains("blobs/sha256"), "{error}");
    assert_eq!(server.seen(), []);
}
