//! Uploads of plain files and of well-meant archives.

use std::{
    fs, io,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::Path,
    sync::Arc,
    task::Poll,
};

use bytes::Bytes;
use tokio::sync::Notify;
use zareba_wire::{ArchiveFormat, Download, TransferError, UploadTreatment};
use zip::write::SimpleFileOptions;

use super::support::*;
use crate::{Owner, transfer::Transfers};

use UploadTreatment::{Store, Unpack};

#[tokio::test]
async fn a_file_is_stored_with_a_plain_mode_and_missing_directories_are_made() {
    let root = tempfile::tempdir().unwrap();
    let destination = root.path().join("a/b");
    upload(&destination, "x.txt", Store, b"hello")
        .await
        .unwrap();
    assert_eq!(
        snapshot(root.path()),
        tree([
            ("a", Node::Directory),
            ("a/b", Node::Directory),
            ("a/b/x.txt", file(b"hello"))
        ])
    );
    let mode = fs::metadata(&destination).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode, 0o755);
}

#[tokio::test]
async fn a_relative_destination_is_refused() {
    let error = upload(Path::new("tmp"), "x", Store, b"").await.unwrap_err();
    assert!(matches!(&error, TransferError::Invalid { .. }), "{error:?}");
    assert_eq!(error.to_string(), "Destination must be an absolute path");
}

#[tokio::test]
async fn only_the_last_component_of_the_name_is_used() {
    let root = tempfile::tempdir().unwrap();
    let destination = root.path().join("in");
    upload(&destination, "../../etc/x.txt", Store, b"1")
        .await
        .unwrap();
    upload(&destination, "/abs/y.txt", Store, b"2")
        .await
        .unwrap();
    assert_eq!(
        snapshot(root.path()),
        tree([
            ("in", Node::Directory),
            ("in/x.txt", file(b"1")),
            ("in/y.txt", file(b"2"))
        ])
    );
}

#[tokio::test]
async fn names_that_name_no_file_are_refused() {
    let root = tempfile::tempdir().unwrap();
    for (name, shown) in [
        ("", ""),
        ("a/", "a/"),
        ("..", ".."),
        ("a/..", "a/.."),
        (".", "."),
        ("a\0b", "a\\0b"),
    ] {
        let error = upload(&root.path().join("new"), name, Store, b"x")
            .await
            .unwrap_err();
        assert!(matches!(&error, TransferError::Invalid { .. }), "{error:?}");
        assert_eq!(error.to_string(), format!("Invalid file name: '{shown}'"));
    }
    assert_eq!(snapshot(root.path()), Snapshot::new());
}

#[tokio::test]
async fn a_destination_that_is_a_file_reads_as_python_says_it() {
    let root = tempfile::tempdir().unwrap();
    let destination = root.path().join("f");
    fs::write(&destination, "old").unwrap();
    let error = upload(&destination, "x.txt", Store, b"new")
        .await
        .unwrap_err();
    assert!(matches!(&error, TransferError::Io { .. }), "{error:?}");
    let text = format!(
        "[Errno 20] Not a directory: '{}/x.txt'",
        destination.display()
    );
    assert_eq!(error.to_string(), text);
    let below = destination.join("deeper");
    let text = format!("[Errno 20] Not a directory: '{}'", destination.display());
    assert_eq!(
        words(upload(&below, "x.txt", Store, b"new").await),
        Err(text)
    );
    assert_eq!(snapshot(root.path()), tree([("f", file(b"old"))]));
}

#[tokio::test]
async fn a_directory_of_that_name_is_not_replaced() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("x")).unwrap();
    let text = format!("[Errno 21] Is a directory: '{}/x'", root.path().display());
    assert_eq!(
        words(upload(root.path(), "x", Store, b"new").await),
        Err(text)
    );
    assert_eq!(snapshot(root.path()), tree([("x", Node::Directory)]));
}

#[tokio::test]
async fn a_replaced_file_keeps_its_mode_without_setuid() {
    let root = tempfile::tempdir().unwrap();
    let target = root.path().join("run.sh");
    fs::write(&target, "old").unwrap();
    fs::set_permissions(&target, fs::Permissions::from_mode(0o4750)).unwrap();
    upload(root.path(), "run.sh", Store, b"new").await.unwrap();
    let node = Node::File {
        content: b"new".to_vec(),
        mode: 0o750,
    };
    assert_eq!(snapshot(root.path()), tree([("run.sh", node)]));
}

#[tokio::test]
async fn a_link_of_that_name_is_replaced_and_its_target_untouched() {
    let root = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "old").unwrap();
    symlink(outside.path().join("secret"), root.path().join("x")).unwrap();
    upload(root.path(), "x", Store, b"new").await.unwrap();
    assert_eq!(snapshot(root.path()), tree([("x", file(b"new"))]));
    assert_eq!(snapshot(outside.path()), tree([("secret", file(b"old"))]));
}

#[tokio::test]
async fn a_file_can_be_uploaded_onto_itself_while_it_is_read() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("big");
    let content: Vec<u8> = (0..3_000_000_u32)
        .map(|number| (number % 251) as u8)
        .collect();
    fs::write(&path, &content).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    // Each piece is read when the upload asks for it, not before.
    let mut reader = fs::File::open(&path).unwrap();
    let stream = body_from(move |_| {
        let mut piece = vec![0; 100_000];
        match io::Read::read(&mut reader, &mut piece).unwrap() {
            0 => Poll::Ready(None),
            read => Poll::Ready(Some(Ok(Bytes::copy_from_slice(&piece[..read])))),
        }
    });
    Transfers::new(Owner::Ourselves)
        .upload(request(root.path(), "big", Store), stream)
        .await
        .unwrap();
    assert_eq!(snapshot(root.path()), tree([("big", file(&content))]));
}

#[tokio::test]
async fn new_files_and_directories_get_the_configured_owner() {
    let root = tempfile::tempdir().unwrap();
    let me = (
        rustix::process::getuid().as_raw(),
        rustix::process::getgid().as_raw(),
    );
    // Only root can give files away; anyone can give them to themselves.
    let owner = if me.0 == 0 { (12_345, 23_456) } else { me };
    let transfers = Transfers::new(Owner::User {
        uid: owner.0,
        gid: owner.1,
    });
    let archive = zip_with(|archive| {
        archive
            .start_file("d/f", SimpleFileOptions::default())
            .unwrap();
        archive
            .add_symlink("l", "d/f", SimpleFileOptions::default())
            .unwrap();
    });
    let destination = root.path().join("new/deep");
    let plain = body([Ok(Bytes::from_static(b"x"))]);
    transfers
        .upload(request(&destination, "x", Store), plain)
        .await
        .unwrap();
    let zipped = body([Ok(archive.into())]);
    transfers
        .upload(request(&destination, "a.zip", Store), zipped)
        .await
        .unwrap();
    for path in [
        "new",
        "new/deep",
        "new/deep/x",
        "new/deep/d",
        "new/deep/d/f",
        "new/deep/l",
    ] {
        let metadata = fs::symlink_metadata(root.path().join(path)).unwrap();
        assert_eq!((metadata.uid(), metadata.gid()), owner, "{path}");
    }
}

#[tokio::test]
async fn a_body_that_breaks_off_leaves_nothing_behind() {
    let root = tempfile::tempdir().unwrap();
    let pieces = [
        Ok(Bytes::from(vec![1; 2 << 20])),
        Err(io::ErrorKind::ConnectionReset.into()),
    ];
    let request = request(&root.path().join("a/b"), "x", Store);
    let error = Transfers::new(Owner::Ourselves)
        .upload(request, body(pieces))
        .await
        .unwrap_err();
    assert!(matches!(&error, TransferError::Io { .. }), "{error:?}");
    assert_eq!(error.to_string(), "the upload broke off");
    assert_eq!(snapshot(root.path()), Snapshot::new());
}

#[tokio::test]
async fn an_upload_that_is_cancelled_leaves_nothing_behind() {
    for name in ["x.txt", "x.zip"] {
        let root = tempfile::tempdir().unwrap();
        let asked_again = Arc::new(Notify::new());
        let (stalled, mut first) = (Arc::clone(&asked_again), true);
        let stream = body_from(move |_| {
            if std::mem::take(&mut first) {
                return Poll::Ready(Some(Ok(Bytes::from(vec![7; 2 << 20]))));
            }
            stalled.notify_one();
            Poll::Pending
        });
        let transfers = Transfers::new(Owner::Ourselves);
        let destination = root.path().join("a/b");
        tokio::select! {
            result = transfers.upload(request(&destination, name, Store), stream) => {
                panic!("the body never ends, but: {result:?}");
            }
            () = asked_again.notified() => {}
        }
        assert_eq!(snapshot(root.path()), Snapshot::new(), "{name}");
    }
}

#[tokio::test]
async fn a_recursive_upload_must_be_an_archive() {
    let root = tempfile::tempdir().unwrap();
    let error = upload(&root.path().join("new"), "x.tar.gz", Unpack, b"")
        .await
        .unwrap_err();
    assert!(matches!(&error, TransferError::Invalid { .. }), "{error:?}");
    assert_eq!(error.to_string(), "Recursive uploads must be zip files");
    assert_eq!(snapshot(root.path()), Snapshot::new());
}

#[tokio::test]
async fn a_zip_is_unpacked_whether_or_not_it_is_recursive() {
    for treatment in [Store, Unpack] {
        let root = tempfile::tempdir().unwrap();
        let archive = zip_of(&[("top/a.txt", b"A"), ("b.txt", b"B")]);
        upload(root.path(), "x.zip", treatment, &archive)
            .await
            .unwrap();
        assert_eq!(
            snapshot(root.path()),
            tree([
                ("top", Node::Directory),
                ("top/a.txt", file(b"A")),
                ("b.txt", file(b"B"))
            ])
        );
    }
}

#[tokio::test]
async fn a_tar_is_unpacked_when_recursive_and_stored_otherwise() {
    let root = tempfile::tempdir().unwrap();
    let archive = tar_of(&[tar_entry(tar::EntryType::Regular, b"d/a", b"", b"A")]);
    upload(root.path(), "x.tar", Store, &archive).await.unwrap();
    assert_eq!(snapshot(root.path()), tree([("x.tar", file(&archive))]));
    let root = tempfile::tempdir().unwrap();
    upload(root.path(), "x.tar", Unpack, &archive)
        .await
        .unwrap();
    assert_eq!(
        snapshot(root.path()),
        tree([("d", Node::Directory), ("d/a", file(b"A"))])
    );
}

#[tokio::test]
async fn an_archive_joins_directories_and_replaces_files_and_links() {
    let root = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("d/e")).unwrap();
    fs::write(root.path().join("d/old"), "kept").unwrap();
    fs::set_permissions(root.path().join("d/old"), fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(root.path().join("d/e/f"), "before").unwrap();
    fs::write(outside.path().join("t"), "outside").unwrap();
    fs::set_permissions(outside.path().join("t"), fs::Permissions::from_mode(0o644)).unwrap();
    symlink(outside.path().join("t"), root.path().join("d/l")).unwrap();
    let archive = zip_of(&[("d/e/f", b"after"), ("d/l", b"plain"), ("d/n/x", b"new")]);
    upload(root.path(), "x.zip", Unpack, &archive)
        .await
        .unwrap();
    assert_eq!(
        snapshot(root.path()),
        tree([
            ("d", Node::Directory),
            ("d/e", Node::Directory),
            ("d/e/f", file(b"after")),
            ("d/l", file(b"plain")),
            ("d/n", Node::Directory),
            ("d/n/x", file(b"new")),
            ("d/old", file(b"kept")),
        ])
    );
    assert_eq!(snapshot(outside.path()), tree([("t", file(b"outside"))]));
}

#[tokio::test]
async fn a_conflict_of_file_and_directory_changes_nothing() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("d"), "a file").unwrap();
    fs::create_dir(root.path().join("f")).unwrap();
    let before = snapshot(root.path());
    let shown = root.path().display();
    let archive = zip_of(&[("a", b"x"), ("d/x", b"x")]);
    let text = format!("[Errno 20] Not a directory: '{shown}/d'");
    assert_eq!(
        words(upload(root.path(), "x.zip", Unpack, &archive).await),
        Err(text)
    );
    let archive = zip_of(&[("a", b"x"), ("f", b"x")]);
    let text = format!("[Errno 21] Is a directory: '{shown}/f'");
    assert_eq!(
        words(upload(root.path(), "x.zip", Unpack, &archive).await),
        Err(text)
    );
    assert_eq!(snapshot(root.path()), before);
}

#[tokio::test]
async fn modes_are_kept_but_setuid_is_not() {
    let root = tempfile::tempdir().unwrap();
    let options = SimpleFileOptions::default();
    let archive = zip_with(|archive| {
        archive
            .start_file("run", options.external_attributes(0o104_755 << 16))
            .unwrap();
        archive
            .start_file("locked", options.unix_permissions(0o444))
            .unwrap();
    });
    upload(root.path(), "x.zip", Unpack, &archive)
        .await
        .unwrap();
    let node = |mode| Node::File {
        content: Vec::new(),
        mode,
    };
    assert_eq!(
        snapshot(root.path()),
        tree([("locked", node(0o444)), ("run", node(0o755))])
    );

    let root = tempfile::tempdir().unwrap();
    let mut header = tar::Header::new_gnu();
    header.set_path("run").unwrap();
    header.set_mode(0o6755);
    header.set_size(0);
    header.set_cksum();
    let archive = tar_of(&[header.as_bytes().to_vec()]);
    upload(root.path(), "x.tar", Unpack, &archive)
        .await
        .unwrap();
    assert_eq!(snapshot(root.path()), tree([("run", node(0o755))]));
}

#[tokio::test]
async fn links_that_stay_inside_are_made() {
    let expected = tree([
        ("d", Node::Directory),
        (
            "d/l",
            Node::Link {
                target: "../f".to_owned(),
            },
        ),
        ("f", file(b"x")),
    ]);
    let root = tempfile::tempdir().unwrap();
    let archive = zip_with(|archive| {
        archive
            .add_symlink("d/l", "../f", SimpleFileOptions::default())
            .unwrap();
        archive
            .start_file("f", SimpleFileOptions::default())
            .unwrap();
        io::Write::write_all(archive, b"x").unwrap();
    });
    upload(root.path(), "x.zip", Unpack, &archive)
        .await
        .unwrap();
    assert_eq!(snapshot(root.path()), expected);

    let root = tempfile::tempdir().unwrap();
    let archive = tar_of(&[
        tar_entry(tar::EntryType::Symlink, b"d/l", b"../f", b""),
        tar_entry(tar::EntryType::Regular, b"f", b"", b"x"),
    ]);
    upload(root.path(), "x.tar", Unpack, &archive)
        .await
        .unwrap();
    assert_eq!(snapshot(root.path()), expected);
}

#[tokio::test]
async fn a_hard_link_to_an_earlier_file_is_made() {
    let root = tempfile::tempdir().unwrap();
    let archive = tar_of(&[
        tar_entry(tar::EntryType::Regular, b"d/a", b"", b"x"),
        tar_entry(tar::EntryType::Link, b"b", b"d/a", b""),
    ]);
    upload(root.path(), "x.tar", Unpack, &archive)
        .await
        .unwrap();
    assert_eq!(
        snapshot(root.path()),
        tree([
            ("b", file(b"x")),
            ("d", Node::Directory),
            ("d/a", file(b"x"))
        ])
    );
    let inode = |name: &str| fs::metadata(root.path().join(name)).unwrap().ino();
    assert_eq!(inode("b"), inode("d/a"));
}

/// Two hundred mebibytes go through both directions while the process grows by little.
#[tokio::test]
async fn a_big_file_is_moved_in_little_memory() {
    const SIZE: u64 = 200 << 20;
    // Other tests run in this process, so there is room for them.
    const GROWTH_MAX: usize = 150 << 20;
    let root = tempfile::tempdir().unwrap();
    fs::File::create(root.path().join("sparse"))
        .unwrap()
        .set_len(SIZE)
        .unwrap();
    let transfers = Transfers::new(Owner::Ourselves);
    let download = Download {
        path: root.path().join("sparse"),
        format: ArchiveFormat::Tar,
    };
    let mut packed = transfers.download(download).await.unwrap();
    let before = resident_bytes();
    let stream = body_from(move |context| {
        assert!(
            resident_bytes() < before + GROWTH_MAX,
            "the transfer is held in memory"
        );
        packed.as_mut().poll_next(context)
    });
    let destination = root.path().join("copy");
    transfers
        .upload(request(&destination, "x.tar", Unpack), stream)
        .await
        .unwrap();
    assert_eq!(
        fs::metadata(destination.join("sparse")).unwrap().len(),
        SIZE
    );
}

fn resident_bytes() -> usize {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * rustix::param::page_size()
}
