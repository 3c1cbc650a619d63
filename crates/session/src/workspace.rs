//! Which directories of this machine may become workspaces.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::SessionError;

/// The directory that a path really is, if it is below one that is allowed. Where it leads is
/// decided once: what is used later is the path without links.
pub(crate) async fn allowed(path: &Path, roots: &[PathBuf]) -> Result<PathBuf, SessionError> {
    let (asked, roots) = (path.to_owned(), roots.to_vec());
    let resolved = tokio::task::spawn_blocking(move || resolve(&asked, &roots)).await;
    match resolved {
        Ok(Some(directory)) => Ok(directory),
        // The same whether it is there or not: strangers learn nothing of this machine's files.
        Ok(None) | Err(_) => Err(SessionError::Invalid {
            message: format!(
                "the server does not offer `{}` as a workspace; the setting `sessions.workspaces` \
                 lists those that it does",
                path.display()
            ),
        }),
    }
}

fn resolve(path: &Path, roots: &[PathBuf]) -> Option<PathBuf> {
    let directory = real_directory(path).ok()?;
    let is_below =
        |root: &PathBuf| real_directory(root).is_ok_and(|root| directory.starts_with(root));
    roots.iter().any(is_below).then_some(directory)
}

fn real_directory(path: &Path) -> io::Result<PathBuf> {
    if !path.is_absolute() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let real = path.canonicalize()?;
    if !real.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    Ok(real)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_what_is_listed_and_what_is_below_it_can_be_had() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        for name in ["offered/inner", "other"] {
            std::fs::create_dir_all(place.join(name)).unwrap();
        }
        std::fs::write(place.join("offered/file"), "").unwrap();
        std::os::unix::fs::symlink(place.join("other"), place.join("offered/way-out")).unwrap();
        let roots = [place.join("offered")];
        for (asked, expected) in [
            ("offered", Some("offered")),
            ("offered/inner", Some("offered/inner")),
            ("offered/inner/..", Some("offered")),
            ("offered/../other", None),
            ("offered/way-out", None),
            ("offered/file", None),
            ("offered/none", None),
            ("other", None),
        ] {
            let found = allowed(&place.join(asked), &roots).await.ok();
            assert_eq!(found, expected.map(|name| place.join(name)), "{asked}");
        }
        assert!(allowed(Path::new("offered"), &roots).await.is_err());
        assert!(allowed(&place.join("offered"), &[]).await.is_err());
    }
}
