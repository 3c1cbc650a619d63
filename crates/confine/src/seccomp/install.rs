//! Putting a filter into force.

use rustix::thread::SecureComputingMode;
use seccompiler::BpfProgram;

use super::error::SeccompError;

/// A filter for this architecture: plain instructions, which can be installed in any process.
///
/// Compiling costs about as much as installing. A process that starts many programs compiles once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompiledFilter {
    instructions: BpfProgram,
}

impl CompiledFilter {
    pub(super) fn new(instructions: BpfProgram) -> Self {
        Self { instructions }
    }

    #[cfg(test)]
    pub(super) fn as_slice(&self) -> &[seccompiler::sock_filter] {
        &self.instructions
    }

    /// How many instructions the kernel is given.
    pub fn instructions(&self) -> usize {
        self.instructions.len()
    }

    /// Puts the filter into force for this process, all of its threads, and whatever it becomes
    /// or starts. There is no way back. Sets `no_new_privs`, without which the kernel would let
    /// only root do this.
    ///
    /// Must come last: what follows has to live with the profile.
    ///
    /// # Errors
    /// When the kernel refuses it, or does not report it afterwards.
    pub fn install(&self) -> Result<(), SeccompError> {
        seccompiler::apply_filter_all_threads(&self.instructions)
            .map_err(|error| SeccompError::Install { source: Box::new(error) })?;
        match rustix::thread::secure_computing_mode() {
            Ok(SecureComputingMode::Filter) => Ok(()),
            Ok(_) | Err(_) => Err(SeccompError::NotInForce),
        }
    }
}
