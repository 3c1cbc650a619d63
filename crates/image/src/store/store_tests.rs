//! Images in and out of a store: every form, every refusal, and several at once.

use std::{
    fs::File,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

use crate::{
    Digest, DocumentProblem, Image, ImageError, ImageName, ImageStore, LimitExceeded, Limits,
    Progress, Stage, UnpackError,
    fixture::{Layout, Tar, gzip, saved, zstd},
    platform,
};

/// A store, and room for sources beside it.
struct Shelf {
    room: TempDir,
    store: ImageStore,
}

impl Shelf {
    fn new() -> Self {
        let room = tempfile::tempdir().unwrap();
        let store = ImageStore::open(&room.path().join("store")).unwrap();
        Self { room, store }
    }

    fn source(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.room.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    fn import(&self, bytes: &[u8], name: Option<&str>) -> Result<Image, ImageError> {
        let source = self.source("source", bytes);
        self.store.import(&source, name, &mut |_| {})
    }

    /// What is in the store apart from its locks.
    fn files(&self) -> Vec<String> {
        let mut files = Vec::new();
        for directory in ["", "images", "layers", "staging"] {
            let path = self.room.path().join("store").join(directory);
            for entry in std::fs::read_dir(path).unwrap() {
                let entry = entry.unwrap();
                let name = entry.file_name().into_string().unwrap();
                let is_kept =
                    !name.ends_with(".lock") && (!directory.is_empty() || name == "names.json");
                files.extend(is_kept.then(|| format!("{directory}/{name}")));
            }
        }
        files.sort();
        files
    }
}

fn base() -> Vec<u8> {
    Tar::default()
        .file("etc/keep", "base")
        .file("etc/gone", "base")
        .file("dir/old", "base")
        .finish()
}

fn top() -> Vec<u8> {
    Tar::default()
        .file("etc/.wh.gone", "")
        .file("etc/new", "top")
        .file("dir/.wh..wh..opq", "")
        .file("dir/fresh", "top")
        .finish()
}

fn names(image: &Image) -> Vec<String> {
    image.names.iter().map(ToString::to_string).collect()
}

fn read(image: &Image, layer: usize, name: &str) -> String {
    std::fs::read_to_string(image.layers[layer].join(name)).unwrap()
}

#[test]
fn what_docker_saved_is_imported_with_its_names_and_defaults() {
    let shelf = Shelf::new();
    let (base, top) = (base(), top());
    let archive = saved(&[&base, &top], &["tool:1", "tool:2"]);
    for packed in [archive.clone(), gzip(&archive), zstd(&archive)] {
        let image = shelf.import(&packed, None).unwrap();
        assert_eq!(names(&image), ["tool:1", "tool:2"]);
        assert_eq!(read(&image, 0, "etc/new"), "top");
        assert_eq!(read(&image, 1, "etc/gone"), "base");
        assert_eq!(image.layers.len(), 2);
        assert_eq!(image.size_bytes, 4 * 3 + 3 * 2);
        assert_eq!(image.config.env, ["PATH=/bin", "A=b"]);
        assert_eq!(image.config.working_dir.as_deref(), Some("/srv"));
        assert_eq!(image.config.user, None);
        assert_eq!(image.config.cmd, ["sh"]);
        assert_eq!(image.config.labels["maker"], "test");
        assert_eq!(image.created.as_deref(), Some("2024-05-06T07:08:09Z"));
        assert_eq!(shelf.store.list().unwrap(), std::slice::from_ref(&image));
        assert_eq!(shelf.store.find("tool:2").unwrap(), image);
    }
}

#[test]
fn a_layer_that_is_a_link_to_another_is_found() {
    let shelf = Shelf::new();
    let layer = base();
    let config = crate::fixture::configuration(&[&layer], platform::architecture());
    let name = format!("{}.json", Digest::of(config.as_bytes()).hex());
    let (one, two) = ("1".repeat(64), "2".repeat(64));
    let manifest =
        format!(r#"[{{"Config":"{name}","RepoTags":null,"Layers":["{two}/layer.tar"]}}]"#);
    let archive = Tar::default()
        .blob(&format!("{one}/layer.tar"), &layer)
        .file(&name, &config)
        .file("manifest.json", &manifest);
    let linked = |target: &str| {
        let archive = archive.clone().symlink(&format!("{two}/layer.tar"), target);
        shelf.import(&archive.finish(), None)
    };
    for target in ["../missing", "../../../etc/passwd", "layer.tar"] {
        let lacking = linked(target);
        assert!(
            matches!(lacking, Err(ImageError::MissingBlob { .. })),
            "{lacking:?}"
        );
    }
    let image = linked(&format!("../{one}/layer.tar")).unwrap();
    assert_eq!(image.names, []);
    assert_eq!(read(&image, 0, "etc/keep"), "base");
}

#[test]
fn a_layout_is_imported_from_a_directory_and_from_an_archive() {
    let (base, top) = (base(), top());
    let mut layout = Layout::default();
    let pairs = [(&base[..], &gzip(&base)[..]), (&top[..], &zstd(&top)[..])];
    let manifest = layout.manifest(&pairs, platform::architecture());
    layout.list(manifest, "docker.io/library/tool:1");
    let shelf = Shelf::new();
    let directory = shelf.room.path().join("layout");
    layout.write(&directory);
    let mut progress = Vec::new();
    let mut note = |step: Progress| progress.push(step.stage);
    let image = shelf.store.import(&directory, None, &mut note).unwrap();
    assert_eq!(names(&image), ["tool:1"]);
    assert_eq!(read(&image, 1, "dir/old"), "base");
    let unpacked = [Stage::Unpacking, Stage::Unpacking];
    assert_eq!(
        progress,
        [&[Stage::Resolving], &unpacked[..], &[Stage::Finished]].concat()
    );
    let same = shelf.import(&layout.to_tar(), None).unwrap();
    assert_eq!(same, image);
}

#[test]
fn an_index_is_searched_for_this_machine() {
    let (base, top) = (base(), top());
    let mut layout = Layout::default();
    let other = layout.manifest(&[(&top, &top)], "quantum");
    let ours = layout.manifest(&[(&base, &base)], platform::architecture());
    let index = serde_json::json!({"schemaVersion": 2, "manifests": [other.clone(), ours]});
    let index = layout.blob(index.to_string().as_bytes());
    layout.list(index, "tool:1");
    let shelf = Shelf::new();
    let image = shelf.import(&layout.to_tar(), None).unwrap();
    assert_eq!(read(&image, 0, "etc/keep"), "base");

    let mut layout = Layout::default();
    let descriptor = layout.manifest(&[(&top, &top)], "quantum");
    layout.list(descriptor, "tool:1");
    match shelf.import(&layout.to_tar(), None) {
        Err(ImageError::NoPlatform { present, .. }) => assert_eq!(present, ["linux/quantum"]),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_configuration_for_another_machine_is_refused_even_without_an_index() {
    let shelf = Shelf::new();
    let base = base();
    let mut layout = Layout::default();
    let mut descriptor = layout.manifest(&[(&base, &base)], "quantum");
    descriptor["platform"] = serde_json::Value::Null;
    layout.list(descriptor, "tool:1");
    let refused = shelf.import(&layout.to_tar(), None);
    assert!(matches!(refused, Err(ImageError::NoPlatform { .. })));
    assert_eq!(shelf.files(), [""; 0]);
}

#[test]
fn a_bare_root_file_system_is_imported_from_any_form() {
    let shelf = Shelf::new();
    let plain = base();
    let image = shelf.import(&plain, Some("root")).unwrap();
    assert_eq!(names(&image), ["root:latest"]);
    assert_eq!(read(&image, 0, "etc/keep"), "base");
    assert_eq!(
        shelf.import(&gzip(&plain), Some("root")).unwrap().id,
        image.id
    );
    assert_eq!(
        shelf.import(&zstd(&plain), Some("root")).unwrap().id,
        image.id
    );
    let directory = shelf.room.path().join("root");
    std::fs::create_dir_all(directory.join("bin")).unwrap();
    std::fs::write(directory.join("bin/tool"), "tool").unwrap();
    let copied = shelf
        .store
        .import(&directory, Some("copied"), &mut |_| {})
        .unwrap();
    assert_eq!(read(&copied, 0, "bin/tool"), "tool");
    assert!(directory.join("bin/tool").exists());
    // The store is not copied into itself.
    let around = shelf
        .store
        .import(shelf.room.path(), Some("around"), &mut |_| {})
        .unwrap();
    assert!(!around.layers[0].join("store/layers").exists());
}

#[test]
fn what_is_no_image_is_told_so() {
    let shelf = Shelf::new();
    for bytes in [&b""[..], b"text", &[0; 4096], &gzip(b"text")] {
        let refused = shelf.import(bytes, None);
        assert!(
            matches!(refused, Err(ImageError::NotAnImage { .. })),
            "{refused:?}"
        );
    }
    let missing = shelf.store.import(Path::new("/no/such"), None, &mut |_| {});
    assert!(matches!(missing, Err(ImageError::Read { .. })));
    let special = shelf
        .store
        .import(Path::new("/dev/null"), None, &mut |_| {});
    assert!(matches!(special, Err(ImageError::NotAnImage { .. })));
    let name = shelf.import(&base(), Some("../name"));
    assert!(matches!(name, Err(ImageError::BadName(_))));
    assert_eq!(shelf.files(), [""; 0]);
}

#[test]
fn an_archive_with_several_images_asks_for_a_name() {
    let shelf = Shelf::new();
    let (base, top) = (base(), top());
    let mut layout = Layout::default();
    for (name, layer) in [("one:1", &base), ("two:1", &top)] {
        let manifest = layout.manifest(&[(layer, layer)], platform::architecture());
        layout.list(manifest, name);
    }
    match shelf.import(&layout.to_tar(), None) {
        Err(ImageError::SeveralImages { mut names }) => {
            names.sort();
            assert_eq!(names, ["one:1", "two:1"]);
        }
        other => panic!("{other:?}"),
    }
    let image = shelf.import(&layout.to_tar(), Some("two:1")).unwrap();
    assert_eq!(read(&image, 0, "etc/new"), "top");
}

/// Changes a part of a good layout and expects nothing to be kept.
#[track_caller]
fn check_tampered(change: impl FnOnce(&mut Layout), expected: impl FnOnce(&ImageError) -> bool) {
    let shelf = Shelf::new();
    let (base, top) = (base(), top());
    let mut layout = Layout::default();
    let pairs = [(&base[..], &gzip(&base)[..]), (&top[..], &top[..])];
    let manifest = layout.manifest(&pairs, platform::architecture());
    layout.list(manifest, "tool:1");
    change(&mut layout);
    let error = shelf.import(&layout.to_tar(), None).unwrap_err();
    assert!(expected(&error), "{error:?}");
    assert_eq!(shelf.files(), [""; 0]);
}

/// The order in which `Layout::manifest` adds its parts.
const CONFIG: usize = 0;
const LAYER: usize = 2;
const MANIFEST: usize = 3;

#[test]
fn every_digest_is_checked_and_a_wrong_one_leaves_nothing() {
    let is_mismatch = |error: &ImageError| matches!(error, ImageError::DigestMismatch { .. });
    check_tampered(|layout| layout.parts[CONFIG].1.push(b' '), is_mismatch);
    check_tampered(|layout| layout.parts[MANIFEST].1.push(b' '), is_mismatch);
    let same_length = |layout: &mut Layout| {
        let text = Tar::default()
            .file("etc/.wh.gone", "")
            .file("etc/new", "TOP")
            .file("dir/.wh..wh..opq", "")
            .file("dir/fresh", "top");
        layout.parts[LAYER].1 = text.finish();
    };
    check_tampered(same_length, is_mismatch);
    let longer = |layout: &mut Layout| layout.parts[LAYER].1.extend([0; 512]);
    check_tampered(longer, |error| {
        let ImageError::BadDocument { source, .. } = error else {
            return false;
        };
        matches!(source, DocumentProblem::Size { .. })
    });
    let lost = |layout: &mut Layout| drop(layout.parts.remove(LAYER));
    check_tampered(lost, |error| {
        matches!(error, ImageError::MissingBlob { .. })
    });
}

#[test]
fn a_configuration_that_names_other_layers_is_refused() {
    let shelf = Shelf::new();
    let (base, top) = (base(), top());
    // The blob is as the manifest says, and not as the configuration does.
    let mut layout = Layout::default();
    let manifest = layout.manifest(&[(&base, &gzip(&top))], platform::architecture());
    layout.list(manifest, "tool:1");
    let refused = shelf.import(&layout.to_tar(), None);
    assert!(matches!(refused, Err(ImageError::DigestMismatch { .. })));
    assert_eq!(shelf.files(), [""; 0]);
}

#[test]
fn hostile_documents_are_refused_g_5() {
    let shelf = Shelf::new();
    let with_index = |index: &[u8]| {
        let tar = Tar::default()
            .file("oci-layout", "{}")
            .blob("index.json", index);
        let error = shelf.import(&tar.finish(), None).unwrap_err();
        assert!(matches!(error, ImageError::BadDocument { .. }), "{error:?}");
    };
    with_index(&b"[".repeat(100_000));
    with_index(&vec![b' '; 4 * 1024 * 1024 + 1]);
    with_index(b"{}");
    with_index(br#"{"manifests":[]}"#);
    with_index(br#"{"manifests":[],"layers":[]}"#);
    with_index(br#"{"manifests":[{"digest":"sha256:../../../etc/passwd","size":1}]}"#);
    with_index(br#"{"manifests":[{"digest":"md5:00","size":1}]}"#);
    with_index(br#"{"manifests":[{"digest":7,"size":-1}]}"#);
    assert_eq!(shelf.files(), [""; 0]);
}

#[test]
fn an_index_that_contains_itself_by_depth_ends() {
    let shelf = Shelf::new();
    let base = base();
    let mut layout = Layout::default();
    let mut inner = layout.manifest(&[(&base, &base)], platform::architecture());
    for _ in 0..6 {
        let index = serde_json::json!({"manifests": [inner]});
        inner = layout.blob(index.to_string().as_bytes());
    }
    layout.list(inner, "tool:1");
    let refused = shelf.import(&layout.to_tar(), None);
    assert!(matches!(
        refused,
        Err(ImageError::BadDocument {
            source: DocumentProblem::TooDeep,
            ..
        })
    ));
}

#[test]
fn limits_count_for_the_whole_image_and_leave_nothing_g_5() {
    let mut shelf = Shelf::new();
    let (base, top) = (base(), top());
    let archive = saved(&[&base, &top], &["tool:1"]);
    let unpacked_bytes_max = (base.len() + top.len()) as u64 - 1;
    shelf.store = shelf.store.with_limits(Limits {
        unpacked_bytes_max,
        ..Limits::STANDARD
    });
    let refused = shelf.import(&archive, None);
    let expected = LimitExceeded::UnpackedBytes {
        max: unpacked_bytes_max,
    };
    assert!(matches!(refused, Err(ImageError::Limit(limit)) if limit == expected));
    assert_eq!(shelf.files(), [""; 0]);
    shelf.store = shelf.store.with_limits(Limits::STANDARD);
    let layer = Tar::default().finish();
    let many = vec![&layer[..]; 129];
    let refused = shelf.import(&saved(&many, &[]), None);
    assert!(matches!(
        refused,
        Err(ImageError::Limit(LimitExceeded::Layers))
    ));
    shelf.store = shelf.store.with_limits(Limits {
        blob_bytes_max: 100,
        ..Limits::STANDARD
    });
    let refused = shelf.import(&base, None);
    assert!(matches!(
        refused,
        Err(ImageError::Limit(LimitExceeded::BlobBytes { max: 100 }))
    ));
    assert_eq!(shelf.files(), [""; 0]);
}

#[test]
fn a_refused_entry_in_the_last_layer_leaves_nothing_fa_9() {
    let shelf = Shelf::new();
    let (base, hostile) = (base(), Tar::default().file("../x", "").finish());
    let refused = shelf.import(&saved(&[&base, &hostile], &["tool:1"]), None);
    assert!(matches!(
        refused,
        Err(ImageError::Unpack {
            source: UnpackError::Refused { .. },
            ..
        })
    ));
    assert_eq!(shelf.files(), [""; 0]);
}

#[test]
fn layers_are_shared_and_go_with_their_last_image() {
    let shelf = Shelf::new();
    let (base, top) = (base(), top());
    let below = shelf.import(&saved(&[&base], &["below:1"]), None).unwrap();
    let source = shelf.source("other", &saved(&[&base, &top], &["above:1"]));
    let mut shared = Vec::new();
    let mut note = |step: Progress| {
        if step.stage == Stage::Shared {
            shared.extend(step.digest);
        }
    };
    let above = shelf.store.import(&source, None, &mut note).unwrap();
    assert_eq!(shared, [Digest::of(&base)]);
    assert_eq!(above.layers[1], below.layers[0]);
    assert_eq!(shelf.store.has_layer(&Digest::of(&base)).ok(), Some(true));

    let removed = shelf.store.remove("below:1").unwrap();
    assert_eq!(removed.image, Some(below.id));
    assert!(above.layers[1].join("etc/keep").exists());
    shelf.store.remove("above:1").unwrap();
    assert_eq!(shelf.files(), ["/names.json"]);
}

#[test]
fn the_same_layer_twice_counts_once_for_the_overlay() {
    let shelf = Shelf::new();
    let (base, top) = (base(), top());
    let image = shelf
        .import(&saved(&[&base, &top, &base], &[]), None)
        .unwrap();
    assert_eq!(image.layers.len(), 2);
    assert_eq!(read(&image, 0, "etc/gone"), "base");
}

#[test]
fn layers_below_one_that_hides_them_all_are_left_out() {
    let shelf = Shelf::new();
    let base = base();
    let fresh = Tar::default()
        .file(".wh..wh..opq", "")
        .file("only", "x")
        .finish();
    let image = shelf.import(&saved(&[&base, &fresh], &[]), None).unwrap();
    assert_eq!(image.layers.len(), 1);
    assert_eq!(read(&image, 0, "only"), "x");
}

#[test]
fn an_image_goes_with_its_last_name_and_an_id_takes_all() {
    let shelf = Shelf::new();
    let base = base();
    let archive = saved(&[&base], &["tool:1", "tool:2"]);
    let image = shelf.import(&archive, None).unwrap();
    let removed = shelf.store.remove("tool:1").unwrap();
    assert_eq!((removed.names.len(), removed.image), (1, None));
    assert_eq!(
        names(&shelf.store.find(image.id.hex()).unwrap()),
        ["tool:2"]
    );
    shelf.import(&archive, None).unwrap();
    let removed = shelf.store.remove(&image.id.hex()[..8]).unwrap();
    assert_eq!((removed.names.len(), removed.image), (2, Some(image.id)));
    assert_eq!(shelf.store.list().unwrap(), []);
}

#[test]
fn a_name_moves_to_a_new_image_and_the_old_one_stays() {
    let shelf = Shelf::new();
    let old = shelf.import(&base(), Some("tool")).unwrap();
    let new = shelf.import(&top(), Some("tool")).unwrap();
    assert_eq!(shelf.store.find("tool").unwrap(), new);
    let old = shelf.store.find(&old.id.to_string()).unwrap();
    assert_eq!(old.names, [] as [ImageName; 0]);
}

#[test]
fn an_image_in_use_stays_with_its_name() {
    let shelf = Shelf::new();
    let image = shelf.import(&base(), Some("tool")).unwrap();
    let lease = image.hold().unwrap();
    let second = image.hold().unwrap();
    drop(second);
    let refused = shelf.store.remove("tool");
    assert!(matches!(refused, Err(ImageError::InUse { .. })));
    assert_eq!(shelf.store.find("tool").unwrap(), image);
    drop(lease);
    shelf.store.remove("tool").unwrap();
    let gone = image.hold().unwrap_err();
    assert_eq!(gone.kind(), std::io::ErrorKind::NotFound);
}

#[test]
fn an_unknown_name_offers_near_ones_and_a_short_id_may_be_ambiguous() {
    let shelf = Shelf::new();
    let mut first_letters = std::collections::BTreeMap::<char, usize>::new();
    // With seventeen images two ids begin alike.
    for number in 0..17 {
        let layer = Tar::default().file("number", &number.to_string()).finish();
        let image = shelf
            .import(&layer, Some(&format!("tool:{number}")))
            .unwrap();
        let first = image.id.hex().chars().next().unwrap();
        *first_letters.entry(first).or_default() += 1;
    }
    match shelf.store.find("tol:3") {
        Err(ImageError::Unknown { nearest, .. }) => assert!(nearest.contains(&"tool:3".to_owned())),
        other => panic!("{other:?}"),
    }
    let (letter, count) = first_letters
        .into_iter()
        .max_by_key(|(_, count)| *count)
        .unwrap();
    match shelf.store.find(&letter.to_string()) {
        Err(ImageError::Ambiguous { candidates, .. }) => assert_eq!(candidates.len(), count),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_a_killed_import_left_is_swept() {
    let shelf = Shelf::new();
    shelf.import(&base(), Some("tool")).unwrap();
    let clean = shelf.files();
    let root = shelf.room.path().join("store");
    let leave = || {
        std::fs::create_dir_all(root.join("staging/work-x/layer-0/tree/etc")).unwrap();
        std::fs::write(root.join("staging/work-x/archive"), "half").unwrap();
        let unused = root.join("layers").join("0".repeat(64));
        std::fs::create_dir_all(unused.join("tree/etc")).unwrap();
    };
    leave();
    ImageStore::open(&root).unwrap();
    assert_eq!(shelf.files(), clean);
    leave();
    shelf.import(&base(), Some("tool")).unwrap();
    assert_eq!(shelf.files(), clean);
    // Not while somebody may still be at work on it.
    let scratch = shelf.store.scratch().unwrap();
    leave();
    ImageStore::open(&root).unwrap();
    assert!(root.join("staging/work-x").exists() && scratch.path().exists());
    drop(scratch);
    ImageStore::open(&root).unwrap();
    assert_eq!(shelf.files(), clean);
}

#[test]
fn several_imports_and_removals_at_once_leave_a_whole_store() {
    let shelf = Shelf::new();
    let (base, top) = (base(), top());
    let source = shelf.source("both", &saved(&[&base, &top], &["tool:1"]));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let store = ImageStore::open(&shelf.room.path().join("store")).unwrap();
                for _ in 0..4 {
                    let image = store.import(&source, None, &mut |_| {}).unwrap();
                    match image.hold() {
                        Ok(lease) => {
                            assert_eq!(read(&image, 0, "etc/new"), "top");
                            assert_eq!(read(&image, 1, "etc/keep"), "base");
                            drop(lease);
                        }
                        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::NotFound),
                    }
                    match store.remove("tool:1") {
                        Ok(_) | Err(ImageError::Unknown { .. } | ImageError::InUse { .. }) => {}
                        Err(error) => panic!("{error:?}"),
                    }
                }
            });
        }
    });
    let image = shelf.store.import(&source, None, &mut |_| {}).unwrap();
    assert_eq!(shelf.store.list().unwrap(), [image]);
    assert_eq!(shelf.files().len(), 4);
}

#[test]
fn a_store_is_for_its_owner_alone() {
    let room = tempfile::tempdir().unwrap();
    let root = room.path().join("store");
    std::fs::create_dir(&root).unwrap();
    std::fs::set_permissions(&root, PermissionsExt::from_mode(0o777)).unwrap();
    ImageStore::open(&root).unwrap();
    let mode = root.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o700);
    let file = room.path().join("file");
    File::create(&file).unwrap();
    assert!(ImageStore::open(&file).is_err());
    let link = room.path().join("link");
    std::os::unix::fs::symlink(&root, &link).unwrap();
    let linked = ImageStore::open(&link);
    assert!(matches!(linked, Err(ImageError::BadStore { .. })));
}

#[test]
fn a_damaged_record_is_named_and_keeps_its_layers() {
    let shelf = Shelf::new();
    let image = shelf.import(&base(), Some("tool")).unwrap();
    let record = super::directory::record(image.store(), &image.id);
    std::fs::write(&record, r#"{"layers":["sha256:../.."]}"#).unwrap();
    let store = ImageStore::open(image.store()).unwrap();
    match store.list() {
        Err(ImageError::BadRecord { path, .. }) => assert_eq!(path, record),
        other => panic!("{other:?}"),
    }
    assert!(image.layers[0].exists());
}

/// Mounts as sandboxes do, in a user namespace with `userxattr`, and prints what is there. It
/// works the same for root and for everybody else.
#[test]
fn an_overlay_of_the_layers_shows_what_the_image_means() {
    let shelf = Shelf::new();
    let (base, top) = (base(), top());
    let image = shelf
        .import(&saved(&[&base, &top], &["tool:1"]), None)
        .unwrap();
    let at = |name: &str| shelf.room.path().join(name);
    for name in ["upper", "work", "mounted"] {
        std::fs::create_dir(at(name)).unwrap();
    }
    let layers: Vec<&str> = image
        .layers
        .iter()
        .filter_map(|path| path.to_str())
        .collect();
    let options = format!(
        "lowerdir={},upperdir={},workdir={},userxattr",
        layers.join(":"),
        at("upper").display(),
        at("work").display()
    );
    let script =
        r#"mount -t overlay overlay -o "$1" "$2" && cd "$2" && find . -type f && cat etc/new"#;
    let output = Command::new("unshare")
        .args([
            "--user",
            "--map-root-user",
            "--mount",
            "sh",
            "-c",
            script,
            "sh",
            &options,
        ])
        .arg(at("mounted"))
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        ["./dir/fresh", "./etc/keep", "./etc/new", "top"],
        "{error}"
    );
    // overlayfs leaves a directory without any rights, which would not be deleted otherwise.
    let work = at("work/work");
    if work.exists() {
        std::fs::set_permissions(work, PermissionsExt::from_mode(0o700)).unwrap();
    }
}
