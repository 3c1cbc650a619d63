//! Downloads: what is in the archive, and what is not.

use std::{
    cell::Cell,
    fs,
    io::{self, Cursor, Read, Write},
    os::unix::{
        ffi::OsStrExt,
        fs::{PermissionsExt, symlink},
        net::UnixListener,
    },
    path::Path,
    thread,
};

use zareba_wire::{ArchiveFormat, Download, TransferError};
use zip::{CompressionMethod, ZipArchive};

use super::support::*;
use crate::{
    Owner,
    transfer::{
        Transfers,
        outlet::{CHUNK_BYTES, CHUNKS_MAX, Outlet, channel},
    },
};

use ArchiveFormat::{Tar, Zip};

/// Name and content of each entry, in the order of the archive.
fn zip_entries(archive: Vec<u8>) -> Vec<(String, Vec<u8>)> {
    let mut archive = ZipArchive::new(Cursor::new(archive)).unwrap();
    (0..archive.len())
        .map(|index| {
            let mut entry = archive.by_index(index).unwrap();
            assert_eq!(entry.compression(), CompressionMethod::Stored);
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            (entry.name_raw().escape_ascii().to_string(), content)
        })
        .collect()
}

/// Path, mode, content and link target of each entry.
fn tar_entries(archive: Vec<u8>) -> Vec<(String, u32, Vec<u8>, Option<String>)> {
    let mut archive = tar::Archive::new(Cursor::new(archive));
    let entries = archive.entries().unwrap();
    entries
        .map(|entry| {
            let mut entry = entry.unwrap();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            let name = entry.path_bytes().escape_ascii().to_string();
            let link = entry
                .link_name_bytes()
                .map(|link| link.escape_ascii().to_string());
            (name, entry.header().mode().unwrap(), content, link)
        })
        .collect()
}

fn entry(name: &str, content: &[u8]) -> (String, Vec<u8>) {
    (name.to_owned(), content.to_vec())
}

/// Files, empty and full directories, every kind of link, and special files.
fn sample() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    fs::create_dir_all(at("tree/d/empty")).unwrap();
    fs::write(at("outside"), "secret").unwrap();
    fs::create_dir(at("outside-dir")).unwrap();
    fs::write(at("outside-dir/x"), "secret").unwrap();
    fs::write(at("tree/b"), "B").unwrap();
    fs::write(at("tree/d/a"), "A").unwrap();
    fs::write(at("tree/.hidden"), "H").unwrap();
    symlink("d/a", at("tree/to-file")).unwrap();
    symlink(at("tree/b"), at("tree/to-file-absolute")).unwrap();
    symlink("d", at("tree/to-dir")).unwrap();
    symlink("../outside", at("tree/to-outside")).unwrap();
    symlink("../outside-dir", at("tree/to-outside-dir")).unwrap();
    symlink("loop", at("tree/loop")).unwrap();
    symlink("nothing", at("tree/dangling")).unwrap();
    for (name, mode) in [
        ("tree/b", 0o600),
        ("tree/d/a", 0o755),
        ("tree/.hidden", 0o644),
    ] {
        fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    for name in ["tree/d", "tree/d/empty"] {
        fs::set_permissions(at(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let pipe = at("tree/pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    drop(UnixListener::bind(at("tree/socket")).unwrap());
    root
}

#[tokio::test]
async fn a_directory_becomes_a_zip_of_stored_files_and_empty_directories() {
    let root = sample();
    let archive = download(&root.path().join("tree"), Zip).await.unwrap();
    assert_eq!(
        zip_entries(archive),
        [
            entry(".hidden", b"H"),
            entry("b", b"B"),
            entry("d/a", b"A"),
            entry("d/empty/", b""),
            entry("to-file", b"A"),
            entry("to-file-absolute", b"B"),
        ]
    );
}

#[tokio::test]
async fn a_directory_becomes_a_tar_with_modes_and_links() {
    let root = sample();
    let archive = download(&root.path().join("tree"), Tar).await.unwrap();
    let row = |name: &str, mode, content: &[u8]| (name.to_owned(), mode, content.to_vec(), None);
    let link =
        |name: &str, target: &str| (name.to_owned(), 0o777, Vec::new(), Some(target.to_owned()));
    let absolute = root.path().join("tree/b").display().to_string();
    assert_eq!(
        tar_entries(archive),
        [
            row(".hidden", 0o644, b"H"),
            row("b", 0o600, b"B"),
            row("d", 0o755, b""),
            row("d/a", 0o755, b"A"),
            row("d/empty", 0o755, b""),
            link("dangling", "nothing"),
            link("loop", "loop"),
            link("to-dir", "d"),
            link("to-file", "d/a"),
            link("to-file-absolute", &absolute),
            link("to-outside", "../outside"),
            link("to-outside-dir", "../outside-dir"),
        ]
    );
}

#[tokio::test]
async fn a_directory_with_nothing_to_pack_is_an_empty_archive() {
    let root = tempfile::tempdir().unwrap();
    assert_eq!(zip_entries(download(root.path(), Zip).await.unwrap()), []);
    assert_eq!(tar_entries(download(root.path(), Tar).await.unwrap()), []);
}

#[tokio::test]
async fn a_directory_of_special_files_counts_as_empty() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("d")).unwrap();
    let pipe = root.path().join("d/pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    assert_eq!(
        zip_entries(download(root.path(), Zip).await.unwrap()),
        [entry("d/", b"")]
    );
}

#[tokio::test]
async fn a_single_file_becomes_an_archive_of_one_entry() {
    let root = sample();
    let path = root.path().join("tree/d/a");
    assert_eq!(
        zip_entries(download(&path, Zip).await.unwrap()),
        [entry("a", b"A")]
    );
    assert_eq!(
        tar_entries(download(&path, Tar).await.unwrap()),
        [("a".to_owned(), 0o755, b"A".to_vec(), None)]
    );
}

#[tokio::test]
async fn a_zip_keeps_modes_and_times() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("run");
    fs::write(&path, "x").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(951_827_696);
    fs::File::open(&path).unwrap().set_modified(time).unwrap();
    let archive = download(&path, Zip).await.unwrap();
    let mut archive = ZipArchive::new(Cursor::new(archive)).unwrap();
    let entry = archive.by_index(0).unwrap();
    let modified = zip::DateTime::from_date_and_time(2000, 2, 29, 12, 34, 56).unwrap();
    assert_eq!(
        (entry.unix_mode(), entry.last_modified()),
        (Some(0o100_750), Some(modified))
    );
}

#[tokio::test]
async fn names_need_not_be_text() {
    let root = tempfile::tempdir().unwrap();
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9");
    fs::create_dir_all(root.path().join(name).join(name)).unwrap();
    fs::write(root.path().join(name).join("f"), "x").unwrap();
    let zipped = download(root.path(), Zip).await.unwrap();
    assert_eq!(
        zip_entries(zipped),
        [entry("caf\\xe9/caf\\xe9/", b""), entry("caf\\xe9/f", b"x")]
    );
    let packed = tar_entries(download(root.path(), Tar).await.unwrap());
    let names: Vec<&str> = packed.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(names, ["caf\\xe9", "caf\\xe9/caf\\xe9", "caf\\xe9/f"]);
}

#[tokio::test]
async fn paths_that_cannot_be_packed_are_refused() {
    let root = sample();
    let error = download(Path::new("tree"), Zip).await.unwrap_err();
    assert!(matches!(&error, TransferError::Invalid { .. }), "{error:?}");
    assert_eq!(error.to_string(), "Path must be an absolute path");
    let error = download(&root.path().join("nothing"), Zip)
        .await
        .unwrap_err();
    assert!(matches!(&error, TransferError::NotFound), "{error:?}");
    assert_eq!(error.to_string(), "File not found");
    for name in ["pipe", "socket"] {
        let path = root.path().join("tree").join(name);
        let error = download(&path, Zip).await.unwrap_err();
        assert!(matches!(&error, TransferError::Invalid { .. }), "{error:?}");
        let text = format!(
            "Path is neither a regular file nor a directory: '{}'",
            path.display()
        );
        assert_eq!(error.to_string(), text);
    }
}

#[tokio::test]
async fn more_entries_than_the_old_format_counts_are_packed() {
    const COUNT: usize = 66_000;
    let root = tempfile::tempdir().unwrap();
    // Hard links are quickly made; two files, because one cannot have that many names on ext4.
    for first in [0, COUNT / 2] {
        let file = root.path().join(first.to_string());
        fs::write(&file, "").unwrap();
        for number in first + 1..first + COUNT / 2 {
            fs::hard_link(&file, root.path().join(number.to_string())).unwrap();
        }
    }
    let archive = download(root.path(), Zip).await.unwrap();
    assert_eq!(ZipArchive::new(Cursor::new(archive)).unwrap().len(), COUNT);
}

#[test]
fn the_packing_thread_waits_for_its_reader_and_ends_with_it() {
    let (sender, chunks) = channel();
    let filling = sender.clone();
    let fill = move || {
        let closed = Cell::new(false);
        let mut outlet = Outlet::new(&filling, &closed);
        outlet.write_all(&vec![1; CHUNKS_MAX * CHUNK_BYTES])?;
        Ok::<_, io::Error>(filling.capacity())
    };
    // The channel takes exactly so much without a reader; the next chunk would wait.
    assert_eq!(thread::spawn(fill).join().unwrap().unwrap(), 0);
    drop(chunks);
    let closed = Cell::new(false);
    let mut outlet = Outlet::new(&sender, &closed);
    let error = outlet.write_all(&vec![1; CHUNK_BYTES]).unwrap_err();
    assert_eq!(
        (error.kind(), closed.get()),
        (io::ErrorKind::BrokenPipe, true)
    );
    // What an archive writer still writes when it is dropped goes nowhere, without an error.
    outlet.write_all(&vec![1; 3 * CHUNK_BYTES]).unwrap();
}

#[tokio::test]
async fn a_reader_that_goes_away_ends_the_download() {
    let root = tempfile::tempdir().unwrap();
    fs::File::create(root.path().join("big"))
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    let transfers = Transfers::new(Owner::Ourselves);
    for format in [Zip, Tar] {
        let request = Download {
            path: root.path().to_path_buf(),
            format,
        };
        let mut stream = transfers.download(request).await.unwrap();
        let first = std::future::poll_fn(|context| stream.as_mut().poll_next(context)).await;
        assert_eq!(first.unwrap().unwrap().len(), CHUNK_BYTES);
    }
    // Dropping the runtime waits for its blocking threads: a terabyte would take for ever.
}

#[tokio::test]
async fn a_failure_on_the_way_is_the_last_thing_the_reader_gets() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("shrinks");
    let file = fs::File::create(&path).unwrap();
    file.set_len(1 << 30).unwrap();
    let request = Download {
        path: path.clone(),
        format: Tar,
    };
    let mut stream = Transfers::new(Owner::Ourselves)
        .download(request)
        .await
        .unwrap();
    let mut next =
        async || std::future::poll_fn(|context| stream.as_mut().poll_next(context)).await;
    next().await.unwrap().unwrap();
    file.set_len(0).unwrap();
    let mut pieces = 0;
    let error = loop {
        match next().await.unwrap() {
            Ok(_) => pieces += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(
        error.to_string(),
        "a file became shorter while it was packed"
    );
    assert!(pieces < (1 << 30) / CHUNK_BYTES, "{pieces}");
    assert!(next().await.is_none());
}

/// Does something as a user who may not read everything. A thread has its own user, and so have
/// the threads that it starts.
fn as_ordinary_user(deed: impl FnOnce(&tokio::runtime::Runtime) + Send + 'static) {
    let worker = thread::spawn(|| {
        if rustix::process::geteuid().is_root() {
            let nobody = rustix::process::Uid::from_raw(65_534);
            rustix::thread::set_thread_uid(nobody).unwrap();
        }
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        deed(&runtime.unwrap());
    });
    worker.join().unwrap();
}

/// FA-11: an archive does not break off in the middle for something that could be known before.
#[test]
fn what_may_not_be_read_is_refused_before_the_archive_begins() {
    let root = tempfile::tempdir().unwrap();
    let open = fs::Permissions::from_mode(0o755);
    fs::set_permissions(root.path(), open).unwrap();
    let tree = root.path().join("tree");
    fs::create_dir_all(tree.join("d/closed")).unwrap();
    // Enough before it that an archive would be on its way.
    fs::write(tree.join("a"), vec![b'x'; 4 * CHUNKS_MAX * CHUNK_BYTES]).unwrap();
    fs::write(tree.join("d/secret"), "s").unwrap();
    let forbid = |name: &str, mode| {
        fs::set_permissions(tree.join(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    let check = |refused: Option<&str>| {
        let tree = tree.clone();
        let path = refused.map(|name| tree.join(name).display().to_string());
        as_ordinary_user(move |runtime| {
            for format in [Zip, Tar] {
                let answer = runtime.block_on(download(&tree, format));
                match (&path, answer) {
                    (None, Ok(_)) => {}
                    (Some(path), Err(TransferError::Io { message, source })) => {
                        assert_eq!(message, format!("[Errno 13] Permission denied: '{path}'"));
                        assert_eq!(source.kind(), io::ErrorKind::PermissionDenied);
                    }
                    (expected, other) => panic!("{expected:?}: {:?}", other.map(|all| all.len())),
                }
            }
        });
    };
    check(None);
    forbid("d/secret", 0);
    check(Some("d/secret"));
    forbid("d/secret", 0o644);
    forbid("d/closed", 0);
    check(Some("d/closed"));
    forbid("d/closed", 0o755);
    check(None);
}
