//! Which names were resolved to which addresses for this sandbox: the only pairs that a rule by
//! name opens (EG-4).

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use crate::host::HostName;

/// Pairs that are remembered; the one that would expire next makes room for a new one.
pub(crate) const PAIRS_MAX: usize = 4096;
/// Shortest memory. Programs keep an address for longer than its TTL says, and a pair that has
/// outlived it is still a pair that we resolved and judged.
const MEMORY_MIN: Duration = Duration::from_secs(600);
/// Longest memory, whatever a TTL says.
const MEMORY_MAX: Duration = Duration::from_secs(24 * 3600);

/// The pairs of one sandbox. Time is passed in.
#[derive(Debug, Default)]
pub(crate) struct Resolved {
    names: HashMap<IpAddr, Vec<Entry>>,
    pairs: usize,
}

#[derive(Debug)]
struct Entry {
    name: HostName,
    until: Instant,
}

impl Resolved {
    /// Remembers that `name` was resolved to `address`.
    pub(crate) fn insert(&mut self, name: &HostName, address: IpAddr, ttl: Duration, now: Instant) {
        let until = now + ttl.clamp(MEMORY_MIN, MEMORY_MAX);
        if self.pairs >= PAIRS_MAX {
            self.make_room(now);
        }
        let entries = self.names.entry(address).or_default();
        let known = entries.len();
        entries.retain(|entry| entry.name != *name);
        // The latest is last.
        entries.push(Entry {
            name: name.clone(),
            until,
        });
        self.pairs = self.pairs + entries.len() - known;
    }

    /// Whether `name` was resolved to `address` and that is still remembered.
    pub(crate) fn contains(&self, name: &HostName, address: IpAddr, now: Instant) -> bool {
        self.names_of(address, now).any(|known| known == name)
    }

    /// The names that were resolved to `address`, the latest first.
    pub(crate) fn names_of(
        &self,
        address: IpAddr,
        now: Instant,
    ) -> impl Iterator<Item = &HostName> {
        let entries = self.names.get(&address).into_iter().flatten().rev();
        entries
            .filter(move |entry| entry.until > now)
            .map(|entry| &entry.name)
    }

    fn make_room(&mut self, now: Instant) {
        self.keep(|entry| entry.until > now);
        if self.pairs >= PAIRS_MAX {
            let entries = self.names.values().flatten();
            if let Some(next) = entries.map(|entry| entry.until).min() {
                self.keep(|entry| entry.until > next);
            }
        }
    }

    fn keep(&mut self, is_kept: impl Fn(&Entry) -> bool) {
        self.names.retain(|_, entries| {
            entries.retain(&is_kept);
            !entries.is_empty()
        });
        self.pairs = self.names.values().map(Vec::len).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> HostName {
        HostName::parse(text).unwrap()
    }

    fn address(number: u32) -> IpAddr {
        std::net::Ipv4Addr::from_bits(number).into()
    }

    #[test]
    fn only_what_was_resolved_is_known_until_it_expires_eg_4() {
        let now = Instant::now();
        let mut resolved = Resolved::default();
        resolved.insert(
            &name("a.example"),
            address(1),
            Duration::from_secs(3600),
            now,
        );

        assert!(resolved.contains(&name("a.example"), address(1), now));
        assert!(!resolved.contains(&name("b.example"), address(1), now));
        assert!(!resolved.contains(&name("a.example"), address(2), now));
        let later = now + Duration::from_secs(3600);
        assert!(!resolved.contains(&name("a.example"), address(1), later));
    }

    #[test]
    fn a_short_ttl_is_remembered_for_as_long_as_programs_do() {
        let now = Instant::now();
        let mut resolved = Resolved::default();
        resolved.insert(&name("a.example"), address(1), Duration::ZERO, now);
        let just_before = now + MEMORY_MIN - Duration::from_millis(1);
        assert!(resolved.contains(&name("a.example"), address(1), just_before));
        assert!(!resolved.contains(&name("a.example"), address(1), now + MEMORY_MIN));
    }

    #[test]
    fn the_latest_name_of_an_address_comes_first() {
        let now = Instant::now();
        let mut resolved = Resolved::default();
        for text in ["a.example", "b.example", "a.example"] {
            resolved.insert(&name(text), address(1), Duration::ZERO, now);
        }
        let names: Vec<&str> = resolved
            .names_of(address(1), now)
            .map(HostName::as_str)
            .collect();
        assert_eq!(names, ["a.example", "b.example"]);
    }

    #[test]
    fn the_memory_is_bounded_and_forgets_the_oldest() {
        let start = Instant::now();
        let mut resolved = Resolved::default();
        let count = u32::try_from(PAIRS_MAX).unwrap() + 10;
        let at = |number: u32| start + Duration::from_millis(number.into());
        for number in 0..count {
            resolved.insert(
                &name("a.example"),
                address(number),
                Duration::ZERO,
                at(number),
            );
        }
        assert_eq!(resolved.pairs, PAIRS_MAX);
        let now = at(count);
        assert!(!resolved.contains(&name("a.example"), address(9), now));
        assert!(resolved.contains(&name("a.example"), address(10), now));
        assert!(resolved.contains(&name("a.example"), address(count - 1), now));
    }
}
