//! What is taken for a manifest, and what only looks like one.

use serde_json::{Value, json};

use super::*;

const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

fn part() -> Part {
    Part::Manifest {
        image: "debian".to_owned(),
    }
}

fn digest(content: &str) -> String {
    Digest::of(content.as_bytes()).to_string()
}

fn manifest() -> Value {
    json!({
        "schemaVersion": 2,
        "config": {"mediaType": CONFIG, "digest": digest("config"), "size": 6},
        "layers": [{"mediaType": LAYER, "digest": digest("layer"), "size": 5}],
    })
}

fn entry(os: &str, architecture: &str, variant: Option<&str>) -> Value {
    let name = format!("{os}/{architecture}/{variant:?}");
    json!({
        "mediaType": OCI_MANIFEST,
        "digest": digest(&name),
        "size": 100,
        "platform": {"os": os, "architecture": architecture, "variant": variant},
    })
}

fn parse(content_type: Option<&str>, document: &Value) -> Result<Document, PullError> {
    Document::parse(&part(), content_type, document.to_string().as_bytes())
}

fn parse_manifest(document: &Value) -> Result<Manifest, PullError> {
    match parse(None, document)? {
        Document::Manifest(manifest) => Ok(manifest),
        Document::Index(entries) => panic!("an index: {entries:?}"),
    }
}

fn chosen(entries: &[Value], platform: &str) -> Result<Digest, PullError> {
    let index = json!({"manifests": entries});
    match parse(None, &index)? {
        Document::Index(entries) => {
            choose(&part(), &entries, &Platform::linux(platform)).map(|chosen| chosen.digest)
        }
        Document::Manifest(manifest) => panic!("a manifest: {manifest:?}"),
    }
}

#[test]
fn a_manifest_is_read_with_its_sizes() {
    let manifest = parse_manifest(&manifest()).unwrap();
    assert_eq!(manifest.media_type, OCI_MANIFEST);
    assert_eq!(manifest.configuration.digest, Digest::of(b"config"));
    assert_eq!(manifest.layers.len(), 1);
    assert_eq!(manifest.size(), 11);
}

#[test]
fn what_a_document_is_must_be_said_the_same_everywhere() {
    let mut document = manifest();
    document["mediaType"] = DOCKER_MANIFEST.into();
    assert!(parse(Some(DOCKER_MANIFEST), &document).is_ok());
    assert!(parse(Some("application/json"), &document).is_ok());
    assert!(
        parse(
            Some(&format!("{DOCKER_MANIFEST}; charset=utf-8")),
            &document
        )
        .is_ok()
    );
    for wrong in [OCI_MANIFEST, OCI_INDEX] {
        let error = parse(Some(wrong), &document).unwrap_err();
        assert!(
            matches!(error, PullError::InvalidDocument { .. }),
            "{error}"
        );
    }
}

#[test]
fn a_document_that_is_both_manifest_and_index_is_refused() {
    let mut both = manifest();
    both["manifests"] = json!([entry("linux", "amd64", None)]);
    for content_type in [None, Some(OCI_INDEX), Some(OCI_MANIFEST)] {
        let error = parse(content_type, &both).unwrap_err();
        assert!(
            matches!(error, PullError::InvalidDocument { .. }),
            "{error}"
        );
    }
}

#[test]
fn what_is_no_image_that_can_run_is_named() {
    let mut chart = manifest();
    chart["config"]["mediaType"] = "application/vnd.cncf.helm.config.v1+json".into();
    let mut foreign = manifest();
    foreign["layers"][0]["mediaType"] =
        "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip".into();
    let mut unknown = manifest();
    unknown["mediaType"] = "application/x-unknown\u{1b}[2J".into();
    let old = json!({"schemaVersion": 1, "fsLayers": []});
    for (document, media_type) in [
        (chart, "application/vnd.cncf.helm.config.v1+json"),
        (
            foreign,
            "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip",
        ),
        (unknown, "application/x-unknown[2J"),
        (old, DOCKER_MANIFEST_1),
    ] {
        match parse(None, &document).unwrap_err() {
            PullError::UnsupportedMedia {
                media_type: found, ..
            } => assert_eq!(found, media_type),
            other => panic!("{other}"),
        }
    }
}

#[test]
fn a_digest_that_is_a_path_or_cannot_be_checked_is_refused() {
    for hostile in [
        "sha256:../../../etc/passwd",
        "sha256:",
        "sha512:cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce",
        "../x",
        "",
    ] {
        for place in ["/config/digest", "/layers/0/digest"] {
            let mut document = manifest();
            *document.pointer_mut(place).unwrap() = hostile.into();
            let error = parse(None, &document).unwrap_err();
            assert!(matches!(error, PullError::InvalidDigest { .. }), "{error}");
        }
    }
}

#[test]
fn a_layer_that_an_image_has_twice_comes_once() {
    let mut document = manifest();
    let layer = document["layers"][0].clone();
    document["layers"] = json!([layer, layer]);
    let manifest = parse_manifest(&document).unwrap();
    let diff_ids = [Digest::of(b"unpacked"), Digest::of(b"unpacked")];
    let wanted = manifest.wanted(&part(), &diff_ids, |_| false).unwrap();
    assert_eq!(wanted, [&manifest.layers[0]]);
    assert_eq!(manifest.size(), 11);
    document["layers"][1]["size"] = 6.into();
    let error = parse(None, &document).unwrap_err();
    assert!(error.to_string().contains("two sizes"), "{error}");
}

#[test]
fn counts_and_sizes_have_limits() {
    let mut many = manifest();
    many["layers"] = vec![many["layers"][0].clone(); LAYERS_MAX + 1].into();
    let error = parse(None, &many).unwrap_err();
    assert!(error.to_string().contains("too many layers"), "{error}");
    let mut large = manifest();
    large["config"]["size"] = (DOCUMENT_BYTES_MAX + 1).into();
    let error = parse(None, &large).unwrap_err();
    assert!(matches!(error, PullError::TooLarge { .. }), "{error}");
    let mut huge = manifest();
    huge["layers"] = json!([
        {"mediaType": LAYER, "digest": digest("a"), "size": u64::MAX},
        {"mediaType": LAYER, "digest": digest("b"), "size": u64::MAX},
    ]);
    assert_eq!(parse_manifest(&huge).unwrap().size(), u64::MAX);
    let mut negative = manifest();
    negative["layers"][0]["size"] = (-1).into();
    assert!(parse(None, &negative).is_err());
}

#[test]
fn hostile_json_ends_in_an_error() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep_inside = format!(r#"{{"config":{deep}}}"#);
    for text in [
        "",
        "null",
        "[]",
        "{}",
        "\u{0}",
        "{\"manifests\":{}}",
        &deep,
        &deep_inside,
    ] {
        let error = Document::parse(&part(), None, text.as_bytes()).unwrap_err();
        assert!(
            matches!(error, PullError::InvalidDocument { .. }),
            "{error}"
        );
    }
}

#[test]
fn the_entry_for_the_platform_is_chosen() {
    let entries = [
        entry("windows", "amd64", None),
        entry("unknown", "unknown", None),
        entry("linux", "arm64", Some("v8")),
        entry("linux", "amd64", Some("v3")),
        entry("linux", "amd64", None),
    ];
    let name = |entry: &Value| Digest::parse(entry["digest"].as_str().unwrap()).unwrap();
    assert_eq!(chosen(&entries, "amd64").unwrap(), name(&entries[4]));
    assert_eq!(chosen(&entries, "arm64").unwrap(), name(&entries[2]));
    assert_eq!(chosen(&entries[..4], "amd64").unwrap(), name(&entries[3]));
}

#[test]
fn what_is_there_instead_is_listed() {
    let entries = [
        entry("linux", "arm", Some("v7")),
        entry("windows", "amd64", None),
        entry("unknown", "unknown", None),
    ];
    let error = chosen(&entries, "amd64").unwrap_err();
    assert_eq!(
        error.to_string(),
        "the image is not there for linux/amd64, only for linux/arm/v7, windows/amd64"
    );
    assert!(matches!(
        chosen(&[], "amd64").unwrap_err(),
        PullError::NoPlatform { .. }
    ));
}

#[test]
fn an_index_of_one_without_platform_means_that_one() {
    let mut only = entry("", "", None);
    only.as_object_mut().unwrap().remove("platform");
    assert!(chosen(std::slice::from_ref(&only), "amd64").is_ok());
    assert!(chosen(&[only.clone(), only], "amd64").is_err());
}

#[test]
fn an_entry_that_is_no_manifest_is_not_followed() {
    let mut nested = entry("linux", "amd64", None);
    nested["mediaType"] = OCI_INDEX.into();
    let error = chosen(&[nested], "amd64").unwrap_err();
    assert!(
        matches!(error, PullError::UnsupportedMedia { .. }),
        "{error}"
    );
}

#[test]
fn a_layer_that_is_there_by_its_unpacked_content_is_not_wanted() {
    let mut document = manifest();
    let mut upper = document["layers"][0].clone();
    upper["digest"] = digest("upper").into();
    document["layers"].as_array_mut().unwrap().push(upper);
    let manifest = parse_manifest(&document).unwrap();
    let diff_ids = [Digest::of(b"unpacked"), Digest::of(b"unpacked upper")];
    let wanted = manifest.wanted(&part(), &diff_ids, |diff_id| *diff_id == diff_ids[0]);
    assert_eq!(wanted.unwrap(), [&manifest.layers[1]]);
    let error = manifest
        .wanted(&part(), &diff_ids[1..], |_| true)
        .unwrap_err();
    assert!(error.to_string().contains("another number"), "{error}");
}

#[test]
fn a_configuration_for_another_platform_is_refused() {
    let read = |text: &str| {
        let text = text.replace("ROOT", r#""rootfs":{"diff_ids":[]}"#);
        read_configuration(&part(), text.as_bytes(), &Platform::linux("amd64"))
    };
    assert!(read(r#"{"os":"linux","architecture":"amd64",ROOT}"#).is_ok());
    for text in [
        r#"{"os":"linux","architecture":"arm64",ROOT}"#,
        r#"{"os":"windows","architecture":"amd64",ROOT}"#,
        "{ROOT}",
    ] {
        let error = read(text).unwrap_err();
        assert!(matches!(error, PullError::NoPlatform { .. }), "{error}");
    }
    assert!(read("[").is_err());
    assert!(read("{}").is_err());
}

#[test]
fn a_configuration_names_its_layers_in_a_way_that_can_be_checked() {
    let read = |diff_id: &str| {
        let root = json!({"diff_ids": [diff_id]});
        let text = json!({"os": "linux", "architecture": "amd64", "rootfs": root}).to_string();
        read_configuration(&part(), text.as_bytes(), &Platform::linux("amd64"))
    };
    assert_eq!(read(&digest("a")).unwrap(), [Digest::of(b"a")]);
    let error = read("sha256:../../x").unwrap_err();
    assert!(matches!(error, PullError::InvalidDigest { .. }), "{error}");
}
