//! Transfers in a workspace with walls.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use zareba_wire::{
    ArchiveFormat, Download, TransferError,
    UploadTreatment::{self, Store, Unpack},
};

use super::support::{self, *};
use crate::{Owner, files::Reach, transfer::Transfers};

/// A directory `w` that transfers may reach, a directory `out` beside it, and links to that.
struct Walls {
    directory: tempfile::TempDir,
    transfers: Transfers,
}

impl Walls {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::create_dir_all(at("w/sub")).unwrap();
        fs::create_dir(at("out")).unwrap();
        fs::write(at("out/secret"), "secret").unwrap();
        fs::write(at("w/sub/file"), "inside").unwrap();
        symlink("../out", at("w/relative")).unwrap();
        symlink(at("out"), at("w/absolute")).unwrap();
        symlink("../out/secret", at("w/secret")).unwrap();
        symlink("/proc/self/root", at("w/magic")).unwrap();
        let reach = Reach::beneath(&at("w")).unwrap();
        let transfers = Transfers::within(Arc::new(reach), Owner::Ourselves);
        Self {
            directory,
            transfers,
        }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn outside(&self) -> Vec<PathBuf> {
        let magic = Path::new("/proc/self/root");
        let from_root = self.at("w/sub");
        vec![
            self.at("out"),
            self.at("out/new"),
            self.at("w/../out"),
            self.at("w/sub/../../out"),
            self.at("w/missing/../../out"),
            self.at("w/relative"),
            self.at("w/relative/new"),
            self.at("w/absolute"),
            self.at("w/absolute/new/deep"),
            self.at("w/magic/tmp"),
            self.at("w-not"),
            PathBuf::from("/"),
            PathBuf::from("/no/such/place"),
            magic.to_owned(),
            magic.join(from_root.strip_prefix("/").unwrap()),
        ]
    }

    fn refusal(&self, path: &Path) -> String {
        format!(
            "[Errno 13] Permission denied: '{}' (outside the workspace; only paths in '{}' can be used)",
            path.display(),
            self.at("w").display()
        )
    }

    async fn upload(
        &self,
        destination: &Path,
        name: &str,
        treatment: UploadTreatment,
        content: &[u8],
    ) -> Result<(), TransferError> {
        let request = request(destination, name, treatment);
        let content = Bytes::copy_from_slice(content);
        self.transfers.upload(request, body([Ok(content)])).await
    }

    async fn download(&self, path: PathBuf) -> Result<Vec<u8>, TransferError> {
        let format = ArchiveFormat::Tar;
        let stream = self.transfers.download(Download { path, format }).await?;
        Ok(collect(stream).await.unwrap())
    }
}

#[tokio::test]
async fn nothing_is_uploaded_to_the_outside() {
    let walls = Walls::new();
    let before = snapshot(walls.directory.path());
    let zip = zip_of(&[("new", b"bad")]);
    let tar = tar_of(&[tar_entry(tar::EntryType::Regular, b"new", b"", b"bad")]);
    let bodies: [(&str, UploadTreatment, &[u8]); 3] = [
        ("new", Store, b"bad"),
        ("x.zip", Unpack, &zip),
        ("x.tar", Unpack, &tar),
    ];
    for destination in walls.outside() {
        for (name, treatment, content) in bodies {
            let error = walls
                .upload(&destination, name, treatment, content)
                .await
                .unwrap_err();
            assert_eq!(error.to_string(), walls.refusal(&destination));
            let is_permission = matches!(
                &error,
                TransferError::Io { source, .. }
                    if source.kind() == std::io::ErrorKind::PermissionDenied
            );
            assert!(is_permission, "{error:?}");
        }
    }
    assert_eq!(snapshot(walls.directory.path()), before);
}

#[tokio::test]
async fn nothing_is_downloaded_from_the_outside() {
    let walls = Walls::new();
    let more = ["out/secret", "w/secret", "w/relative/secret"].map(|name| walls.at(name));
    for path in walls.outside().into_iter().chain(more) {
        if path.starts_with(walls.at("w/missing")) {
            continue;
        }
        let refusal = walls.refusal(&path);
        let error = walls.download(path).await.unwrap_err();
        assert_eq!(error.to_string(), refusal);
    }
}

#[tokio::test]
async fn a_link_is_replaced_by_an_upload_and_not_written_through() {
    let walls = Walls::new();
    walls
        .upload(&walls.at("w"), "secret", Store, b"mine")
        .await
        .unwrap();
    let zip = zip_of(&[("relative", b"mine")]);
    walls
        .upload(&walls.at("w"), "x.zip", Unpack, &zip)
        .await
        .unwrap();
    for name in ["w/secret", "w/relative"] {
        assert_eq!(fs::read_to_string(walls.at(name)).unwrap(), "mine");
    }
    assert_eq!(snapshot(&walls.at("out")).len(), 1);
    assert_eq!(
        fs::read_to_string(walls.at("out/secret")).unwrap(),
        "secret"
    );
}

#[tokio::test]
async fn an_archive_is_not_unpacked_through_a_link_to_the_outside() {
    let walls = Walls::new();
    let before = snapshot(walls.directory.path());
    for link in ["relative", "absolute", "magic"] {
        let zip = zip_of(&[("good", b"x"), (&format!("{link}/new"), b"bad")]);
        let said = words(walls.upload(&walls.at("w"), "x.zip", Unpack, &zip).await);
        let reason = format!(
            "'{}/{link}' is a link in the destination, and the archive would be unpacked through it",
            walls.at("w").display()
        );
        assert_eq!(said, Err(reason));
    }
    assert_eq!(snapshot(walls.directory.path()), before);
}

#[tokio::test]
async fn transfers_inside_go_on_as_usual() {
    let walls = Walls::new();
    symlink("sub", walls.at("w/inside")).unwrap();
    symlink(walls.at("w/sub"), walls.at("w/by-name")).unwrap();
    for destination in ["w/inside/a", "w/by-name/b", "w/sub/../sub/c"] {
        walls
            .upload(&walls.at(destination), "new", Store, b"good")
            .await
            .unwrap();
    }
    assert_eq!(
        snapshot(&walls.at("w/sub")).into_keys().collect::<Vec<_>>(),
        ["a", "a/new", "b", "b/new", "c", "c/new", "file"]
    );
    for path in ["w/inside/file", "w/by-name/file", "w/sub/../sub/file"] {
        let archive = walls.download(walls.at(path)).await.unwrap();
        let copy = tempfile::tempdir().unwrap();
        support::upload(copy.path(), "x.tar", Unpack, &archive)
            .await
            .unwrap();
        assert_eq!(
            fs::read_to_string(copy.path().join("file")).unwrap(),
            "inside"
        );
    }
}

/// The destination becomes a link to the outside while the body arrives.
#[tokio::test]
async fn a_destination_that_turns_into_a_link_does_not_lead_out() {
    for (name, content) in [("new", b"x".to_vec()), ("x.zip", zip_of(&[("new", b"x")]))] {
        let walls = Walls::new();
        let (sub, moved) = (walls.at("w/sub"), walls.at("w/moved"));
        let mut pieces = std::collections::VecDeque::from([Ok(Bytes::from(content))]);
        let (from, to) = (sub.clone(), moved.clone());
        let stream = body_from(move |_| {
            if !to.exists() {
                fs::rename(&from, &to).unwrap();
                symlink("../out", &from).unwrap();
            }
            std::task::Poll::Ready(pieces.pop_front())
        });
        walls
            .transfers
            .upload(request(&sub, name, Store), stream)
            .await
            .unwrap();
        assert_eq!(fs::read_to_string(moved.join("new")).unwrap(), "x");
        assert_eq!(snapshot(&walls.at("out")).len(), 1);
    }
}
