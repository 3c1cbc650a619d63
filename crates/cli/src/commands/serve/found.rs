//! The server that runs on this machine, found by its state directory.

use std::path::Path;

use zareba_client::{Address, ApiKey, Client};

use super::{Published, address::Found, admin_key};
use crate::{
    exit::Exit,
    failure::{Failure, OrFail as _},
};

/// A client of the server that uses a state directory, with the administrator's key.
pub(crate) fn local_client(state: &Path) -> Result<Client, Failure> {
    let found = Published::find(state).ok_or_else(|| {
        let message = format!(
            "the server of `{}` does not say where it is",
            state.display()
        );
        Failure::new(Exit::Lost, message).hint("it may be starting: try again")
    })?;
    connect(&found.url, &admin_key::read(state)?)
}

/// A client of a server anywhere. Without a key it must be the one of our own state directory,
/// whose key we can read.
pub(crate) fn server_client(url: &str, key: Option<&str>, state: &Path) -> Result<Client, Failure> {
    if let Some(key) = key {
        return connect(url, key);
    }
    let is_ours = |found: &Found| found.url.trim_end_matches('/') == url.trim_end_matches('/');
    if Published::find(state).as_ref().is_some_and(is_ours) {
        return local_client(state);
    }
    let message = format!("there is no key for the server `{url}`");
    Err(Failure::new(Exit::Usage, message)
        .hint("set ZAREBA_API_KEY to one that `zareba key create` has made there"))
}

fn connect(url: &str, key: &str) -> Result<Client, Failure> {
    let deed = format!("cannot use the server `{url}`");
    let address = Address::parse(url).or_fail(Exit::Usage, deed.clone())?;
    let key = ApiKey::new(key)
        .ok_or_else(|| Failure::new(Exit::Usage, "the key has characters that no key has"))?;
    Client::new(address, key).or_fail(Exit::Failure, deed)
}
