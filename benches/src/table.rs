//! The table that a run prints: each value with its goal and with what was measured beside it.

use std::fmt;

use crate::quantity::Quantity;

/// What a value should be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Goal {
    AtMost(Quantity),
    AtLeast(Quantity),
    /// At least this share of what stands beside it.
    RatioAtLeast(f64),
    /// At most so many times what stands beside it.
    RatioAtMost(f64),
}

/// What was measured in the same run, to hold the value against.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Beside {
    pub(crate) what: &'static str,
    pub(crate) value: Quantity,
}

/// One measured value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    what: String,
    outcome: Outcome,
    goal: Option<Goal>,
    beside: Option<Beside>,
}

#[derive(Clone, Debug, PartialEq)]
enum Outcome {
    Value(Quantity),
    /// A peer that is not on this machine, which is nobody's fault.
    Absent(String),
    Failed(String),
}

impl Row {
    pub(crate) fn new(what: impl Into<String>, value: Quantity) -> Self {
        Self {
            what: what.into(),
            outcome: Outcome::Value(value),
            goal: None,
            beside: None,
        }
    }

    pub(crate) fn absent(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            outcome: Outcome::Absent(why.into()),
            ..Self::new(what, Quantity::Times(0.0))
        }
    }

    pub(crate) fn failed(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            outcome: Outcome::Failed(one_line(&why.into())),
            ..Self::new(what, Quantity::Times(0.0))
        }
    }

    pub(crate) fn goal(self, goal: Goal) -> Self {
        Self {
            goal: Some(goal),
            ..self
        }
    }

    pub(crate) fn beside(self, what: &'static str, value: Quantity) -> Self {
        Self {
            beside: Some(Beside { what, value }),
            ..self
        }
    }

    pub(crate) fn has_failed(&self) -> bool {
        matches!(self.outcome, Outcome::Failed(_))
    }

    /// The value divided by what stands beside it.
    fn ratio(&self) -> Option<f64> {
        match (&self.outcome, &self.beside) {
            (Outcome::Value(value), Some(beside)) if beside.value.amount() > 0.0 => {
                Some(value.amount() / beside.value.amount())
            }
            _ => None,
        }
    }

    fn is_met(&self) -> Option<bool> {
        let Outcome::Value(value) = self.outcome else {
            return None;
        };
        Some(match self.goal? {
            Goal::AtMost(limit) => value.amount() <= limit.amount(),
            Goal::AtLeast(limit) => value.amount() >= limit.amount(),
            Goal::RatioAtLeast(share) => self.ratio()? >= share,
            Goal::RatioAtMost(times) => self.ratio()? <= times,
        })
    }

    /// A sentence for those who only want to know what is not as it should be.
    fn shortfall(&self) -> Option<String> {
        match (&self.outcome, self.is_met()) {
            (Outcome::Failed(why), _) => Some(format!("{}: failed: {why}", self.what)),
            (Outcome::Value(value), Some(false)) => {
                let goal = self.goal?;
                let ratio = self.ratio().map_or_else(String::new, |ratio| {
                    format!(", {ratio:.2} of what is beside it")
                });
                Some(format!("{}: {value}{ratio}, the goal is {goal}", self.what))
            }
            _ => None,
        }
    }

    fn cells(&self) -> [String; COLUMNS] {
        let value = match &self.outcome {
            Outcome::Value(value) => value.to_string(),
            Outcome::Absent(why) => why.clone(),
            Outcome::Failed(why) => format!("failed: {why}"),
        };
        let goal = self
            .goal
            .map_or_else(String::new, |goal| match self.is_met() {
                Some(true) => format!("{goal} ✓"),
                Some(false) => format!("{goal} ✗"),
                None => goal.to_string(),
            });
        let beside = self
            .beside
            .as_ref()
            .map_or_else(String::new, |Beside { what, value }| {
                format!("{value} {what}")
            });
        let ratio = self.ratio().map_or_else(String::new, |ratio| {
            let decimals = if ratio < 0.1 { 4 } else { 2 };
            format!("{ratio:.decimals$}")
        });
        [self.what.clone(), value, goal, beside, ratio]
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(limit) => write!(formatter, "≤ {limit}"),
            Self::AtLeast(limit) => write!(formatter, "≥ {limit}"),
            Self::RatioAtLeast(share) => write!(formatter, "ratio ≥ {share}"),
            Self::RatioAtMost(times) => write!(formatter, "ratio ≤ {times}"),
        }
    }
}

/// What programs say in several lines, for a cell that has one.
fn one_line(text: &str) -> String {
    text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

const COLUMNS: usize = 5;
const TITLES: [&str; COLUMNS] = ["what", "value", "goal", "floor/peer in this run", "ratio"];

/// All rows as a Markdown table whose columns line up.
pub(crate) fn render(rows: &[Row]) -> String {
    let lines: Vec<[String; COLUMNS]> = std::iter::once(TITLES.map(str::to_owned))
        .chain(rows.iter().map(Row::cells))
        .collect();
    let widths: [usize; COLUMNS] = std::array::from_fn(|column| {
        lines
            .iter()
            .map(|cells| cells[column].chars().count())
            .max()
            .unwrap_or_default()
    });
    let mut out = String::new();
    for (number, cells) in lines.iter().enumerate() {
        for (cell, width) in cells.iter().zip(widths) {
            out.push_str(&format!("| {cell:width$} "));
        }
        out.push_str("|\n");
        if number == 0 {
            for width in widths {
                out.push_str(&format!("|{}", "-".repeat(width + 2)));
            }
            out.push_str("|\n");
        }
    }
    out
}

/// One line for each goal that was missed or could not be measured.
pub(crate) fn shortfalls(rows: &[Row]) -> Vec<String> {
    rows.iter().filter_map(Row::shortfall).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Row> {
        vec![
            Row::new("fast", Quantity::milliseconds(0.2))
                .goal(Goal::AtMost(Quantity::milliseconds(0.5)))
                .beside("raw bash", Quantity::milliseconds(0.1)),
            Row::new("slow", Quantity::BytesPerSecond(40e6))
                .goal(Goal::RatioAtLeast(0.8))
                .beside("raw drain", Quantity::BytesPerSecond(80e6)),
            Row::new("few", Quantity::PerSecond(5.0))
                .goal(Goal::AtLeast(Quantity::PerSecond(10.0))),
            Row::absent("peer", "not installed"),
            Row::failed("broken", "no\n\n answer"),
        ]
    }

    #[test]
    fn columns_line_up_and_goals_are_judged() {
        let expected = "\
| what   | value             | goal          | floor/peer in this run | ratio |
|--------|-------------------|---------------|------------------------|-------|
| fast   | 200 µs            | ≤ 500 µs ✓    | 100 µs raw bash        | 2.00  |
| slow   | 40.0 MB/s         | ratio ≥ 0.8 ✗ | 80.0 MB/s raw drain    | 0.50  |
| few    | 5.00/s            | ≥ 10.0/s ✗    |                        |       |
| peer   | not installed     |               |                        |       |
| broken | failed: no answer |               |                        |       |
";
        assert_eq!(render(&rows()), expected);
    }

    #[test]
    fn what_is_missed_is_said_in_words() {
        assert_eq!(
            shortfalls(&rows()),
            [
                "slow: 40.0 MB/s, 0.50 of what is beside it, the goal is ratio ≥ 0.8",
                "few: 5.00/s, the goal is ≥ 10.0/s",
                "broken: failed: no answer",
            ]
        );
    }
}
