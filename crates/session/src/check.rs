//! What is refused before anything is written down, because a start that fails is a session all
//! the same.

use std::{collections::BTreeMap, time::Duration};

use zareba_runtime::Variables;
use zareba_wire::variables::{InvalidVariable, VariableAmount};

use crate::{NewSession, SessionError, SessionLimits};

/// Labels of one session, and what they may have together.
const LABELS_MAX: usize = 16;
const LABELS_BYTES_MAX: usize = 4 * 1024;
/// What an image may be called by.
const IMAGE_BYTES_MAX: usize = 4 * 1024;
/// Nothing has to wait longer than ten years, and nothing overflows below that.
const DURATION_MAX: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// Checks all that can be known without the runtime.
pub(crate) fn all(new: &NewSession) -> Result<(), SessionError> {
    labels(&new.labels)?;
    if new
        .image
        .as_ref()
        .is_some_and(|image| image.len() > IMAGE_BYTES_MAX)
    {
        return invalid(format!(
            "the name of an image may have {IMAGE_BYTES_MAX} bytes at most"
        ));
    }
    for (name, duration) in [
        ("no_change_timeout", new.no_change_timeout),
        ("timeout", new.timeout),
    ] {
        time(name, duration)?;
    }
    limits(&new.limits)?;
    variables(new)
}

/// Checks when a session goes to sleep and when it ends.
pub(crate) fn limits(limits: &SessionLimits) -> Result<(), SessionError> {
    time("idle_timeout", limits.idle_timeout)?;
    time("life_max", limits.life_max)
}

fn time(name: &str, duration: Option<Duration>) -> Result<(), SessionError> {
    if duration.is_some_and(|duration| duration.is_zero() || duration > DURATION_MAX) {
        return invalid(format!(
            "`{name}` must be longer than nothing and shorter than ten years"
        ));
    }
    Ok(())
}

/// Checks how many labels there are, and how long.
pub(crate) fn labels(labels: &BTreeMap<String, String>) -> Result<(), SessionError> {
    let bytes: usize = labels
        .iter()
        .map(|(name, label)| name.len() + label.len())
        .sum();
    if labels.len() > LABELS_MAX || bytes > LABELS_BYTES_MAX {
        return invalid(format!(
            "a session may have {LABELS_MAX} labels with {LABELS_BYTES_MAX} bytes together; \
             these are {} with {bytes}",
            labels.len()
        ));
    }
    Ok(())
}

fn variables(new: &NewSession) -> Result<(), SessionError> {
    let secrets = new.secrets.iter();
    let secrets = secrets.map(|(name, secret)| (name, &secret.0));
    let plain = new.environment.iter().map(|(name, value)| (name, value));
    let mut amount = VariableAmount::default();
    for (name, value) in plain.clone().chain(secrets.clone()) {
        amount.add(name, value).map_err(too_much)?;
        if name == "PATH" && !value.split(':').any(|place| place.starts_with('/')) {
            let reason = "the variable `PATH` must name a directory that begins with `/`, or no shell is found";
            return invalid(reason.to_owned());
        }
    }
    amount.check().map_err(too_much)?;
    let all = plain.chain(secrets);
    let all = all.map(|(name, value)| (name.clone(), value.clone()));
    Variables::new(all.collect())?;
    Ok(())
}

fn too_much(error: InvalidVariable) -> SessionError {
    let message = error.message;
    SessionError::Invalid { message }
}

fn invalid(message: String) -> Result<(), SessionError> {
    Err(SessionError::Invalid { message })
}

#[cfg(test)]
mod tests {
    use zareba_wire::variables::VARIABLE_BYTES_MAX;

    use super::*;
    use crate::Secret;

    #[track_caller]
    fn refused(new: &NewSession, why: &str) {
        let error = all(new).unwrap_err();
        assert!(matches!(error, SessionError::Invalid { .. }), "{error}");
        assert!(error.to_string().contains(why), "{error}");
    }

    #[test]
    fn labels_have_a_limit() {
        let labelled = |count: usize, bytes: usize| NewSession {
            labels: (0..count)
                .map(|number| (format!("{number:02}"), "x".repeat(bytes)))
                .collect(),
            ..NewSession::default()
        };
        all(&labelled(16, 254)).unwrap();
        refused(&labelled(17, 0), "these are 17");
        refused(&labelled(16, 255), "with 4112");
    }

    #[test]
    fn durations_are_neither_nothing_nor_endless() {
        for wrong in [Duration::ZERO, Duration::MAX] {
            let timed = NewSession {
                no_change_timeout: Some(wrong),
                ..NewSession::default()
            };
            refused(&timed, "`no_change_timeout`");
            let limits = SessionLimits {
                life_max: Some(wrong),
                ..SessionLimits::default()
            };
            let limited = NewSession {
                limits,
                ..NewSession::default()
            };
            refused(&limited, "`life_max`");
        }
    }

    #[test]
    fn a_search_path_without_a_directory_is_refused_by_its_name() {
        let with = |path: &str| NewSession {
            environment: vec![("PATH".to_owned(), path.to_owned())],
            ..NewSession::default()
        };
        for path in ["", ":", "bin:.", "~/bin"] {
            refused(&with(path), "`PATH`");
        }
        all(&with("/opt/tools:.")).unwrap();
    }

    #[test]
    fn variables_have_a_limit_each_and_together() {
        let with = |count: usize, bytes: usize| NewSession {
            environment: (0..count)
                .map(|number| (format!("V{number:03}"), "x".repeat(bytes)))
                .collect(),
            ..NewSession::default()
        };
        all(&with(8, VARIABLE_BYTES_MAX - 4)).unwrap();
        refused(&with(1, VARIABLE_BYTES_MAX - 3), "the variable `V000`");
        refused(&with(9, VARIABLE_BYTES_MAX - 4), "these are 9");
        refused(&with(1001, 0), "these are 1001");
        let secret = NewSession {
            secrets: vec![("S".to_owned(), Secret("x".repeat(200_000)))],
            ..NewSession::default()
        };
        refused(&secret, "the variable `S`");
    }
}
