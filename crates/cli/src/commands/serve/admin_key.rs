//! The key that the first start makes.

use std::{
    fs::File,
    io::{self, Read as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use zareba_server::CreatedKey;

use super::address::replace;
use crate::{
    exit::Exit,
    failure::{Failure, OrFail as _},
};

/// The name of the file that holds it.
const FILE: &str = "admin.key";
/// A file with fewer bytes was emptied or cut off: no key of ours is so short (HS-2).
const KEY_BYTES_MIN: usize = 32;
/// The longest key worth reading.
const KEY_BYTES_MAX: u64 = 4096;
/// Writing by the group, and anything by all others.
const OPEN_TO_OTHERS: u32 = 0o027;

/// Keeps the key that the server has just made, if it did, where only the owner of the state
/// directory can read it. Returns where a key is, if there is one.
pub(super) fn keep(first: Option<&CreatedKey>, state: &Path) -> Result<Option<PathBuf>, Failure> {
    let file = state.join(FILE);
    if let Some(created) = first {
        let secret = format!("{}\n", created.secret.0);
        replace(&file, secret.as_bytes())
            .or_fail(Exit::Start, format!("cannot write `{}`", file.display()))?;
    }
    Ok(open(&file, Exit::Start)?.map(|_| file))
}

/// The key of the administrator on this machine.
pub(super) fn read(state: &Path) -> Result<String, Failure> {
    let file = state.join(FILE);
    let key = open(&file, Exit::Failure)?;
    key.ok_or_else(|| {
        let missing = io::Error::from(io::ErrorKind::NotFound);
        let message = format!("cannot read `{}`: {missing}", file.display());
        Failure::new(Exit::Failure, message)
    })
}

/// The key in a file that is fit to hold one; `None` when there is no file.
fn open(path: &Path, exit: Exit) -> Result<Option<String>, Failure> {
    let deed = || format!("cannot read `{}`", path.display());
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.or_fail(exit, deed())?,
    };
    let mode = file.metadata().or_fail(exit, deed())?.permissions().mode();
    if mode & OPEN_TO_OTHERS != 0 {
        let message = format!(
            "`{}` can be used by other users of this machine",
            path.display()
        );
        return Err(Failure::new(exit, message).hint(format!(
            "run `chmod 600 {}`; if somebody may have read the key, replace it as well: stop the \
             server, remove the key (`zareba key ls`, `zareba key rm KEY`) and start the server \
             again, which makes another",
            path.display()
        )));
    }
    let mut text = String::new();
    file.take(KEY_BYTES_MAX)
        .read_to_string(&mut text)
        .or_fail(exit, deed())?;
    let key = text.trim();
    if key.len() < KEY_BYTES_MIN {
        let message = format!("`{}` holds no whole key", path.display());
        return Err(Failure::new(exit, message).hint(format!(
            "stop the server, remove the key (`zareba key ls`, `zareba key rm KEY`) and the file \
             (`rm {}`), and start the server again, which makes another",
            path.display()
        )));
    }
    Ok(Some(key.to_owned()))
}
