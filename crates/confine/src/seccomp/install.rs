//! Putting a filter into force.

use rustix::thread::SecureComputingMode;
use seccompiler::{BpfProgram, sock_filter};

use super::{error::SeccompError, program::INSTRUCTIONS_MAX};

/// Bytes of one instruction: a code, two short jumps and an operand.
const INSTRUCTION_BYTES: usize = 8;

/// A filter for this architecture: plain instructions, which can be installed in any process.
///
/// Compiling reads the whole profile, which takes several times as long as installing. So whoever
/// starts many sandboxes compiles once, and hands the bytes to the processes that install them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompiledFilter {
    instructions: BpfProgram,
}

impl CompiledFilter {
    pub(super) fn new(instructions: BpfProgram) -> Self {
        Self { instructions }
    }

    #[cfg(test)]
    pub(super) fn as_slice(&self) -> &[sock_filter] {
        &self.instructions
    }

    /// The filter for another process on this machine.
    pub fn to_bytes(&self) -> Vec<u8> {
        let bytes = self.instructions.iter().flat_map(|instruction| {
            let [code_low, code_high] = instruction.code.to_le_bytes();
            let [a, b, c, d] = instruction.k.to_le_bytes();
            [
                code_low,
                code_high,
                instruction.jt,
                instruction.jf,
                a,
                b,
                c,
                d,
            ]
        });
        bytes.collect()
    }

    /// Takes over a filter from another process. It is the kernel that checks what it does.
    ///
    /// # Errors
    /// When it is not a whole number of instructions that the kernel would take.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SeccompError> {
        let (instructions, rest) = bytes.as_chunks::<INSTRUCTION_BYTES>();
        let is_whole = rest.is_empty() && (1..=INSTRUCTIONS_MAX).contains(&instructions.len());
        if !is_whole {
            return Err(SeccompError::NotAFilter { bytes: bytes.len() });
        }
        let read =
            |&[code_low, code_high, jt, jf, a, b, c, d]: &[u8; INSTRUCTION_BYTES]| sock_filter {
                code: u16::from_le_bytes([code_low, code_high]),
                jt,
                jf,
                k: u32::from_le_bytes([a, b, c, d]),
            };
        Ok(Self::new(instructions.iter().map(read).collect()))
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
        seccompiler::apply_filter_all_threads(&self.instructions).map_err(|error| {
            SeccompError::Install {
                source: Box::new(error),
            }
        })?;
        match rustix::thread::secure_computing_mode() {
            Ok(SecureComputingMode::Filter) => Ok(()),
            Ok(_) | Err(_) => Err(SeccompError::NotInForce),
        }
    }
}
