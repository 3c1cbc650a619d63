//! Which parts of two line lists are the same, decided as Python's `difflib` decides it.
//!
//! Clients compare diffs with those of the original, so the shortest edit script is not what is
//! wanted: `difflib` takes the longest run of equal lines, then does the same on both sides of
//! it, and ignores lines that fill more than a hundredth of a long text. Its worst case is
//! cubic, therefore the work has a budget.

use std::{collections::HashMap, ops::Range};

/// Steps before the search gives up: a tenth of a second, and far beyond any usual edit.
const STEPS_MAX: u64 = 20_000_000;

/// From this many lines on, lines that repeat too often do not start a match.
const POPULAR_FROM_LINES: usize = 200;

/// A part that differs: lines of the old text and what stands there in the new one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) old: Range<usize>,
    pub(super) new: Range<usize>,
}

/// The differences between two texts, in order.
pub(super) fn changes(old: &[&str], new: &[&str]) -> Vec<Change> {
    let mut blocks = Matcher::new(old, new)
        .blocks()
        .unwrap_or_else(|| ends_only(old, new));
    blocks.push(Block {
        old: old.len(),
        new: new.len(),
        length: 0,
    });
    let mut changes = Vec::new();
    let (mut old_at, mut new_at) = (0, 0);
    for block in blocks {
        if old_at < block.old || new_at < block.new {
            changes.push(Change {
                old: old_at..block.old,
                new: new_at..block.new,
            });
        }
        (old_at, new_at) = (block.old + block.length, block.new + block.length);
    }
    changes
}

/// A run of equal lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Block {
    old: usize,
    new: usize,
    length: usize,
}

/// The two texts with equal lines turned into equal numbers.
struct Matcher {
    old: Vec<usize>,
    new: Vec<usize>,
    places: Places,
    steps: u64,
}

impl Matcher {
    fn new(old: &[&str], new: &[&str]) -> Self {
        let mut numbers = HashMap::with_capacity(new.len());
        let numbered: Vec<usize> = new
            .iter()
            .map(|line| {
                let next = numbers.len();
                *numbers.entry(*line).or_insert(next)
            })
            .collect();
        // Lines that only the old text has need no places, only numbers that match nothing.
        let absent = numbers.len();
        // Most edits leave most lines as they are; those are known without looking them up.
        let (head, tail) = common_ends(old, new);
        let (middle, end) = (head..old.len() - tail, new.len() - tail);
        let mut old_numbers = Vec::with_capacity(old.len());
        old_numbers.extend_from_slice(&numbered[..head]);
        let looked_up = old[middle].iter().map(|line| numbers.get(line).copied());
        old_numbers.extend(looked_up.map(|number| number.unwrap_or(absent)));
        old_numbers.extend_from_slice(&numbered[end..]);
        Self {
            old: old_numbers,
            places: Places::of(&numbered, absent),
            new: numbered,
            steps: 0,
        }
    }

    /// All runs of equal lines, in order and joined where they touch; `None` past the budget.
    fn blocks(mut self) -> Option<Vec<Block>> {
        let mut todo = vec![(0..self.old.len(), 0..self.new.len())];
        let mut blocks = Vec::new();
        while let Some((old, new)) = todo.pop() {
            let block = self.longest(&old, &new)?;
            if block.length == 0 {
                continue;
            }
            let (old_end, new_end) = (block.old + block.length, block.new + block.length);
            if old.start < block.old && new.start < block.new {
                todo.push((old.start..block.old, new.start..block.new));
            }
            if old_end < old.end && new_end < new.end {
                todo.push((old_end..old.end, new_end..new.end));
            }
            blocks.push(block);
        }
        blocks.sort_unstable();
        let mut joined: Vec<Block> = Vec::with_capacity(blocks.len());
        for block in blocks {
            match joined.last_mut() {
                Some(last)
                    if last.old + last.length == block.old
                        && last.new + last.length == block.new =>
                {
                    last.length += block.length;
                }
                _ => joined.push(block),
            }
        }
        Some(joined)
    }

    /// The longest run, the first in the old text when several are equally long.
    fn longest(&mut self, old: &Range<usize>, new: &Range<usize>) -> Option<Block> {
        let mut best = Block {
            old: old.start,
            new: new.start,
            length: 0,
        };
        // Runs that end at the previous line of the old text: where in the new one, how long.
        let mut ending: Vec<(usize, usize)> = Vec::new();
        let mut next: Vec<(usize, usize)> = Vec::new();
        for index in old.clone() {
            let places = self.places.get(self.old[index]);
            let places = &places[places.partition_point(|place| *place < new.start)..];
            let mut before = ending.iter().peekable();
            self.steps += 1;
            for &place in places.iter().take_while(|place| **place < new.end) {
                self.steps += 1;
                while before.next_if(|(end, _)| end + 1 < place).is_some() {}
                let length = match before.peek() {
                    Some((end, length)) if end + 1 == place => length + 1,
                    _ => 1,
                };
                next.push((place, length));
                if length > best.length {
                    best = Block {
                        old: index + 1 - length,
                        new: place + 1 - length,
                        length,
                    };
                }
            }
            if self.steps > STEPS_MAX {
                return None;
            }
            std::mem::swap(&mut ending, &mut next);
            next.clear();
        }
        Some(self.extended(best, old, new))
    }

    /// Popular lines do not start a run, but they belong to one that they touch.
    fn extended(&self, mut block: Block, old: &Range<usize>, new: &Range<usize>) -> Block {
        while block.old > old.start
            && block.new > new.start
            && self.old[block.old - 1] == self.new[block.new - 1]
        {
            block.old -= 1;
            block.new -= 1;
            block.length += 1;
        }
        while block.old + block.length < old.end
            && block.new + block.length < new.end
            && self.old[block.old + block.length] == self.new[block.new + block.length]
        {
            block.length += 1;
        }
        block
    }
}

/// Where each line stands in the new text, ascending; nowhere for popular lines.
struct Places {
    /// Where the places of each line end in the list; they start where the line before ends.
    ends: Vec<usize>,
    list: Vec<usize>,
}

impl Places {
    /// The places of all numbers below `count` in a text.
    fn of(text: &[usize], count: usize) -> Self {
        let mut counts = vec![0; count];
        for number in text {
            counts[*number] += 1;
        }
        if text.len() >= POPULAR_FROM_LINES {
            let often = text.len() / 100 + 1;
            counts
                .iter_mut()
                .filter(|count| **count > often)
                .for_each(|count| *count = 0);
        }
        let mut total = 0;
        // First where the places of each line start; filling in moves that to their end.
        let mut ends: Vec<usize> = counts
            .iter()
            .map(|count| {
                total += count;
                total - count
            })
            .collect();
        let mut list = vec![0; total];
        for (place, number) in text.iter().enumerate() {
            if counts[*number] > 0 {
                list[ends[*number]] = place;
                ends[*number] += 1;
            }
        }
        Self { ends, list }
    }

    /// The places of a line; none for a number that no line has.
    fn get(&self, number: usize) -> &[usize] {
        let Some(&end) = self.ends.get(number) else {
            return &[];
        };
        let start = match number.checked_sub(1) {
            Some(before) => self.ends[before],
            None => 0,
        };
        &self.list[start..end]
    }
}

/// How many lines are equal at the beginning and, apart from those, at the end.
fn common_ends(old: &[&str], new: &[&str]) -> (usize, usize) {
    let head = old
        .iter()
        .zip(new)
        .take_while(|(old, new)| old == new)
        .count();
    let tail = old[head..]
        .iter()
        .rev()
        .zip(new[head..].iter().rev())
        .take_while(|(old, new)| old == new)
        .count();
    (head, tail)
}

/// The equal lines at both ends: correct for every pair of texts, if not always the least.
fn ends_only(old: &[&str], new: &[&str]) -> Vec<Block> {
    let (head, tail) = common_ends(old, new);
    vec![
        Block {
            old: 0,
            new: 0,
            length: head,
        },
        Block {
            old: old.len() - tail,
            new: new.len() - tail,
            length: tail,
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_past_its_budget_still_finds_the_common_ends() {
        let old: Vec<String> = (0..60_000).map(|line| (line % 101).to_string()).collect();
        let mut new = old.clone();
        new.reverse();
        new.insert(0, "first".to_owned());
        new.push("last".to_owned());
        let mut old: Vec<&str> = old.iter().map(String::as_str).collect();
        old.insert(0, "first");
        old.push("last");
        let new: Vec<&str> = new.iter().map(String::as_str).collect();
        assert_eq!(
            changes(&old, &new),
            [Change {
                old: 1..60_001,
                new: 1..60_001
            }]
        );
    }
}
