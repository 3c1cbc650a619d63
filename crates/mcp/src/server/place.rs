//! What a server of tools drives: anything that takes actions.

use zareba_protocol::{ActionEvent, ObservationEvent};
use zareba_wire::BoxFuture;

/// Why a place gave no answer. The text is for the model that asked.
pub use zareba_wire::program::PlaceError;

/// A place where actions are performed: a sandbox, or a session of a server.
///
/// Every method may be called from many tasks at once. Dropping a future leaves a command
/// running, as after a timeout.
pub trait Workplace: Send + Sync + 'static {
    /// The directory to work in, as programs inside see it.
    fn workspace(&self) -> String;

    /// Performs one action.
    fn run(&self, action: ActionEvent) -> BoxFuture<'_, Result<ObservationEvent, PlaceError>>;

    /// What has changed in the workspace, or below a path of it, as a patch.
    fn patch(&self, path: Option<String>) -> BoxFuture<'_, Result<Vec<u8>, PlaceError>>;

    /// Names in a directory: directories first, with a slash behind, then files.
    fn list(&self, path: Option<String>) -> BoxFuture<'_, Result<Vec<String>, PlaceError>>;
}
