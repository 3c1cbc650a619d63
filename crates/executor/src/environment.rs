//! What a shell's environment is made of.

use std::ffi::{OsStr, OsString};

use crate::User;

/// Our own variables, and those that hold a key to us; the workload has no use for them.
const WITHHELD: [&str; 3] = ["SESSION_API_KEY", "BASH_ENV", "ENV"];
const WITHHELD_PREFIX: &str = "ZAREBA_";

/// Capable, and known to every system that has a terminal database.
const TERMINAL: &str = "xterm-256color";

const SEARCH_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The environment of a user's shell: what we were started with, as OpenHands' clients expect,
/// less what is ours, plus what a login would set. For ourselves a login sets only what is
/// missing; another user's home is never ours.
///
/// The same input gives the same output in the same order, so that two runs of `env` agree.
pub fn shell_environment(
    inherited: impl IntoIterator<Item = (OsString, OsString)>,
    added: impl IntoIterator<Item = (OsString, OsString)>,
    user: &User,
) -> Vec<(OsString, OsString)> {
    let inherited = inherited
        .into_iter()
        .filter(|(name, _)| !is_withheld(name))
        .collect();
    let mut variables = Variables(inherited);
    let login = [
        ("HOME", user.home.as_os_str()),
        ("USER", user.name.as_ref()),
        ("LOGNAME", user.name.as_ref()),
        ("SHELL", user.shell.as_os_str()),
    ];
    for (name, value) in login {
        if user.credentials().is_some() || !variables.has(name) {
            variables.set(name.into(), value.into());
        }
    }
    variables.set("TERM".into(), TERMINAL.into());
    if !variables.has("PATH") {
        variables.set("PATH".into(), SEARCH_PATH.into());
    }
    if !sets_locale(&variables.0) {
        let (name, value) = DEFAULT_LOCALE;
        variables.set(name.into(), value.into());
    }
    for (name, value) in added {
        variables.set(name, value);
    }
    variables.0
}

/// What programs take texts for when nobody says anything else. Characters are all that this locale
/// has of its own; to name it for everything would have every program read a dozen files more when it
/// starts.
pub const DEFAULT_LOCALE: (&str, &str) = ("LC_CTYPE", "C.UTF-8");

/// Whether these variables say what texts are.
#[must_use]
pub fn sets_locale(variables: &[(OsString, OsString)]) -> bool {
    let names = ["LANG", "LC_ALL", "LC_CTYPE"];
    variables
        .iter()
        .any(|(name, _)| names.iter().any(|it| name == it))
}

struct Variables(Vec<(OsString, OsString)>);

impl Variables {
    fn has(&self, name: &str) -> bool {
        self.0
            .iter()
            .any(|(other, value)| other == name && !value.is_empty())
    }

    fn set(&mut self, name: OsString, value: OsString) {
        self.0.retain(|(other, _)| *other != name);
        self.0.push((name, value));
    }
}

fn is_withheld(name: &OsStr) -> bool {
    let bytes = name.as_encoded_bytes();
    WITHHELD.iter().any(|withheld| name == *withheld)
        || bytes.starts_with(WITHHELD_PREFIX.as_bytes())
        // An exported function of another shell would be parsed by ours before anything else.
        || bytes.starts_with(b"BASH_FUNC_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        pairs
            .iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect()
    }

    fn user() -> User {
        User {
            name: "agent".to_owned(),
            uid: u32::MAX - 7,
            gid: 1000,
            groups: vec![1000],
            home: "/home/user".into(),
            shell: "/bin/bash".into(),
        }
    }

    #[test]
    fn keys_to_ourselves_and_start_up_hooks_are_withheld_and_a_login_is_set() {
        let inherited = pairs(&[
            ("SESSION_API_KEY", "secret"),
            ("ZAREBA_LOG", "debug"),
            ("BASH_ENV", "/tmp/evil"),
            ("BASH_FUNC_ls%%", "() { evil; }"),
            ("APP_PORT_1", "50000"),
            ("USER", "root"),
            ("PATH", "/bin"),
        ]);
        let expected = pairs(&[
            ("APP_PORT_1", "50000"),
            ("PATH", "/bin"),
            ("HOME", "/home/user"),
            ("USER", "agent"),
            ("LOGNAME", "agent"),
            ("SHELL", "/bin/bash"),
            ("TERM", "xterm-256color"),
            ("LC_CTYPE", "C.UTF-8"),
        ]);
        assert_eq!(shell_environment(inherited, [], &user()), expected);
    }

    #[test]
    fn our_own_home_is_the_one_that_we_were_given() {
        let ourselves = User {
            uid: rustix::process::geteuid().as_raw(),
            ..user()
        };
        let found = shell_environment(
            pairs(&[("HOME", "/elsewhere"), ("PATH", "/bin"), ("LANG", "C")]),
            [],
            &ourselves,
        );
        let expected = pairs(&[
            ("HOME", "/elsewhere"),
            ("PATH", "/bin"),
            ("LANG", "C"),
            ("USER", "agent"),
            ("LOGNAME", "agent"),
            ("SHELL", "/bin/bash"),
            ("TERM", "xterm-256color"),
        ]);
        assert_eq!(found, expected);
    }

    #[test]
    fn what_the_operator_adds_wins() {
        let found = shell_environment(
            pairs(&[("LANG", "de_DE.UTF-8"), ("A", "1")]),
            pairs(&[("A", "2"), ("TERM", "dumb")]),
            &user(),
        );
        let value = |name: &str| {
            found
                .iter()
                .find(|(other, _)| other == name)
                .map(|(_, value)| value.clone())
        };
        assert_eq!(value("A"), Some("2".into()));
        assert_eq!(value("TERM"), Some("dumb".into()));
        assert_eq!(value("LANG"), Some("de_DE.UTF-8".into()));
        assert_eq!(value("PATH"), Some(SEARCH_PATH.into()));
    }
}
