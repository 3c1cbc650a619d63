//! Which image a sandbox gets: allowed, there, and for the right machine (DK-10).

use zareba_protocol::ErrorClass;
use zareba_runtime::RuntimeError;

use crate::{
    DockerOptions, EngineError, EngineFault, PullPolicy,
    engine::{Engine, ImageFound},
    program::StaticProgram,
};

/// Why an image is not used.
#[derive(Debug, thiserror::Error)]
enum ImageProblem {
    #[error("the Engine does not have it; fetch it, or allow fetching what is missing")]
    Missing,
    #[error("it is not among the allowed images")]
    NotAllowed,
    #[error("it is for {found}, and {wanted} was asked for")]
    OtherPlatform { found: String, wanted: String },
    #[error("it vanished after it was fetched")]
    Vanished,
}

/// Finds an image, fetching it where that is allowed. `tell` hears of every step of that.
pub(crate) async fn find(
    engine: &Engine,
    options: &DockerOptions,
    program: &StaticProgram,
    name: &str,
    tell: impl Fn(&str),
) -> Result<ImageFound, RuntimeError> {
    let refused = |class, source: Box<dyn std::error::Error + Send + Sync>| RuntimeError::Image {
        image: name.to_owned(),
        class,
        source,
    };
    let problem = |class, problem: ImageProblem| refused(class, Box::new(problem));
    let engine_failed = |error: EngineError| refused(class_of(error.fault), Box::new(error));
    let is_allowed = |patterns: &Vec<String>| patterns.iter().any(|it| matches(it, name));
    if !options.allowed.images.as_ref().is_none_or(is_allowed) {
        return Err(problem(ErrorClass::Permission, ImageProblem::NotAllowed));
    }
    let platform = options.platform.as_deref();
    let found = match engine.image(name).await.map_err(engine_failed)? {
        Some(found) => found,
        None if options.pull == PullPolicy::Never => {
            return Err(problem(ErrorClass::NotFound, ImageProblem::Missing));
        }
        None => {
            let pulled = engine.pull(&with_tag(name), platform, tell).await;
            pulled.map_err(engine_failed)?;
            let found = engine.image(name).await.map_err(engine_failed)?;
            found.ok_or_else(|| problem(ErrorClass::NotFound, ImageProblem::Vanished))?
        }
    };
    if let Some(wanted) = platform.filter(|wanted| !wanted.starts_with(&found.platform)) {
        let wanted = wanted.to_owned();
        let found = found.platform;
        let other = ImageProblem::OtherPlatform { found, wanted };
        return Err(problem(ErrorClass::Invalid, other));
    }
    let fits = program.fits(&found.platform);
    fits.map_err(|error| refused(ErrorClass::Invalid, Box::new(error)))?;
    Ok(found)
}

pub(crate) fn class_of(fault: EngineFault) -> ErrorClass {
    match fault {
        EngineFault::Missing => ErrorClass::NotFound,
        EngineFault::Denied => ErrorClass::Permission,
        EngineFault::TimedOut => ErrorClass::Timeout,
        EngineFault::Unreachable => ErrorClass::Disconnected,
        EngineFault::Refused => ErrorClass::Invalid,
        EngineFault::Conflict | EngineFault::PortTaken => ErrorClass::Busy,
        EngineFault::NoSpace | EngineFault::Failed => ErrorClass::Internal,
    }
}

/// Without a tag the Engine would fetch all that there are.
pub(crate) fn with_tag(name: &str) -> String {
    let last = name.rsplit('/').next().unwrap_or(name);
    if last.contains([':', '@']) {
        name.to_owned()
    } else {
        format!("{name}:latest")
    }
}

/// Whether a name fits a pattern in which `*` stands for any characters.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = name.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name) in [
            ("debian:12", "debian:12"),
            ("*", "anything/at:all"),
            ("registry.example/*", "registry.example/team/image:1"),
            ("*:1.*", "image:1.2"),
            ("a*b*c", "a--b--c"),
            ("a*", "a"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("debian:12", "debian:123"),
            ("debian", "evil/debian"),
            ("registry.example/*", "registry.example.evil/x"),
            ("a*b*c", "a--c--b"),
            ("*x", "xy"),
            ("", "x"),
        ] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn one_tag_is_fetched() {
        assert_eq!(with_tag("debian"), "debian:latest");
        assert_eq!(with_tag("host:5000/debian"), "host:5000/debian:latest");
        assert_eq!(with_tag("debian:12"), "debian:12");
        assert_eq!(with_tag("debian@sha256:ab"), "debian@sha256:ab");
    }
}
