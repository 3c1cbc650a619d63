//! Who shells run as.
//!
//! The user database is read from `/etc` directly: a static program cannot load the modules
//! that the C library would use, and a container has nothing else.

use std::{io, path::PathBuf, process::Command};

use zareba_terminal::Credentials;

use crate::Owner;

/// A user of this system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Login name.
    pub name: String,
    /// User number.
    pub uid: u32,
    /// Group number.
    pub gid: u32,
    /// All groups, the first one included.
    pub groups: Vec<u32>,
    /// Home directory.
    pub home: PathBuf,
    /// Login shell.
    pub shell: PathBuf,
}

/// Why a user cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum UserError {
    /// The database cannot be read.
    #[error("cannot read `{path}`")]
    Read {
        /// Which file.
        path: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// There is no such user, and only root could make one.
    #[error(
        "there is no user `{name}` here and making one takes root; start as root or pass `--username` of an existing user"
    )]
    Missing {
        /// Who was asked for.
        name: String,
    },
    /// The user could not be made.
    #[error("cannot make the user `{name}` with `{program}`: {detail}")]
    Create {
        /// Who was asked for.
        name: String,
        /// What was tried.
        program: &'static str,
        /// What it said.
        detail: String,
    },
    /// We are somebody else, and not root.
    #[error("cannot run shells as `{name}` without being root; start as root or as that user")]
    NotRoot {
        /// Who was asked for.
        name: String,
    },
    /// A name that no database would take.
    #[error(
        "`{name}` is not a user name: use up to 32 of a-z, 0-9, `_` and `-`, a letter or `_` first"
    )]
    InvalidName {
        /// What was asked for.
        name: String,
    },
}

impl User {
    /// Whoever we are. A number without an entry in the database gets a name made of it; root is
    /// root everywhere, also where there is no database.
    ///
    /// # Errors
    /// When the database is there and cannot be read.
    pub fn current() -> Result<Self, UserError> {
        let uid = rustix::process::getuid().as_raw();
        let gid = rustix::process::getgid().as_raw();
        let known = Database::read()?.find(|entry| entry.uid == uid);
        let (name, home) = match uid {
            0 => ("root".to_owned(), "/root"),
            uid => (uid.to_string(), "/"),
        };
        Ok(known.unwrap_or_else(|| Self {
            name,
            uid,
            gid,
            groups: vec![gid],
            home: PathBuf::from(home),
            shell: PathBuf::from("/bin/sh"),
        }))
    }

    /// The user `name`, made with number `uid` when missing and we are root.
    ///
    /// # Errors
    /// When there is no such user and none can be made, or we may not become it.
    pub fn ensure(name: &str, uid: u32) -> Result<Self, UserError> {
        if !is_user_name(name) {
            return Err(UserError::InvalidName {
                name: name.to_owned(),
            });
        }
        let is_root = rustix::process::geteuid().is_root();
        if let Some(user) = Database::read()?.find(|entry| entry.name == name) {
            let is_us = user.uid == rustix::process::getuid().as_raw();
            if is_us || is_root {
                return Ok(user);
            }
            return Err(UserError::NotRoot {
                name: name.to_owned(),
            });
        }
        if !is_root {
            return Err(UserError::Missing {
                name: name.to_owned(),
            });
        }
        create(name, uid)?;
        Database::read()?
            .find(|entry| entry.name == name)
            .ok_or_else(|| UserError::Missing {
                name: name.to_owned(),
            })
    }

    /// What a program needs to become this user; nothing when we are it already.
    pub fn credentials(&self) -> Option<Credentials> {
        let is_us = self.uid == rustix::process::geteuid().as_raw();
        (!is_us).then(|| Credentials {
            uid: self.uid,
            gid: self.gid,
            groups: self.groups.clone(),
        })
    }

    /// Whom files made for this user belong to.
    pub fn owner(&self) -> Owner {
        match self.credentials() {
            Some(Credentials { uid, gid, .. }) => Owner::User { uid, gid },
            None => Owner::Ourselves,
        }
    }
}

fn is_user_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    let first = bytes
        .next()
        .is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    first
        && name.len() <= 32
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
}

/// Makes a user, with the tools of a distribution or those of busybox.
fn create(name: &str, uid: u32) -> Result<(), UserError> {
    let (home, uid) = (format!("/home/{name}"), uid.to_string());
    let useradd: &[&str] = &[
        "-m",
        "-d",
        &home,
        "-s",
        "/bin/bash",
        "-g",
        "root",
        "-u",
        &uid,
        name,
    ];
    let adduser: &[&str] = &[
        "-D", "-h", &home, "-s", "/bin/sh", "-G", "root", "-u", &uid, name,
    ];
    match run("useradd", useradd) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        result => return created("useradd", name, result),
    }
    created("adduser", name, run("adduser", adduser))
}

fn run(program: &str, arguments: &[&str]) -> io::Result<std::process::Output> {
    Command::new(program)
        .args(arguments)
        .stdin(std::process::Stdio::null())
        .output()
}

fn created(
    program: &'static str,
    name: &str,
    result: io::Result<std::process::Output>,
) -> Result<(), UserError> {
    let detail = match result {
        Ok(output) if output.status.success() => return Ok(()),
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) => error.to_string(),
    };
    Err(UserError::Create {
        name: name.to_owned(),
        program,
        detail,
    })
}

/// `/etc/passwd` and `/etc/group`.
struct Database {
    passwd: String,
    group: String,
}

impl Database {
    fn read() -> Result<Self, UserError> {
        Ok(Self {
            passwd: read("/etc/passwd")?,
            group: read("/etc/group")?,
        })
    }

    fn find(&self, wanted: impl Fn(&User) -> bool) -> Option<User> {
        self.passwd
            .lines()
            .filter_map(|line| self.parse(line))
            .find(wanted)
    }

    fn parse(&self, line: &str) -> Option<User> {
        let mut fields = line.split(':');
        let name = fields.next()?.to_owned();
        let uid = fields.nth(1)?.parse().ok()?;
        let gid = fields.next()?.parse().ok()?;
        let home = PathBuf::from(fields.nth(1)?);
        let shell = PathBuf::from(
            fields
                .next()
                .filter(|shell| !shell.is_empty())
                .unwrap_or("/bin/sh"),
        );
        let groups = self.groups_of(&name, gid);
        Some(User {
            name,
            uid,
            gid,
            groups,
            home,
            shell,
        })
    }

    fn groups_of(&self, name: &str, first: u32) -> Vec<u32> {
        let others = self.group.lines().filter_map(|line| {
            let mut fields = line.split(':');
            let gid: u32 = fields.nth(2)?.parse().ok()?;
            fields
                .next()?
                .split(',')
                .any(|member| member == name)
                .then_some(gid)
        });
        let mut groups: Vec<u32> = std::iter::once(first).chain(others).collect();
        groups.dedup();
        groups
    }
}

/// A container made from one file has no database, and that is fine.
fn read(path: &'static str) -> Result<String, UserError> {
    match std::fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        result => result.map_err(|source| UserError::Read { path, source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn database() -> Database {
        Database {
            passwd: "root:x:0:0:root:/root:/bin/bash\nbroken\nagent:x:1000:0::/home/user:\n"
                .to_owned(),
            group: "root:x:0:\nsudo:x:27:other,agent\nagent2:x:28:agent2\n".to_owned(),
        }
    }

    #[test]
    fn a_user_has_the_groups_that_name_it_and_a_shell_in_any_case() {
        let expected = User {
            name: "agent".to_owned(),
            uid: 1000,
            gid: 0,
            groups: vec![0, 27],
            home: PathBuf::from("/home/user"),
            shell: PathBuf::from("/bin/sh"),
        };
        assert_eq!(database().find(|user| user.name == "agent"), Some(expected));
        assert_eq!(database().find(|user| user.name == "nobody"), None);
    }

    #[test]
    fn names_that_would_be_options_or_paths_are_refused() {
        for name in ["", "-m", "a/b", "a b", "1a", "a:b", &"x".repeat(33)] {
            assert!(
                matches!(User::ensure(name, 1), Err(UserError::InvalidName { .. })),
                "{name}"
            );
        }
    }

    #[test]
    fn we_are_somebody() {
        let user = User::current().unwrap();
        assert_eq!(user.uid, rustix::process::getuid().as_raw());
        assert_eq!(user.credentials(), None);
    }
}
