//! The token of a server that a command starts: given in a file or a variable, or made here and
//! kept in a file that only its owner can read. It is never an argument, which all users see.

use std::{
    fs::{self, DirBuilder, File},
    io::{self, Read as _, Write as _},
    net::{IpAddr, Ipv4Addr},
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;
use zareba_mcp::server::Token;
use zareba_wire::Endpoint;

use crate::{
    exit::Exit,
    failure::{Failure, OrFail as _},
};

/// What can be guessed is no token.
const BYTES_MIN: usize = 32;

/// What is longer is some other file.
const BYTES_MAX: usize = 4096;

/// A token, and who brought it.
pub(crate) struct ServerToken {
    secret: String,
    source: Source,
}

enum Source {
    File(PathBuf),
    Variable(&'static str),
    Made,
}

impl ServerToken {
    /// The one in a file.
    pub(crate) fn in_file(file: &Path) -> Result<Self, Failure> {
        let secret = read(file).or_fail(
            Exit::Usage,
            format!("cannot read the token in `{}`", file.display()),
        )?;
        Self::checked(secret.trim(), Source::File(file.to_owned()))
    }

    /// The one in a variable.
    pub(crate) fn in_variable(name: &'static str, value: &str) -> Result<Self, Failure> {
        Self::checked(value, Source::Variable(name))
    }

    /// A new one.
    pub(crate) fn made() -> Self {
        Self {
            secret: Token::generate(),
            source: Source::Made,
        }
    }

    fn checked(secret: &str, source: Source) -> Result<Self, Failure> {
        let is_plain = secret.bytes().all(|byte| byte.is_ascii_graphic());
        if secret.len() >= BYTES_MIN && is_plain {
            let secret = secret.to_owned();
            return Ok(Self { secret, source });
        }
        let place = match source {
            Source::File(file) => format!("in `{}`", file.display()),
            Source::Variable(name) => format!("in {name}"),
            Source::Made => "made here".to_owned(),
        };
        let what = match is_plain {
            true => format!("has fewer than {BYTES_MIN} characters"),
            false => "has spaces, or letters that are not ASCII".to_owned(),
        };
        let failure = Failure::new(Exit::Usage, format!("the token {place} {what}"));
        Err(failure.hint("`openssl rand -hex 32` makes a good one"))
    }

    /// What callers must show.
    pub(crate) fn secret(&self) -> &str {
        &self.secret
    }

    /// Says where callers find it, after keeping one that was made in a file of the state
    /// directory, for as long as the returned value lives. The file is named after what is served,
    /// and where.
    pub(crate) fn publish(
        &self,
        state: &Path,
        service: &str,
        endpoint: &Endpoint,
    ) -> Result<Whereabouts, Failure> {
        match &self.source {
            Source::File(file) => Ok(Whereabouts::Given(file.clone())),
            Source::Variable(name) => Ok(Whereabouts::Variable(name)),
            Source::Made => {
                let file = state.join(file_name(service, endpoint));
                let deed = format!("cannot keep the token in `{}`", file.display());
                keep(state, &file, &self.secret).or_fail(Exit::Start, deed)?;
                let secret = self.secret.clone();
                Ok(Whereabouts::Kept(Kept { file, secret }))
            }
        }
    }
}

/// One for each server that there can be beside others. The usual address is left out, and so is
/// that of all addresses, since nobody can have the port of one beside the other.
fn file_name(service: &str, endpoint: &Endpoint) -> String {
    let address = match endpoint {
        Endpoint::Tcp(address) => address,
        Endpoint::Unix(_) => return format!("{service}.token"),
    };
    let port = address.port();
    match address.ip() {
        IpAddr::V4(Ipv4Addr::LOCALHOST | Ipv4Addr::UNSPECIFIED) => {
            format!("{service}-{port}.token")
        }
        other => format!("{service}-{other}-{port}.token"),
    }
}

/// Where callers find a token.
#[derive(Debug)]
pub(crate) enum Whereabouts {
    /// In a file that somebody gave us.
    Given(PathBuf),
    /// In a variable that they gave us.
    Variable(&'static str),
    /// In a file of ours.
    Kept(Kept),
}

impl Whereabouts {
    /// The file, if it is in one.
    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            Self::Given(file) | Self::Kept(Kept { file, .. }) => Some(file),
            Self::Variable(_) => None,
        }
    }

    /// Words of a shell that stand for the token.
    pub(crate) fn in_shell(&self) -> String {
        match (self, self.file()) {
            (_, Some(file)) => {
                let file = file.display().to_string();
                format!("$(cat {})", crate::quote::quote(&file))
            }
            (Self::Variable(name), None) => format!("${name}"),
            (_, None) => String::new(),
        }
    }
}

/// A file with a token that is valid as long as this lives.
pub(crate) struct Kept {
    file: PathBuf,
    secret: String,
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Kept").field(&self.file).finish()
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // A server that took our port over may have its own there by now.
        if read(&self.file).is_ok_and(|text| text.trim() == self.secret) {
            let _ = fs::remove_file(&self.file);
        }
    }
}

fn read(file: &Path) -> io::Result<String> {
    let mut text = String::new();
    let limit = u64::try_from(BYTES_MAX).unwrap_or(u64::MAX);
    File::open(file)?
        .take(limit + 1)
        .read_to_string(&mut text)?;
    if text.len() > BYTES_MAX {
        let message = format!("it is longer than {BYTES_MAX} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    Ok(text)
}

/// Readers see the whole file or none; temporary files are made for their owner alone.
fn keep(state: &Path, file: &Path, secret: &str) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(state)?;
    let mut written = NamedTempFile::new_in(state)?;
    writeln!(written, "{secret}")?;
    written.persist(file)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn at(address: &str) -> Endpoint {
        Endpoint::Tcp(address.parse().unwrap())
    }

    #[test]
    fn servers_beside_each_other_have_files_of_their_own() {
        let state = tempfile::tempdir().unwrap();
        let places = [
            ("tools", "127.0.0.1:8000", "tools-8000.token"),
            ("tools", "127.0.0.2:8000", "tools-127.0.0.2-8000.token"),
            ("tools", "[::1]:8000", "tools-::1-8000.token"),
            ("tools", "0.0.0.0:8001", "tools-8001.token"),
            ("mcp", "127.0.0.1:8002", "mcp-8002.token"),
        ];
        let tokens = places.map(|(service, address, name)| {
            let token = ServerToken::made();
            let known = token.publish(state.path(), service, &at(address)).unwrap();
            assert_eq!(known.file().unwrap(), state.path().join(name));
            (token, known)
        });
        for (token, known) in &tokens {
            let kept = fs::read_to_string(known.file().unwrap()).unwrap();
            assert_eq!(kept.trim(), token.secret());
        }
    }

    #[test]
    fn what_is_made_is_in_a_file_of_its_owner_as_long_as_it_is_valid_hs_2() {
        let state = tempfile::tempdir().unwrap();
        let token = ServerToken::made();
        let known = token
            .publish(state.path(), "tools", &at("127.0.0.1:1"))
            .unwrap();
        let file = known.file().unwrap().to_owned();
        assert_eq!(
            fs::read_to_string(&file).unwrap(),
            format!("{}\n", token.secret())
        );
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let again = ServerToken::in_file(&file).unwrap();
        assert_eq!(again.secret(), token.secret());
        assert_ne!(ServerToken::made().secret(), token.secret());
        drop(known);
        assert_eq!(fs::read_dir(state.path()).unwrap().count(), 0);
    }

    #[test]
    fn the_token_of_whoever_came_after_us_stays() {
        let state = tempfile::tempdir().unwrap();
        let (first, second) = (ServerToken::made(), ServerToken::made());
        let ours = first
            .publish(state.path(), "tools", &at("127.0.0.1:1"))
            .unwrap();
        let theirs = second
            .publish(state.path(), "tools", &at("127.0.0.1:1"))
            .unwrap();
        drop(ours);
        let left = fs::read_to_string(theirs.file().unwrap()).unwrap();
        assert_eq!(left.trim(), second.secret());
    }

    #[test]
    fn what_somebody_gave_stays_where_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("it's");
        fs::write(&file, format!("  {}\n", "x".repeat(32))).unwrap();
        let token = ServerToken::in_file(&file).unwrap();
        assert_eq!(token.secret(), "x".repeat(32));
        let known = token
            .publish(directory.path(), "unused", &at("[::1]:1"))
            .unwrap();
        assert!(known.in_shell().ends_with(r"it'\''s')"), "{known:?}");
        drop(known);
        assert!(file.exists());
        let token = ServerToken::in_variable("NAME", &"y".repeat(32)).unwrap();
        let known = token
            .publish(directory.path(), "unused", &at("[::1]:1"))
            .unwrap();
        assert_eq!((known.in_shell().as_str(), known.file()), ("$NAME", None));
    }

    #[test]
    fn what_can_be_guessed_or_not_be_sent_is_refused_hs_2() {
        for secret in [
            "",
            &"x".repeat(31),
            &format!("{} y", "x".repeat(32)),
            &"é".repeat(32),
        ] {
            assert!(
                ServerToken::in_variable("NAME", secret).is_err(),
                "{secret}"
            );
        }
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("long");
        fs::write(&file, "x".repeat(BYTES_MAX + 1)).unwrap();
        assert!(ServerToken::in_file(&file).is_err());
        assert!(ServerToken::in_file(directory.path()).is_err());
    }
}
