//! `native` sandboxes whose files are an image's.

use std::{fs, os::unix::fs::symlink, path::Path, process::Command};

use zareba_image::ImageStore;
use zareba_runtime::{Runtime as _, SandboxSpec};

use crate::fixture::{self, output, spec};

/// Programs of the smallest image that there is.
const BUSYBOX: &str = "/bin/busybox";
const PROGRAMS: [&str; 12] = [
    "sh", "cat", "echo", "id", "ls", "mkdir", "rm", "sleep", "stat", "test", "touch", "env",
];

/// A root file system with nothing but busybox.
fn make_root(root: &Path) {
    fs::create_dir_all(root.join("bin")).unwrap();
    fs::copy(BUSYBOX, root.join("bin/busybox")).expect("the package busybox-static");
    for program in PROGRAMS {
        symlink("busybox", root.join("bin").join(program)).unwrap();
    }
    // Not even a list of users.
    fs::create_dir(root.join("etc")).unwrap();
    fs::write(root.join("etc/mark"), "from the image\n").unwrap();
    copy_libraries(root);
}

/// The program that is released needs no libraries; the one that tests build does.
fn copy_libraries(root: &Path) {
    let listed = Command::new("ldd")
        .arg(fixture::program())
        .output()
        .unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    for path in listed
        .split_whitespace()
        .filter(|word| word.starts_with('/'))
    {
        let inside = root.join(path.trim_start_matches('/'));
        fs::create_dir_all(inside.parent().unwrap()).unwrap();
        fs::copy(path, inside).unwrap();
    }
}

fn with_image(name: &str) -> SandboxSpec {
    SandboxSpec {
        image: Some(name.to_owned()),
        ..spec()
    }
}

#[tokio::test]
async fn a_sandbox_has_the_files_of_its_image_and_changes_stay_inside() {
    let fixture = fixture::native();
    let root = tempfile::tempdir().unwrap();
    make_root(root.path());
    let store = ImageStore::open(&fixture.state.path().join("images")).unwrap();
    let image = store
        .import(root.path(), Some("small"), &mut |_| {})
        .unwrap();

    let sandbox = fixture.runtime.create(with_image("small")).await.unwrap();
    assert_eq!(
        output(&*sandbox, "cat /etc/mark; id -u; pwd").await,
        "from the image\n0\n/workspace"
    );
    let seen = output(&*sandbox, "ls /; test -e /usr || echo no machine").await;
    assert!(seen.ends_with("no machine"), "{seen}");
    let change =
        "rm /etc/mark; echo own > /bin/own; cat /bin/own; echo kept > kept; cat /workspace/kept";
    assert_eq!(output(&*sandbox, change).await, "own\nkept");
    // Root in name only.
    let rights = output(&*sandbox, "cat /proc/self/status").await;
    assert!(
        rights.contains("CapEff:\t0000000000000000") || rights.contains("CapEff: 0000000000000000"),
        "{rights}"
    );

    let other = fixture.runtime.create(with_image("small")).await.unwrap();
    assert_eq!(
        output(&*other, "cat /etc/mark; test -e /bin/own || echo fresh").await,
        "from the image\nfresh"
    );
    // An image that is in use stays.
    store.remove("small").unwrap_err();
    sandbox.close().await.unwrap();
    other.close().await.unwrap();
    store.remove("small").unwrap();
    assert!(image.layers.iter().all(|layer| !layer.exists()));
    fs::remove_dir_all(fixture.state.path().join("images")).unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
}

#[tokio::test]
async fn an_image_that_is_not_there_is_named_before_anything_is_started() {
    let fixture = fixture::native();
    let refused = fixture
        .runtime
        .create(with_image("smal"))
        .await
        .err()
        .unwrap();
    assert_eq!(refused.to_string(), "cannot use the image `smal`");
    assert_eq!(refused.class(), zareba_protocol::ErrorClass::NotFound);
}
