//! A lot of output: how fast it is taken, beside a terminal that is only drained, and in how
//! much memory.

use std::{
    fs::File,
    io::{BufWriter, Write as _},
    path::Path,
    time::{Duration, Instant},
};

use anyhow::Context as _;

use crate::{
    actions::{self, Place},
    executor::{Executor, Transport},
    floors,
    lane::Subject as _,
    proc,
    quantity::Quantity,
    setting::{Effort, Setting},
    table::{Goal, Row},
};

const ROUNDS: usize = 3;

/// Time after which the rounds so far must do.
const BUDGET: Duration = Duration::from_secs(20);

/// What lines the output is made of. Short ones are harder: more of them per byte.
#[derive(Clone, Copy, Debug)]
enum Lines {
    /// Of 99 letters.
    Long,
    /// Just their number.
    Numbered,
}

pub(crate) fn measure(setting: &Setting) -> anyhow::Result<Vec<Row>> {
    let size: usize = match setting.effort {
        Effort::Full => 100 << 20,
        Effort::Quick => 4 << 20,
    };
    let mut rows = Vec::new();
    for (lines, name) in [
        (Lines::Long, "lines of 99 letters"),
        (Lines::Numbered, "short numbered lines"),
    ] {
        let file = setting.program.scratch.join("output.txt");
        write_lines(&file, lines, size).context("cannot write the output to show")?;
        // The cheapest writer there is, so that reading it is what counts.
        let command = format!("cat {}", file.display());
        rows.extend(shown(setting, &command, size, name)?);
        std::fs::remove_file(&file)?;
    }
    Ok(rows)
}

fn shown(setting: &Setting, command: &str, size: usize, name: &str) -> anyhow::Result<[Row; 2]> {
    let executor = Executor::start(&setting.program, Transport::Tcp)?;
    proc::forget_peak(executor.pid())?;
    let before = proc::resident(executor.pid())?;
    let (mut ours, mut drained) = (Vec::new(), Vec::new());
    let start = Instant::now();
    for _ in 0..ROUNDS {
        if start.elapsed() > BUDGET {
            break;
        }
        drained.push(rate(size, floors::drain(command)?));
        // A connection that was kept through the drain may be one that the server gave up.
        let mut lane = executor
            .lane(vec![actions::run(command, &Place::DefaultShell)])?
            .expecting("\"exit_code\":0");
        ours.push(rate(size, lane.once()?));
    }
    let peak = proc::peak_resident(executor.pid())?;
    let mebibytes = size >> 20;
    Ok([
        Row::new(
            format!("{mebibytes} MiB of output, {name}"),
            Quantity::BytesPerSecond(best(&ours)),
        )
        .goal(Goal::RatioAtLeast(0.8))
        .beside("raw PTY drain", Quantity::BytesPerSecond(best(&drained))),
        Row::new(format!("{mebibytes} MiB of output, {name}, peak RSS"), peak)
            .beside("RSS before", before),
    ])
}

/// Whatever else the machine does only ever makes a round slower.
fn best(rates: &[f64]) -> f64 {
    rates.iter().copied().fold(0.0, f64::max)
}

fn rate(size: usize, time: Duration) -> f64 {
    size as f64 / time.as_secs_f64()
}

fn write_lines(file: &Path, lines: Lines, size: usize) -> std::io::Result<()> {
    let mut out = BufWriter::new(File::create(file)?);
    let mut written = 0;
    let mut line = String::new();
    for number in 1_usize.. {
        match lines {
            Lines::Long => line.replace_range(.., &"x".repeat(99)),
            Lines::Numbered => line.replace_range(.., &number.to_string()),
        }
        line.push('\n');
        line.truncate(size - written);
        out.write_all(line.as_bytes())?;
        written += line.len();
        if written == size {
            break;
        }
    }
    out.flush()
}
