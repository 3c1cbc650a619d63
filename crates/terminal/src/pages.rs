//! Which pages of a program's own file can be given back, or held in another way.

use std::{ops::Range, path::Path};

/// What a huge page of a process takes, where pages have the common size.
pub(crate) const HUGE_BYTES: usize = 2 * 1024 * 1024;

/// Whole huge pages around a part of a program's file that can be read, and executed or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) pages: Range<usize>,
    /// What of them is the program's; there is nothing in the rest.
    pub(crate) program: Range<usize>,
    pub(crate) is_executable: bool,
}

/// The huge pages around what [`unchanged`] finds of `program` that no other mapping has a part in.
pub(crate) fn huge_stretches(smaps: &str, program: &Path) -> Vec<Stretch> {
    let mappings: Vec<Mapping<'_>> = smaps.lines().filter_map(header).collect();
    let mut found = Vec::new();
    for (start, length) in unchanged(smaps, program) {
        let ours = start..start + length;
        let is_free = |range: Range<usize>| {
            let is_in = |mapping: &Mapping<'_>| {
                mapping.start < range.end && range.start < mapping.start + mapping.length
            };
            !mappings.iter().any(is_in)
        };
        let mut first = start / HUGE_BYTES * HUGE_BYTES;
        if !is_free(first..start) {
            first += HUGE_BYTES;
        }
        let mut end = ours.end.next_multiple_of(HUGE_BYTES);
        if !is_free(ours.end..end) {
            end -= HUGE_BYTES;
        }
        if first < end {
            let of_start = |mapping: &&Mapping<'_>| mapping.start == start;
            let mapping = mappings.iter().find(of_start);
            found.push(Stretch {
                pages: first..end,
                program: first.max(ours.start)..end.min(ours.end),
                is_executable: mapping.is_some_and(|mapping| mapping.permissions.contains('x')),
            });
        }
    }
    found
}

/// Address and length of the mappings of `program` in the text of `/proc/self/smaps` that cannot
/// be written to and of which no page is our own.
pub(crate) fn unchanged(smaps: &str, program: &Path) -> Vec<(usize, usize)> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    let mut candidate = None;
    for line in smaps.lines() {
        if let Some(mapping) = header(line) {
            found.extend(candidate.take());
            let is_ours = mapping.path == program.to_str() && !mapping.permissions.contains('w');
            candidate = is_ours.then_some((mapping.start, mapping.length));
        } else if is_changed(line) {
            candidate = None;
        }
    }
    found.extend(candidate);
    found
}

struct Mapping<'a> {
    start: usize,
    length: usize,
    permissions: &'a str,
    path: Option<&'a str>,
}

/// A line such as `00400000-00452000 r-xp 00000000 08:02 173521 /usr/bin/program`.
fn header(line: &str) -> Option<Mapping<'_>> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let start = usize::from_str_radix(start, 16).ok()?;
    let end = usize::from_str_radix(end, 16).ok()?;
    let permissions = fields.next()?;
    Some(Mapping {
        start,
        length: end.checked_sub(start)?,
        permissions,
        path: fields.nth(3),
    })
}

/// A line such as `Anonymous:         8 kB` that counts pages which are not the file's. Dirty
/// ones may well be: those of a file that was written a moment ago.
fn is_changed(line: &str) -> bool {
    let Some((name, amount)) = line.split_once(':') else {
        return false;
    };
    matches!(name, "Anonymous" | "Swap") && amount.trim() != "0 kB"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_unwritable_mappings_without_pages_of_our_own_are_given_back() {
        let smaps = "\
00400000-00500000 r--p 00000000 08:02 1 /bin/zareba
Private_Dirty:       960 kB
Anonymous:             0 kB
00500000-00900000 r-xp 00100000 08:02 1 /bin/zareba
Private_Dirty:         0 kB
Anonymous:             0 kB
00900000-00a00000 r--p 00500000 08:02 1 /bin/zareba
Private_Dirty:         8 kB
Anonymous:             8 kB
00a00000-00b00000 rw-p 00600000 08:02 1 /bin/zareba
Anonymous:             0 kB
7f0000000000-7f0000100000 r-xp 00000000 08:02 2 /lib/libc.so
Anonymous:             0 kB
7fff00000000-7fff00021000 rw-p 00000000 00:00 0 [stack]
";
        let expected = [(0x40_0000, 0x10_0000), (0x50_0000, 0x40_0000)];
        assert_eq!(unchanged(smaps, Path::new("/bin/zareba")), expected);
        assert_eq!(
            unchanged("garbage\n-\nx-y z\n", Path::new("/bin/zareba")),
            []
        );
    }

    #[test]
    fn huge_pages_that_only_a_program_is_in_are_found_with_its_rights() {
        let smaps = "\
00300000-00a00000 r--p 00000000 08:02 1 /bin/zareba
Anonymous:             0 kB
00a00000-01100000 r-xp 00700000 08:02 1 /bin/zareba
Anonymous:             0 kB
01100000-01180000 r--p 00e00000 08:02 1 /bin/zareba
Anonymous:             0 kB
01380000-01480000 r--p 00f00000 08:02 1 /bin/zareba
Anonymous:             0 kB
01600000-01a00000 rw-p 00f00000 08:02 1 /bin/zareba
Anonymous:             0 kB
";
        let stretch = |pages, program, is_executable| Stretch {
            pages,
            program,
            is_executable,
        };
        let expected = [
            stretch(0x20_0000..0xa0_0000, 0x30_0000..0xa0_0000, false),
            stretch(0xa0_0000..0x100_0000, 0xa0_0000..0x100_0000, true),
            stretch(0x120_0000..0x160_0000, 0x138_0000..0x148_0000, false),
        ];
        assert_eq!(huge_stretches(smaps, Path::new("/bin/zareba")), expected);
    }

    #[test]
    fn a_program_holds_less_of_its_file_and_goes_on() {
        let program = std::fs::read_link("/proc/self/exe").unwrap();
        let before = resident(&program);
        crate::release_program_pages().unwrap();
        let after = resident(&program);
        assert!(after < before, "{before} kB before, {after} kB after");
    }

    /// Kilobytes of the program's file that are mapped in.
    fn resident(program: &Path) -> u64 {
        let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut is_ours = false;
        let mut sum = 0;
        for line in smaps.lines() {
            if let Some(mapping) = header(line) {
                is_ours = mapping.path == program.to_str();
            } else if let Some(amount) = line.strip_prefix("Rss:").filter(|_| is_ours) {
                let amount = amount.trim().trim_end_matches(" kB");
                sum += amount.parse::<u64>().unwrap();
            }
        }
        sum
    }
}
