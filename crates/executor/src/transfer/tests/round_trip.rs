//! What is packed and unpacked again is the same tree, whatever its names.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
};

use proptest::{collection::vec, prelude::*};
use zareba_wire::{ArchiveFormat, UploadTreatment::Unpack};

use super::support::*;

/// One thing of a tree: the directories it is in, its name, and what it is.
#[derive(Clone, Debug)]
struct Planned {
    directories: Vec<String>,
    name: String,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    EmptyDirectory,
    File(Vec<u8>, u32),
    /// A link to the thing's own directory's sibling file, made only in tar trees.
    Link,
}

/// Names with spaces, dots, quotes, newlines and all of Unicode.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{1,3}",
        "[ .'\"\\\\\n*?-]{1,8}",
        "\\PC{1,20}",
        Just("long".repeat(30)),
    ]
    .prop_map(|name| name.replace(['/', '\0'], "_"))
    .prop_filter("a name", |name| !matches!(name.as_str(), "" | "." | ".."))
}

fn planned() -> impl Strategy<Value = Planned> {
    let kind = prop_oneof![
        Just(Kind::EmptyDirectory),
        (vec(any::<u8>(), 0..2_000), 0_u32..0o100)
            .prop_map(|(content, bits)| { Kind::File(content, 0o600 | bits) }),
        Just(Kind::Link),
    ];
    (vec(name(), 0..4), name(), kind).prop_map(|(directories, name, kind)| Planned {
        directories,
        name,
        kind,
    })
}

/// Makes what can be made; names that collide are left out.
fn build(root: &Path, plan: &[Planned], format: ArchiveFormat) {
    for thing in plan {
        let directory = thing
            .directories
            .iter()
            .fold(root.to_path_buf(), |path, name| path.join(name));
        let path = directory.join(&thing.name);
        let mut above = path.ancestors().skip(1).take_while(|above| *above != root);
        let is_blocked =
            above.any(|above| fs::symlink_metadata(above).is_ok_and(|there| !there.is_dir()));
        if is_blocked || fs::symlink_metadata(&path).is_ok() {
            continue;
        }
        fs::create_dir_all(&directory).unwrap();
        match &thing.kind {
            Kind::EmptyDirectory => fs::create_dir(&path).unwrap(),
            Kind::File(content, mode) => {
                fs::write(&path, content).unwrap();
                fs::set_permissions(&path, fs::Permissions::from_mode(*mode)).unwrap();
            }
            Kind::Link if format == ArchiveFormat::Tar => symlink("sibling", &path).unwrap(),
            Kind::Link => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn packing_and_unpacking_gives_the_same_tree(plan in vec(planned(), 0..20)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for (format, name) in [(ArchiveFormat::Zip, "x.zip"), (ArchiveFormat::Tar, "x.tar")] {
            let root = tempfile::tempdir().unwrap();
            let (from, to) = (root.path().join("from"), root.path().join("to"));
            fs::create_dir(&from).unwrap();
            build(&from, &plan, format);
            runtime.block_on(async {
                let archive = download(&from, format).await.unwrap();
                upload(&to, name, Unpack, &archive).await.unwrap();
            });
            prop_assert_eq!(snapshot(&to), snapshot(&from));
        }
    }
}
