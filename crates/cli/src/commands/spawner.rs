//! `zareba spawner`: stands ready to become the supervisors of a server's sandboxes.

use zareba_runtime_native::serve_spawner;

use crate::{
    exit::Exit,
    failure::{Failure, OrFail as _},
    logging,
};

/// Starts supervisors until whoever has started us is gone.
pub(super) fn perform() -> Result<Exit, Failure> {
    zareba_confine::close_inherited().or_fail(Exit::Start, "cannot close what was left open")?;
    std::env::set_current_dir("/").or_fail(Exit::Start, "cannot leave the current directory")?;
    prepare();
    serve_spawner(super::run_as_process).or_fail(Exit::Failure, "cannot take orders any more")?;
    Ok(Exit::Success)
}

/// What every supervisor and its executor would put together for themselves.
fn prepare() {
    logging::prepare();
    zareba_config::prepare();
}
