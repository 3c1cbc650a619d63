//! What lies below `/etc` and is nobody's business inside, whoever may read it outside (NS-4).
//!
//! The sandbox's user could read hardly any of it. But without root that is the user who started
//! it, with all groups, and machines are not always set up as their makers meant.

use std::{fs, io, path::Path};

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};

use super::skeleton::make_directory;

/// Below `/etc`: keys, passwords, and tokens that reach other machines.
const SECRETS: [&str; 28] = [
    "NetworkManager/system-connections",
    "containers/auth.json",
    "docker",
    "environment",
    "gshadow",
    "gshadow-",
    "krb5.keytab",
    "kubernetes",
    "letsencrypt",
    "netplan",
    "openvpn",
    "ppp",
    "rancher",
    "shadow",
    "shadow-",
    "ssh/ssh_host_dsa_key",
    "ssh/ssh_host_dsa_key.pub",
    "ssh/ssh_host_ecdsa_key",
    "ssh/ssh_host_ecdsa_key.pub",
    "ssh/ssh_host_ed25519_key",
    "ssh/ssh_host_ed25519_key.pub",
    "ssh/ssh_host_rsa_key",
    "ssh/ssh_host_rsa_key.pub",
    "ssl/private",
    "sudoers",
    "sudoers.d",
    "wireguard",
    "wpa_supplicant",
];

/// Hides them in a directory that lies above `/etc` in an overlay, whether they are there or not:
/// one may come into being while the directory is in use.
///
/// The marks cannot be seen inside. Whoever makes a file there gets an empty one, and whoever
/// removes that again puts a mark back.
pub(super) fn hide(above: &Path) -> io::Result<()> {
    for secret in SECRETS.map(Path::new) {
        let parent = secret.parent().unwrap_or(Path::new(""));
        let outside = fs::symlink_metadata(Path::new("/etc").join(parent));
        // Where a link leads, the mark would not be.
        if !outside.is_ok_and(|outside| outside.is_dir()) {
            continue;
        }
        if !above.join(parent).is_dir() {
            make_directory(&above.join(parent))?;
        }
        // It may have been mirrored or copied.
        let place = above.join(secret);
        match fs::symlink_metadata(&place) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Ok(found) if found.is_dir() => fs::remove_dir_all(&place)?,
            found => found.and_then(|_| fs::remove_file(&place))?,
        }
        let kind = FileType::CharacterDevice;
        mknodat(CWD, &place, kind, Mode::empty(), makedev(0, 0))?;
    }
    Ok(())
}
