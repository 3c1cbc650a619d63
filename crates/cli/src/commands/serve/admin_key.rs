//! The key that the first start makes.

use std::path::{Path, PathBuf};

use zareba_server::CreatedKey;

use super::address::replace;
use crate::{
    exit::Exit,
    failure::{Failure, OrFail as _},
};

/// The name of the file that holds it.
const FILE: &str = "admin.key";

/// Where the key of the administrator is on this machine.
pub(crate) fn file(state: &Path) -> PathBuf {
    state.join(FILE)
}

/// Keeps the key that the server has just made, if it did, where only the owner of the state
/// directory can read it. Returns where a key is, if there is one.
pub(super) fn keep(first: Option<&CreatedKey>, state: &Path) -> Result<Option<PathBuf>, Failure> {
    let file = file(state);
    if let Some(created) = first {
        let secret = format!("{}\n", created.secret.0);
        replace(&file, secret.as_bytes())
            .or_fail(Exit::Start, format!("cannot write `{}`", file.display()))?;
    }
    Ok(file.exists().then_some(file))
}
