//! Reading and editing files.

use std::{fs, os::fd::OwnedFd, path::Path};

use anyhow::Context as _;
use rustix::fs::{Mode, OFlags};

use crate::{
    actions,
    executor::{Executor, HttpLane, Transport},
    floors::{FileServer, Replace},
    lane::{race_beside, side_by_side},
    quantity::Quantity,
    setting::Setting,
    stats::Samples,
    table::{Goal, Row},
};

const READS: usize = 1000;
const EDITS: usize = 2000;
const READERS: usize = 16;
const SERVER: &str = "bare file server";
const REPLACE: &str = "write, fdatasync, rename";

/// A file system in memory, where syncing costs nothing.
const MEMORY: &str = "/dev/shm";

pub(crate) fn measure(setting: &Setting) -> anyhow::Result<Vec<Row>> {
    let executor = Executor::start(&setting.program, Transport::Tcp)?;
    let mut rows = Vec::new();
    rows.extend(large_read(setting, &executor)?);
    rows.extend(edit(
        setting,
        &executor,
        &setting.program.working_dir,
        "on disk",
    )?);
    if let Ok(directory) = tempfile::Builder::new()
        .prefix("zareba-bench-")
        .tempdir_in(MEMORY)
    {
        rows.extend(edit(setting, &executor, directory.path(), "in memory")?);
    }
    rows.push(many_readers(setting, &executor)?);
    Ok(rows)
}

fn large_read(setting: &Setting, executor: &Executor) -> anyhow::Result<[Row; 2]> {
    let file = setting.program.working_dir.join("large.txt");
    let lines: String = (0..)
        .map(|number| format!("line {number} of a \"quoted\" text\n"))
        .take(40_000)
        .collect();
    fs::write(&file, &lines[..1 << 20])?;
    let server = FileServer::start(&file)?;
    let mut ours = executor
        .lane(vec![actions::read(&file)])?
        .expecting("\"observation\":\"read\"");
    let mut bare = HttpLane::open(&server.address(), vec![actions::read(&file)])?;
    let [ours, bare] = side_by_side([&mut ours, &mut bare], setting.effort.plan(READS))?;
    Ok([
        compared("read of 1 MiB, p50", &ours, &bare, Samples::p50, SERVER)
            .goal(Goal::AtMost(Quantity::milliseconds(3.0))),
        compared("read of 1 MiB, p99", &ours, &bare, Samples::p99, SERVER),
    ])
}

/// Both sides sync the new content before the rename; neither syncs the directory.
fn edit(
    setting: &Setting,
    executor: &Executor,
    directory: &Path,
    medium: &str,
) -> anyhow::Result<[Row; 2]> {
    let file = directory.join("edited.py");
    let text: String = (0..1000)
        .map(|number| match number {
            500 => "    answer = \"one\"\n".to_owned(),
            _ => format!("    value_{number} = compute({number})\n"),
        })
        .collect();
    fs::write(&file, text)?;
    let there_and_back = [("= \"one\"", "= \"two\""), ("= \"two\"", "= \"one\"")]
        .map(|(old, new)| actions::replace(&file, old, new));
    let floor = directory.join("replaced.py");
    fs::copy(&file, &floor)?;
    // The journal of the file system is busy with what came before; let it finish first.
    sync(directory)?;
    let mut ours = executor
        .lane(there_and_back.to_vec())?
        .expecting("has been edited");
    let [ours, bare] = side_by_side(
        [&mut ours, &mut Replace::new(&floor)],
        setting.effort.plan(EDITS),
    )?;
    let goal = Goal::AtMost(Quantity::milliseconds(1.0));
    let name = |percentile: &str| format!("edit in 1,000 lines {medium}, synced, {percentile}");
    Ok([
        compared(&name("p50"), &ours, &bare, Samples::p50, REPLACE).goal(goal),
        compared(&name("p99"), &ours, &bare, Samples::p99, REPLACE),
    ])
}

fn sync(directory: &Path) -> anyhow::Result<()> {
    let directory: OwnedFd =
        rustix::fs::open(directory, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::fs::syncfs(directory).context("cannot sync the file system")
}

fn many_readers(setting: &Setting, executor: &Executor) -> anyhow::Result<Row> {
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for number in 0..READERS {
        let file = setting
            .program
            .working_dir
            .join(format!("small-{number}.txt"));
        fs::write(&file, "sixteen letters\n".repeat(64))?;
        let server = FileServer::start(&file)?;
        ours.push(
            executor
                .lane(vec![actions::read(&file)])?
                .expecting("\"observation\":\"read\""),
        );
        bare.push(HttpLane::open(
            &server.address(),
            vec![actions::read(&file)],
        )?);
    }
    let (ours, bare) = race_beside(&mut ours, &mut bare, setting.effort.race_time())?;
    Ok(Row::new("16 readers of 1 KiB", ours)
        .goal(Goal::AtLeast(Quantity::PerSecond(20_000.0)))
        .beside(SERVER, bare))
}

fn compared(
    what: &str,
    ours: &Samples,
    floor: &Samples,
    percentile: fn(&Samples) -> std::time::Duration,
    floor_name: &'static str,
) -> Row {
    Row::new(what, Quantity::time(percentile(ours)))
        .beside(floor_name, Quantity::time(percentile(floor)))
}
