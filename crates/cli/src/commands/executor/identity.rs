//! Who shells run as.
//!
//! As OpenHands does: a user is changed to, and made when missing, only by root and only when
//! `SU_TO_USER` does not forbid it. Otherwise shells run as whoever started us.

use zareba_config::ExecutorSettings;
use zareba_executor::{User, UserError};

use crate::{
    arguments::DEFAULT_USERNAME,
    exit::Exit,
    failure::{Failure, OrFail as _},
    say,
};

/// Who was asked for.
#[derive(Debug)]
pub(super) struct Wanted<'a> {
    pub(super) username: Option<&'a str>,
    pub(super) user_id: u32,
}

/// The user that shells will run as, made when that is called for.
pub(super) fn choose(wanted: &Wanted<'_>, settings: &ExecutorSettings) -> Result<User, Failure> {
    let us = User::current().or_fail(Exit::Start, "cannot find out who we are")?;
    let name = wanted.username.unwrap_or(DEFAULT_USERNAME);
    if name == us.name || !settings.su_to_user {
        return Ok(us);
    }
    if !rustix::process::geteuid().is_root() {
        // Nobody asked for the default, so nobody needs to know that it does not hold.
        if wanted.username.is_some() {
            say::note(format_args!(
                "shells run as `{}` and not as `{name}`, because only root can change the user",
                us.name
            ));
        }
        return Ok(us);
    }
    match (User::ensure(name, wanted.user_id), wanted.username) {
        (Ok(user), _) => Ok(user),
        (Err(error), None) => {
            say::note(format_args!("shells run as `{}`: {error}", us.name));
            Ok(us)
        }
        (Err(error), Some(_)) => Err(cannot_become(name, &error)),
    }
}

fn cannot_become(name: &str, error: &UserError) -> Failure {
    Failure::of(Exit::Start, error)
        .while_doing(format!("cannot run shells as `{name}`"))
        .hint("pass `--username root`, or set SU_TO_USER=false to run shells as yourself")
}
