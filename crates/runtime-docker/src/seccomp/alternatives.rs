//! Sets of arguments, as alternatives of which each is a list of `argument & mask == value`.
//!
//! That is all that the Engine's language can say without being misunderstood: conditions on
//! different arguments in one rule must all hold, rules of one call are alternatives, and two
//! conditions on the same argument cannot stand in one rule. So they are merged into one here.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// More than any call needs; a filter of thousands of rules would slow every call down.
const ALTERNATIVES_MAX: usize = 512;

/// By argument, the bits that are looked at and what they are.
type Bits = BTreeMap<u8, (u64, u64)>;

/// A set of arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Alternatives(Vec<Bits>);

impl Alternatives {
    /// Whatever the arguments are.
    pub(super) fn always() -> Self {
        Self(vec![Bits::new()])
    }

    /// No arguments at all.
    pub(super) fn never() -> Self {
        Self(Vec::new())
    }

    pub(super) fn is_always(&self) -> bool {
        self.0.iter().any(BTreeMap::is_empty)
    }

    pub(super) fn is_never(&self) -> bool {
        self.0.is_empty()
    }

    /// `argument & mask` is one of these.
    pub(super) fn one_of(argument: u8, mask: u32, values: &[u32]) -> Self {
        let bits = |value: &u32| Bits::from([(argument, (mask.into(), (*value).into()))]);
        Self(values.iter().map(bits).collect())
    }

    /// `argument & mask` is none of these. Bit by bit from the top: whatever first differs from
    /// all of them is spared, whatever its lower bits are.
    pub(super) fn none_of(argument: u8, mask: u32, values: &[u32]) -> Option<Self> {
        let mut spared = Vec::new();
        // What was fixed so far, and those that still look the same.
        let mut open: Vec<(u32, u32, Vec<u32>)> = vec![(0, 0, values.to_vec())];
        let bits = (0..32).rev().map(|bit| 1_u32 << bit);
        for bit in bits.filter(|bit| mask & bit != 0) {
            let mut next = Vec::new();
            for (fixed, value, alike) in open {
                for side in [0, bit] {
                    let (fixed, value) = (fixed | bit, value | side);
                    let alike: Vec<u32> = alike
                        .iter()
                        .copied()
                        .filter(|it| it & bit == side)
                        .collect();
                    if alike.is_empty() {
                        spared.push(Bits::from([(argument, (fixed.into(), value.into()))]));
                    } else {
                        next.push((fixed, value, alike));
                    }
                }
            }
            open = next;
            if open.len() + spared.len() > ALTERNATIVES_MAX {
                return None;
            }
        }
        Some(Self(spared))
    }

    /// No bit of the argument is set.
    pub(super) fn null(argument: u8) -> Self {
        Self(vec![Bits::from([(argument, (u64::MAX, 0))])])
    }

    /// Some bit of the argument is set.
    pub(super) fn not_null(argument: u8) -> Self {
        let bits = (0..u64::BITS).map(|bit| 1_u64 << bit);
        let set = bits.map(|bit| Bits::from([(argument, (bit, bit))]));
        Self(set.collect())
    }

    /// In either set.
    pub(super) fn or(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// In both sets; none when that cannot be said in few words.
    pub(super) fn and(&self, other: &Self) -> Option<Self> {
        if self.0.len().saturating_mul(other.0.len()) > ALTERNATIVES_MAX * ALTERNATIVES_MAX {
            return None;
        }
        let mut both = Vec::new();
        for one in &self.0 {
            both.extend(other.0.iter().filter_map(|two| merged(one, two)));
        }
        both.sort();
        both.dedup();
        (both.len() <= ALTERNATIVES_MAX).then_some(Self(both))
    }

    /// The arguments of each rule.
    pub(super) fn rules(&self) -> impl Iterator<Item = Value> + '_ {
        let all = self.is_always();
        let some = self.0.iter().filter(move |bits| !all || bits.is_empty());
        some.take(if all { 1 } else { usize::MAX })
            .map(|bits| bits.iter().map(condition).collect())
    }

    #[cfg(test)]
    pub(super) fn contains(&self, arguments: &[u64]) -> bool {
        self.0.iter().any(|bits| {
            bits.iter().all(|(argument, (mask, value))| {
                let given = arguments.get(usize::from(*argument)).copied();
                given.unwrap_or(0) & mask == *value
            })
        })
    }
}

/// None when they contradict each other.
fn merged(one: &Bits, two: &Bits) -> Option<Bits> {
    let mut both = one.clone();
    for (argument, (mask, value)) in two {
        let (known, is) = both.get(argument).copied().unwrap_or((0, 0));
        let shared = known & mask;
        if is & shared != value & shared {
            return None;
        }
        both.insert(*argument, (known | mask, is | value));
    }
    Some(both)
}

fn condition((argument, (mask, value)): (&u8, &(u64, u64))) -> Value {
    json!({
        "index": argument,
        "value": mask,
        "valueTwo": value,
        "op": "SCMP_CMP_MASKED_EQ",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_none_of_some_values_is_everything_else() {
        let values = [0x5412, 0x541c, 0x5423];
        let others = Alternatives::none_of(1, u32::MAX, &values).unwrap();
        for value in values {
            assert!(!others.contains(&[0, value.into()]), "{value:#x}");
        }
        for value in [0, 1, 0x5413, 0x5401, 0x541d, u32::MAX, 0x8000_5412] {
            assert!(others.contains(&[0, value.into()]), "{value:#x}");
        }
        let plain = Alternatives::none_of(0, 0o6000, &[0o2000, 0o4000, 0o6000]).unwrap();
        assert_eq!(plain, Alternatives(vec![Bits::from([(0, (0o6000, 0))])]));
    }

    #[test]
    fn a_pointer_is_null_when_all_of_its_bits_are_0() {
        let (null, given) = (Alternatives::null(2), Alternatives::not_null(2));
        for pointer in [0, 1, 1 << 31, 1 << 32, 1 << 63, u64::MAX] {
            assert_eq!(null.contains(&[4, 4, pointer]), pointer == 0);
            assert_eq!(given.contains(&[4, 4, pointer]), pointer != 0);
        }
    }

    #[test]
    fn both_is_what_each_says() {
        let one = Alternatives::one_of(0, u32::MAX, &[2, 10]);
        let two = Alternatives::one_of(1, 0xf, &[1]);
        let both = one.and(&two).unwrap();
        assert!(both.contains(&[2, 0x801]) && both.contains(&[10, 1]));
        assert!(!both.contains(&[2, 2]) && !both.contains(&[3, 1]));
        let other = Alternatives::one_of(0, 0xff, &[3]);
        assert!(one.and(&other).unwrap().is_never());
        let same = Alternatives::one_of(0, 0x8, &[8]);
        assert!(one.and(&same).unwrap().contains(&[10]));
    }

    #[test]
    fn always_is_one_rule_without_arguments() {
        let always = Alternatives::one_of(0, 1, &[1]).or(Alternatives::always());
        assert_eq!(always.rules().collect::<Vec<_>>(), [json!([])]);
        assert_eq!(Alternatives::never().rules().count(), 0);
    }
}
