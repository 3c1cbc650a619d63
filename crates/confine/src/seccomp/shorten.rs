//! The same filter in fewer instructions, of which the kernel checks, translates and tries each one
//! when a filter is installed.
//!
//! Jumps lead only forward. So a filter is written anew from its end, where every place that can be
//! jumped to is known: a jump to a jump leads to where that one does, and verdicts stand once for all
//! that are near enough.

use std::collections::HashMap;

use seccompiler::{BpfProgram, sock_filter};

use super::program::{
    AND, JUMP, JUMP_IF_AT_LEAST, JUMP_IF_EQUAL, LOAD, RETURN, Verdict, branch, finish, statement,
};

/// How many instructions a conditional jump can pass.
const REACH: usize = u8::MAX as usize;

/// Shortens a filter that the kernel would take. One that does what is unknown here stays as it is.
pub(super) fn shorten(program: &[sock_filter]) -> BpfProgram {
    const KNOWN: [u16; 6] = [LOAD, AND, JUMP, JUMP_IF_EQUAL, JUMP_IF_AT_LEAST, RETURN];
    if !program.iter().all(|each| KNOWN.contains(&each.code)) {
        return program.to_vec();
    }
    let mut writer = Writer {
        program,
        written: Vec::new(),
        places: HashMap::new(),
        verdicts: HashMap::new(),
    };
    let live = writer.live();
    for at in (0..program.len()).rev().filter(|at| live[*at]) {
        writer.write(at);
    }
    if writer.written.is_empty() {
        // Nothing but a verdict.
        writer.bring_near(writer.end_of_jumps(0));
    }
    writer.written.reverse();
    writer.written
}

struct Writer<'a> {
    program: &'a [sock_filter],
    /// The last one first.
    written: BpfProgram,
    /// Where instructions are in it, or jumps to them.
    places: HashMap<usize, usize>,
    /// Where verdicts are.
    verdicts: HashMap<u32, usize>,
}

impl Writer<'_> {
    /// Which instructions are ever reached, apart from jumps.
    fn live(&self) -> Vec<bool> {
        let mut live = vec![false; self.program.len()];
        let mut next = vec![self.end_of_jumps(0)];
        while let Some(at) = next.pop() {
            if std::mem::replace(&mut live[at], true) {
                continue;
            }
            match self.program[at].code {
                RETURN => {}
                JUMP_IF_EQUAL | JUMP_IF_AT_LEAST => next.extend(self.branches(at)),
                _ => next.push(self.end_of_jumps(at + 1)),
            }
        }
        live
    }

    fn end_of_jumps(&self, mut at: usize) -> usize {
        while self.program[at].code == JUMP {
            at += 1 + self.program[at].k as usize;
        }
        at
    }

    fn branches(&self, at: usize) -> [usize; 2] {
        let sock_filter { jt, jf, .. } = self.program[at];
        [jt, jf].map(|distance| self.end_of_jumps(at + 1 + usize::from(distance)))
    }

    fn write(&mut self, at: usize) {
        let sock_filter { code, k, .. } = self.program[at];
        match code {
            // Written where it is needed.
            RETURN => return,
            JUMP_IF_EQUAL | JUMP_IF_AT_LEAST => {
                let branches = self.branches(at);
                let [if_true, if_false] = loop {
                    match self.distances(branches) {
                        Ok(distances) => break distances,
                        Err(target) => self.bring_near(target),
                    }
                };
                self.written.push(branch(code, k, if_true, if_false));
            }
            _ => {
                let next = self.end_of_jumps(at + 1);
                if self.distance(next) != Some(0) {
                    self.bring_near(next);
                }
                self.written.push(statement(code, k));
            }
        }
        self.places.insert(at, self.written.len() - 1);
    }

    /// How many instructions the next one to be written has to pass to get there.
    fn distance(&self, target: usize) -> Option<usize> {
        let instruction = &self.program[target];
        let place = match instruction.code {
            RETURN => self.verdicts.get(&instruction.k),
            _ => self.places.get(&target),
        };
        place.map(|place| self.written.len() - 1 - place)
    }

    /// The distances to two targets, or the first that no conditional jump reaches.
    fn distances(&self, targets: [usize; 2]) -> Result<[u8; 2], usize> {
        let reach = |target| {
            let distance = self.distance(target).filter(|distance| *distance <= REACH);
            distance
                .and_then(|distance| u8::try_from(distance).ok())
                .ok_or(target)
        };
        Ok([reach(targets[0])?, reach(targets[1])?])
    }

    /// Writes a verdict once more, or a jump, which reaches anything.
    fn bring_near(&mut self, target: usize) {
        let sock_filter { code, k, .. } = self.program[target];
        let place = self.written.len();
        if code == RETURN {
            self.written.push(finish(Verdict(k)));
            self.verdicts.insert(k, place);
            return;
        }
        let distance = self.distance(target).unwrap_or_default();
        let distance = u32::try_from(distance).unwrap_or(u32::MAX);
        self.written.push(statement(JUMP, distance));
        self.places.insert(target, place);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{
        super::{
            compile::{compile, compile_at_length},
            install::CompiledFilter,
            profile::{Permissions, SeccompProfile},
            program::{ARCHITECTURE_OFFSET, NUMBER_OFFSET},
            simulator::{self, Call},
        },
        *,
    };

    fn verdict(filter: &CompiledFilter, call: Call) -> Verdict {
        simulator::run(filter, call).0
    }

    /// An instruction with so many behind it.
    fn instruction(left: usize) -> BoxedStrategy<sock_filter> {
        let offset = prop_oneof![Just(NUMBER_OFFSET), Just(ARCHITECTURE_OFFSET), Just(16)];
        let far = u8::try_from(left - 1).unwrap_or(u8::MAX);
        let condition = prop_oneof![Just(JUMP_IF_EQUAL), Just(JUMP_IF_AT_LEAST)];
        prop_oneof![
            2 => offset.prop_map(|offset| statement(LOAD, offset)),
            1 => (0..8_u32).prop_map(|mask| statement(AND, mask)),
            6 => (condition, 0..8_u32, 0..=far, 0..=far)
                .prop_map(|(code, k, if_true, if_false)| branch(code, k, if_true, if_false)),
            2 => (0..left).prop_map(|k| statement(JUMP, u32::try_from(k).unwrap())),
            1 => (0..4_u32).prop_map(|k| finish(Verdict(k))),
        ]
        .boxed()
    }

    fn program() -> impl Strategy<Value = BpfProgram> {
        let instructions = |length: usize| (1..=length).rev().map(instruction).collect::<Vec<_>>();
        (0..700_usize)
            .prop_flat_map(instructions)
            .prop_map(|mut program| {
                program.push(finish(Verdict(4)));
                program
            })
    }

    fn call() -> impl Strategy<Value = Call> {
        (0..8_u32, 0..8_u32, 0..8_u64).prop_map(|(number, architecture, argument)| Call {
            architecture,
            number,
            arguments: [argument; 6],
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn a_shorter_program_decides_the_same(
            program in program(),
            calls in proptest::collection::vec(call(), 32),
        ) {
            let shorter = shorten(&program);
            prop_assert!(shorter.len() <= program.len());
            let [shorter, program] = [shorter, program].map(CompiledFilter::new);
            for call in calls {
                prop_assert_eq!(verdict(&shorter, call), verdict(&program, call), "{:?}", call);
            }
        }
    }

    #[test]
    fn what_is_unknown_stays() {
        /// `BPF_JMP | BPF_JSET | BPF_K`.
        const JUMP_IF_ANY: u16 = 0x45;
        let allow = || finish(Verdict::ALLOW);
        let program = vec![
            statement(LOAD, NUMBER_OFFSET),
            branch(JUMP_IF_ANY, 1, 1, 0),
            allow(),
            allow(),
        ];
        assert_eq!(shorten(&program), program);
    }

    #[test]
    fn the_builtin_profile_decides_the_same_in_much_fewer_instructions() {
        let profile = SeccompProfile::parse(include_str!("profile.toml")).unwrap();
        for chosen in 0..8 {
            let permissions = Permissions {
                debugging: chosen & 1 != 0,
                user_namespaces: chosen & 2 != 0,
                set_id_files: chosen & 4 != 0,
            };
            let whole = compile_at_length(&profile, permissions).unwrap();
            let shorter = compile(&profile, permissions).unwrap();
            assert!(shorter.len() * 3 < whole.len() * 2, "{}", shorter.len());
            let architecture = whole[1].k;
            let mut values: Vec<u32> = whole.iter().map(|instruction| instruction.k).collect();
            values.sort_unstable();
            values.dedup();
            let [shorter, whole] = [shorter, whole].map(CompiledFilter::new);
            for number in (0..600).chain([0x4000_0000, u32::MAX]) {
                for &value in &values {
                    for also in [0, 1, 2, 10, value] {
                        let (value, also) = (value.into(), also.into());
                        let call = Call {
                            architecture,
                            number,
                            arguments: [also, value, also, value, also, value],
                        };
                        assert_eq!(verdict(&shorter, call), verdict(&whole, call), "{call:?}");
                    }
                }
            }
        }
    }
}
