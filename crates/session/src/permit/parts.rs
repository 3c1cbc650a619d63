//! Which runtimes, images and directories of the machine the holder of a key may ask for.

use std::path::{Path, PathBuf};

use crate::{NewSession, SessionError, workspace};

/// What a session of a key may be made of; `None` sets no bound of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PermittedParts {
    /// Runtimes, also for a session that names none and gets the server's own.
    pub runtimes: Option<Vec<String>>,
    /// Names of images, in which `*` stands for any characters. A session that names no image has what its
    /// runtime offers without one.
    pub images: Option<Vec<String>>,
    /// Directories of this machine, with those below them: for workspaces, and for the sources of mounts.
    pub workspaces: Option<Vec<PathBuf>>,
}

impl PermittedParts {
    /// Refuses a runtime or an image that the key may not ask for.
    pub(crate) fn require_names(
        &self,
        runtime: &str,
        new: &NewSession,
    ) -> Result<(), SessionError> {
        if let Some(runtimes) = &self.runtimes
            && !runtimes.iter().any(|permitted| permitted == runtime)
        {
            return Err(beyond("runtime", runtime, &listed(runtimes)));
        }
        if let (Some(images), Some(image)) = (&self.images, &new.image)
            && !images.iter().any(|pattern| matches(pattern, image))
        {
            return Err(beyond("image", image, &listed(images)));
        }
        Ok(())
    }

    /// Refuses what the key may not ask for. Where a directory leads to is decided here: what is used later
    /// is the path without links.
    pub(crate) async fn require(
        &self,
        runtime: &str,
        new: &mut NewSession,
    ) -> Result<(), SessionError> {
        self.require_names(runtime, new)?;
        let Some(workspaces) = &self.workspaces else {
            return Ok(());
        };
        let real = async |field, path: &Path| {
            // The same whether it is there or not: a client learns nothing of this machine's files.
            workspace::allowed(path, workspaces).await.map_err(|_| {
                let names: Vec<_> = workspaces.iter().map(|it| it.to_string_lossy()).collect();
                beyond(field, &path.to_string_lossy(), &listed(&names))
            })
        };
        if let Some(path) = &mut new.workspace {
            *path = real("workspace", path).await?;
        }
        for mount in &mut new.request.mounts {
            let (source, rest) = mount.split_once(':').unwrap_or((mount, ""));
            let source = real("mounts", Path::new(source)).await?;
            *mount = format!("{}:{rest}", source.display());
        }
        Ok(())
    }
}

/// Whether a name fits a pattern in which `*` stands for any characters. The first place at which a part fits
/// is as good as any other, so that a long name costs no more than its length.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    let Some(mut name) = name.strip_prefix(first) else {
        return false;
    };
    for part in middle.split('*') {
        match name.split_once(part) {
            Some((_, after)) => name = after,
            None => return false,
        }
    }
    name.ends_with(last)
}

fn listed<T: AsRef<str>>(texts: &[T]) -> String {
    let texts: Vec<String> = texts
        .iter()
        .map(|it| format!("`{}`", it.as_ref()))
        .collect();
    match texts.is_empty() {
        true => "none".to_owned(),
        false => texts.join(", "),
    }
}

fn beyond(field: &'static str, asked: &str, permitted: &str) -> SessionError {
    let shown: String = asked.chars().take(200).collect();
    let shown = shown.escape_debug();
    SessionError::PartNotPermitted {
        field,
        message: format!("the key does not permit `{shown}` as `{field}`"),
        hint: format!("ask for one of those that it permits ({permitted}), or use another key"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn refused(parts: &PermittedParts, new: &NewSession) -> Option<&'static str> {
        match parts.require("native", &mut new.clone()).await {
            Ok(()) => None,
            Err(SessionError::PartNotPermitted { field, .. }) => Some(field),
            Err(error) => panic!("{error}"),
        }
    }

    fn of(texts: &[&str]) -> Option<Vec<String>> {
        Some(texts.iter().map(|&text| text.to_owned()).collect())
    }

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, expected) in [
            ("debian:12", "debian:12", true),
            ("debian:12", "debian:123", false),
            ("*", "anything/at:all", true),
            ("team/*:1.*", "team/image:1.2", true),
            ("team/*", "elsewhere/team/image", false),
            ("a*b*c", "a--c--b", false),
            ("*x", "xy", false),
            ("", "x", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[tokio::test]
    async fn a_runtime_and_an_image_are_permitted_by_name() {
        let new = NewSession::default();
        let parts = |runtimes, images| PermittedParts {
            runtimes,
            images,
            workspaces: None,
        };
        assert_eq!(refused(&parts(None, None), &new).await, None);
        assert_eq!(refused(&parts(of(&["native"]), of(&[])), &new).await, None);
        // The server's own runtime, too.
        assert_eq!(
            refused(&parts(of(&["docker"]), None), &new).await,
            Some("runtime")
        );
        let image = |image: &str| NewSession {
            image: Some(image.to_owned()),
            ..NewSession::default()
        };
        let some = parts(None, of(&["debian:*"]));
        assert_eq!(refused(&some, &image("debian:12")).await, None);
        assert_eq!(
            refused(&some, &image("evil/debian:12")).await,
            Some("image")
        );
    }

    #[tokio::test]
    async fn directories_of_the_machine_are_permitted_where_they_lead_to() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        for name in ["own/inner", "other"] {
            std::fs::create_dir_all(place.join(name)).unwrap();
        }
        std::os::unix::fs::symlink(place.join("other"), place.join("own/way-out")).unwrap();
        let parts = PermittedParts {
            workspaces: Some(vec![place.join("own")]),
            ..PermittedParts::default()
        };
        for (name, is_permitted) in [
            ("own/inner", true),
            ("other", false),
            ("own/way-out", false),
            ("own/../other", false),
            ("missing", false),
        ] {
            let mut new = NewSession {
                workspace: Some(place.join(name)),
                ..NewSession::default()
            };
            let expected = (!is_permitted).then_some("workspace");
            assert_eq!(refused(&parts, &new).await, expected, "{name}");
            new.workspace = None;
            new.request.mounts = vec![format!("{}:/inside:ro", place.join(name).display())];
            let expected = (!is_permitted).then_some("mounts");
            assert_eq!(refused(&parts, &new).await, expected, "{name}");
        }
    }
}
