//! Tests of what of a directory comes along.

use std::{
    fs,
    io::Read as _,
    os::unix::fs::{PermissionsExt as _, symlink},
};

use tempfile::TempDir;

use super::*;
use crate::build::pack::{ContextLimits, Packed};

fn tree(files: &[(&str, &str)]) -> TempDir {
    let directory = TempDir::new().unwrap();
    for (name, text) in files {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    directory
}

fn packed(directory: &Path, limits: ContextLimits) -> Result<(Packed, Option<String>), BuildError> {
    let (packer, text) = filled(directory, limits)?;
    Ok((packer.finish()?, text))
}

fn filled(directory: &Path, limits: ContextLimits) -> Result<(Packer, Option<String>), BuildError> {
    let scratch = TempDir::new().unwrap();
    let mut packer = Packer::new(scratch.path(), limits)?;
    let dockerfile = Path::new("Dockerfile");
    let text = pack(directory, Some(dockerfile), Path::new(""), &mut packer)?;
    // It has no name, so nothing of it is left when something fails.
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
    Ok((packer, text))
}

/// Names with what they hold or where they lead.
fn contents(packed: Packed) -> Vec<(String, String)> {
    let mut archive = tar::Archive::new(packed.file);
    let entries = archive.entries().unwrap();
    let entry = |entry: std::io::Result<tar::Entry<'_, File>>| {
        let mut entry = entry.unwrap();
        let path = entry.path().unwrap().display().to_string();
        let mut text = String::new();
        entry.read_to_string(&mut text).unwrap();
        if let Some(target) = entry.link_name().unwrap() {
            text = format!("-> {}", target.display());
        }
        (path, text)
    };
    entries.map(entry).collect()
}

fn names(directory: &Path) -> Vec<String> {
    let (packed, _) = packed(directory, ContextLimits::usual()).unwrap();
    contents(packed).into_iter().map(|(name, _)| name).collect()
}

#[test]
fn links_come_as_links_and_nothing_is_followed() {
    let outside = tree(&[("secret", "s"), ("d/secret", "s")]);
    let context = tree(&[("Dockerfile", "FROM a"), ("in", "i")]);
    symlink(outside.path().join("secret"), context.path().join("file")).unwrap();
    symlink(outside.path().join("d"), context.path().join("directory")).unwrap();
    let (packed, text) = packed(context.path(), ContextLimits::usual()).unwrap();
    assert_eq!(text.as_deref(), Some("FROM a"));
    let to = |name: &str| format!("-> {}", outside.path().join(name).display());
    let expected = [
        ("Dockerfile", "FROM a".to_owned()),
        ("directory", to("d")),
        ("file", to("secret")),
        ("in", "i".to_owned()),
    ];
    assert_eq!(
        contents(packed),
        expected.map(|(name, text)| (name.to_owned(), text))
    );
}

#[test]
fn a_dockerfile_that_is_a_link_is_refused() {
    let outside = tree(&[("secret", "s")]);
    let context = tree(&[]);
    symlink(
        outside.path().join("secret"),
        context.path().join("Dockerfile"),
    )
    .unwrap();
    let error = packed(context.path(), ContextLimits::usual()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the Dockerfile cannot be used: it is a link"
    );
}

#[test]
fn what_is_ignored_stays_away_and_what_is_taken_back_comes() {
    let context = tree(&[
        ("Dockerfile", "FROM a"),
        (".dockerignore", "**\n!keep\n!d/keep\n"),
        ("keep/a", ""),
        ("d/keep", ""),
        ("d/other", ""),
        ("other", ""),
    ]);
    assert_eq!(
        names(context.path()),
        ["Dockerfile", "d/keep", "keep", "keep/a"]
    );
    fs::write(context.path().join(".dockerignore"), "d\nDockerfile\n").unwrap();
    assert_eq!(
        names(context.path()),
        [".dockerignore", "Dockerfile", "keep", "keep/a", "other"]
    );
}

#[test]
fn limits_hold() {
    let context = tree(&[("Dockerfile", "FROM a"), ("a", "1234"), ("b", "1234")]);
    let limits = |bytes, entries| ContextLimits { bytes, entries };
    assert!(packed(context.path(), limits(14, 3)).is_ok());
    let many = packed(context.path(), limits(14, 2)).unwrap_err();
    assert!(many.to_string().ends_with("more than 2 entries"), "{many}");
    let large = packed(context.path(), limits(13, 3)).unwrap_err();
    assert!(large.to_string().ends_with("more than 13 bytes"), "{large}");
    let deep = "d/".repeat(DEPTH_MAX + 2);
    fs::create_dir_all(context.path().join(deep)).unwrap();
    let deep = packed(context.path(), ContextLimits::usual()).unwrap_err();
    assert!(deep.to_string().contains("in each other"), "{deep}");
}

#[test]
fn pipes_are_left_out_and_nobody_waits_for_them() {
    let context = tree(&[("Dockerfile", "FROM a")]);
    let pipe = context.path().join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        FileType::Fifo,
        Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let (packed, _) = packed(context.path(), ContextLimits::usual()).unwrap();
    assert_eq!(packed.left_out, 1);
    assert_eq!(contents(packed).len(), 1);
}

#[test]
fn the_hash_is_of_names_rights_and_contents_alone() {
    let hash = |context: &TempDir| {
        let filled = filled(context.path(), ContextLimits::usual());
        filled.unwrap().0.hash_so_far()
    };
    let one = tree(&[("Dockerfile", "FROM a"), ("d/f", "x")]);
    let two = tree(&[("Dockerfile", "FROM a"), ("d/f", "x")]);
    let later = std::time::SystemTime::now() - std::time::Duration::from_secs(999);
    File::open(two.path().join("d/f"))
        .unwrap()
        .set_modified(later)
        .unwrap();
    assert_eq!(hash(&one), hash(&two));
    let rights = fs::Permissions::from_mode(0o755);
    fs::set_permissions(two.path().join("d/f"), rights).unwrap();
    assert_ne!(hash(&one), hash(&two));
    let other = tree(&[("Dockerfile", "FROM a"), ("d/f", "y")]);
    assert_ne!(hash(&one), hash(&other));
    let moved = tree(&[("Dockerfile", "FROM a"), ("d/g", "x")]);
    assert_ne!(hash(&one), hash(&moved));
}
