//! Many sandboxes that do nothing: what one of them holds, and whether the last was made as fast
//! as the first.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::ensure;
use rustix::process::{Resource, Rlimit, geteuid, getrlimit, setrlimit};
use zareba_runtime::Sandbox;
use zareba_runtime_native::NativeRuntime;

use crate::{
    measure::memory::become_idle,
    proc,
    quantity::Quantity,
    sandboxes::Sandboxes,
    setting::{Effort, Setting},
    stats::Samples,
    table::{Goal, Row},
};

/// How many are compared at either end: so many that one slow moment of the machine does not decide.
const FEW: usize = 50;
/// How many come before them: the first ones find nothing in memory that all others do, and nobody
/// who has prepared something for them.
const BEFORE: usize = 5;
/// Memory that is left to the machine.
const SPARE_MEBIBYTES: f64 = 1024.0;
/// Time after which those that are there must do.
const BUDGET: Duration = Duration::from_secs(90);

pub(crate) fn measure(setting: &Setting) -> anyhow::Result<Vec<Row>> {
    let wanted = match setting.effort {
        Effort::Full => 1000,
        Effort::Quick => FEW,
    };
    allow_many_open_files()?;
    let sandboxes = Sandboxes::behind_walls(&setting.program, 0)?;
    for _ in 0..BEFORE {
        sandboxes.close(&*sandboxes.create_and_ask()?)?;
    }
    become_idle();
    let before = proc::memory_available()?;
    let mut crowd = Crowd::default();
    let end = crowd.gather(&sandboxes, wanted);
    become_idle();
    let after = proc::memory_available()?;
    let rows = crowd.rows(before.amount() - after.amount());
    sandboxes.close_all(&crowd.sandboxes)?;
    let mut rows = rows?;
    let name = format!("{wanted} idle sandboxes");
    let reached = crowd.sandboxes.len();
    match end {
        End::Enough => {}
        End::Full(why) => rows.push(Row::absent(name, format!("{reached}: {why}"))),
        End::Failed(error) => rows.push(Row::failed(name, format!("after {reached}: {error:#}"))),
    }
    Ok(rows)
}

/// A sandbox takes some ten descriptors of whoever owns it.
pub(crate) fn allow_many_open_files() -> anyhow::Result<()> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let limit = Rlimit {
        current: maximum,
        maximum,
    };
    Ok(setrlimit(Resource::Nofile, limit)?)
}

/// Why there are no more.
enum End {
    Enough,
    /// The machine has no more to give, which is nobody's fault.
    Full(&'static str),
    Failed(anyhow::Error),
}

/// Sandboxes that live at the same time.
#[derive(Default)]
struct Crowd {
    sandboxes: Vec<Arc<dyn Sandbox>>,
    /// From asking for each to its first output.
    timings: Vec<Duration>,
}

impl Crowd {
    fn gather(&mut self, sandboxes: &Sandboxes<NativeRuntime>, wanted: usize) -> End {
        let start = Instant::now();
        while self.sandboxes.len() < wanted {
            if start.elapsed() > BUDGET {
                return End::Full("there is no time for more");
            }
            match proc::memory_available() {
                Ok(left) if left.amount() < Quantity::mebibytes(SPARE_MEBIBYTES).amount() => {
                    return End::Full("there is no memory for more");
                }
                Ok(_) => {}
                Err(error) => return End::Failed(error),
            }
            if let Err(error) = self.add(sandboxes) {
                return End::Failed(error);
            }
        }
        End::Enough
    }

    fn add(&mut self, sandboxes: &Sandboxes<NativeRuntime>) -> anyhow::Result<()> {
        let start = Instant::now();
        let sandbox = sandboxes.create_and_ask()?;
        self.timings.push(start.elapsed());
        self.sandboxes.push(sandbox);
        Ok(())
    }

    /// `taken` is what the machine has less than before.
    fn rows(&self, taken: f64) -> anyhow::Result<Vec<Row>> {
        let count = self.sandboxes.len();
        let name = format!("one of {count} idle sandboxes");
        Ok(vec![
            self.speed(),
            match geteuid().is_root() {
                true => self.memory(format!("{name}, PSS"))?,
                false => Row::absent(format!("{name}, PSS"), "only root may see it"),
            },
            Row::new(
                format!("{name}, memory of the machine, the kernel's included"),
                Quantity::Bytes(taken / count.max(1) as f64),
            ),
        ])
    }

    /// The last ones beside the first ones.
    fn speed(&self) -> Row {
        let few = |timings: &mut dyn Iterator<Item = &Duration>| -> Samples {
            timings.take(FEW).copied().collect()
        };
        let first = few(&mut self.timings.iter());
        let last = few(&mut self.timings.iter().rev());
        let name = format!("sandbox {}, create to first output", self.timings.len());
        Row::new(name, Quantity::time(last.p50()))
            .goal(Goal::RatioAtMost(1.5))
            .beside("the first", Quantity::time(first.p50()))
    }

    /// The mean over all, of everything from the supervisor to the shell.
    fn memory(&self, name: String) -> anyhow::Result<Row> {
        let supervisors = proc::supervisors()?;
        let count = self.sandboxes.len();
        ensure!(
            supervisors.len() == count,
            "{} processes of ours supervise {count} sandboxes",
            supervisors.len()
        );
        let (mut sum, mut of_shells) = (0.0, 0.0);
        for supervisor in supervisors {
            for process in proc::family(supervisor)? {
                let memory = proc::memory(process)?.proportional.amount();
                sum += memory;
                if proc::name(process)? == "bash" {
                    of_shells += memory;
                }
            }
        }
        let mean = |sum: f64| Quantity::Bytes(sum / count.max(1) as f64);
        Ok(Row::new(name, mean(sum))
            .goal(Goal::AtMost(Quantity::mebibytes(3.0)))
            .beside("its bash", mean(of_shells)))
    }
}
