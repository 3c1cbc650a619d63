//! The file system of an image, as a sandbox sees it.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use zareba_confine::{Layer, Lower, Overlay, Root};

use super::{HOME, Request, Seen, WORKSPACE, generated, owned_alike, places::Places};

/// Directories that something is mounted on. An image may have links there, or nothing; a layer
/// of ours above it has plain directories, and so no mount is ever led anywhere.
const MOUNT_POINTS: [&str; 6] = ["/dev", "/proc", "/run", "/tmp", HOME, WORKSPACE];

/// Where apt looks for settings, level by level.
const APT: [&str; 3] = ["etc", "etc/apt", "etc/apt/apt.conf.d"];

/// There is one user inside, so apt cannot download as another one.
const APT_SETTING: (&str, &str) = ("99zareba", "APT::Sandbox::User \"root\";\n");

/// The image's layers under ours. Its user database is its own.
pub(super) fn see(places: &Places, request: &Request<'_>, layers: &[PathBuf]) -> io::Result<Seen> {
    let etc = places.files().join("etc");
    places.make_directory(&places.files())?;
    places.make_directory(&etc)?;
    let common = generated::COMMON.map(|(name, text)| (name, text.to_owned()));
    for (name, text) in common.into_iter().chain(generated::own(request.resolver)?) {
        places.make_file(&etc.join(name), &text)?;
    }
    if layers.iter().any(|layer| has_apt(layer)) {
        settle_apt(places)?;
    }
    for point in MOUNT_POINTS {
        let mut path = places.files();
        for name in point.split('/').filter(|name| !name.is_empty()) {
            path.push(name);
            places.make_directory(&path)?;
        }
    }
    let mut lower = vec![places.lower(places.files())];
    for layer in layers {
        lower.push(Lower {
            path: layer.clone(),
            owner: owned_alike(layer)?,
            is_direct: false,
        });
    }
    let layer = Some(Layer::Directory(places.layer("root")?));
    Ok(Seen {
        root: Root::Overlay(Overlay {
            lower,
            layer,
            own: Vec::new(),
        }),
        entries: Vec::new(),
        lease: None,
        workspace_lock: None,
    })
}

/// Directories only: a link may lead anywhere.
fn has_apt(layer: &Path) -> bool {
    APT.iter().all(|name| {
        let found = fs::symlink_metadata(layer.join(name));
        found.is_ok_and(|found| found.is_dir())
    })
}

fn settle_apt(places: &Places) -> io::Result<()> {
    let mut directory = places.files();
    for name in APT {
        directory = places.files().join(name);
        places.make_directory(&directory)?;
    }
    let (name, text) = APT_SETTING;
    places.make_file(&directory.join(name), text)
}
