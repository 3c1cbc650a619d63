//! The kernel's filter machine in a few lines, so that tests can ask a filter about any call
//! without making it.

use super::{
    install::CompiledFilter,
    program::{AND, JUMP, JUMP_IF_AT_LEAST, JUMP_IF_EQUAL, LOAD, RETURN, Verdict},
};

/// One system call, as a filter sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub(super) architecture: u32,
    pub(super) number: u32,
    pub(super) arguments: [u64; 6],
}

impl Call {
    /// The 32-bit word at an offset of `struct seccomp_data`.
    fn word(self, offset: u32) -> u32 {
        match offset {
            0 => self.number,
            4 => self.architecture,
            16..64 => {
                let argument = self.arguments[(offset as usize - 16) / 8];
                let half = if offset.is_multiple_of(8) { 0 } else { 32 };
                u32::try_from((argument >> half) & 0xffff_ffff).unwrap()
            }
            _ => panic!("a filter reads nothing at {offset}"),
        }
    }
}

/// What the filter returns for a call, and after how many instructions.
pub(super) fn run(filter: &CompiledFilter, call: Call) -> (Verdict, usize) {
    let program = filter.as_slice();
    let (mut at, mut accumulator) = (0, 0);
    for steps in 1..=program.len() {
        let instruction = &program[at];
        at += 1;
        let k = instruction.k;
        let taken = match instruction.code {
            LOAD => {
                accumulator = call.word(k);
                0
            }
            AND => {
                accumulator &= k;
                0
            }
            JUMP => k,
            JUMP_IF_EQUAL if accumulator == k => instruction.jt.into(),
            JUMP_IF_AT_LEAST if accumulator >= k => instruction.jt.into(),
            JUMP_IF_EQUAL | JUMP_IF_AT_LEAST => instruction.jf.into(),
            RETURN => return (Verdict(k), steps),
            other => panic!("instruction {other:#x} is not simulated"),
        };
        at += taken as usize;
    }
    panic!("a filter ends after at most as many steps as it has instructions")
}
