//! The valid name nearest to a misspelt one.

/// Names longer than this are not typing errors; the bound keeps the comparison cheap on hostile
/// input.
const LENGTH_MAX: usize = 64;

/// The candidate that a person most likely meant, or none when all are too far away.
///
/// Of equally near candidates the first wins, so the order of the caller's list is the
/// tie-breaker.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.chars().count() > LENGTH_MAX {
        return None;
    }
    candidates
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, candidate)| {
            // One letter in three may be wrong: enough for slips, too little for coincidences.
            *distance
                <= word
                    .chars()
                    .count()
                    .max(candidate.chars().count())
                    .div_ceil(3)
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The number of insertions, deletions, replacements and swaps of neighbours between two words.
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().collect();
    let right: Vec<char> = right.chars().collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for (row, letter) in left.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, other) in right.iter().enumerate() {
            let replaced = last[column] + usize::from(letter != other);
            let mut best = replaced.min(last[column + 1] + 1).min(current[column] + 1);
            let swapped =
                row > 0 && column > 0 && *letter == right[column - 1] && left[row - 1] == *other;
            if swapped {
                best = best.min(before_last[column - 1] + 1);
            }
            current.push(best);
        }
        before_last = std::mem::replace(&mut last, current);
    }
    last.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_single_slips_once() {
        for (left, right, expected) in [
            ("timeout", "timeout", 0),
            ("timout", "timeout", 1),
            ("tiemout", "timeout", 1),
            ("timeoutt", "timeout", 1),
            ("tineout", "timeout", 1),
            ("", "abc", 3),
            ("abc", "", 3),
        ] {
            assert_eq!(distance(left, right), expected, "{left} {right}");
        }
    }

    #[test]
    fn the_nearest_candidate_wins_and_a_far_one_is_no_answer() {
        let candidates = ["timeout", "program", "no_change_timeout"];
        assert_eq!(nearest("timout", candidates), Some("timeout"));
        assert_eq!(
            nearest("no_change_timout", candidates),
            Some("no_change_timeout")
        );
        assert_eq!(nearest("colour", candidates), None);
        assert_eq!(nearest(&"timeout".repeat(100_000), candidates), None);
    }
}
