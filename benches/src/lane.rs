//! Things that are asked and answer, and the two ways of timing them: one after the other beside
//! their floors, and many at once.

use std::{
    io,
    os::fd::BorrowedFd,
    time::{Duration, Instant},
};

use anyhow::ensure;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::{
    quantity::Quantity,
    stats::{Samples, median},
};

/// Turns that each group has in a race.
const ROUNDS: u32 = 3;

/// A lane that says nothing for so long is taken for dead.
const SILENCE_MAX: Timespec = Timespec {
    tv_sec: 30,
    tv_nsec: 0,
};

/// Something that can be done over and over, and is timed.
pub(crate) trait Subject {
    /// Does it once and says how long that took, without what had to be cleared away after it.
    /// Fails when it did not succeed.
    fn once(&mut self) -> anyhow::Result<Duration>;
}

/// Something that takes one question at a time.
pub(crate) trait Lane {
    fn send(&mut self) -> io::Result<()>;

    /// Waits for the whole answer, and fails when it is not the right one.
    fn receive(&mut self) -> anyhow::Result<()>;

    /// Becomes readable when an answer is there.
    fn descriptor(&self) -> BorrowedFd<'_>;
}

impl<L: Lane> Subject for L {
    fn once(&mut self) -> anyhow::Result<Duration> {
        let start = Instant::now();
        self.send()?;
        self.receive()?;
        Ok(start.elapsed())
    }
}

/// How often something is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) warm_up: usize,
    pub(crate) runs: usize,
    /// Runs of one subject before the next has its turn: long enough to be warm, short enough
    /// that a disturbance of the machine meets all of them.
    pub(crate) block: usize,
    /// Time after which the runs so far must do.
    pub(crate) budget: Duration,
}

/// Times subjects one at a time and in turns, so that all of them see the same machine.
pub(crate) fn side_by_side<const N: usize>(
    mut subjects: [&mut dyn Subject; N],
    plan: Plan,
) -> anyhow::Result<[Samples; N]> {
    for subject in &mut subjects {
        for _ in 0..plan.warm_up {
            subject.once()?;
        }
    }
    let mut samples = std::array::from_fn(|_| Samples::default());
    let start = Instant::now();
    while samples[0].len() < plan.runs && start.elapsed() < plan.budget {
        for (subject, samples) in subjects.iter_mut().zip(&mut samples) {
            for _ in 0..plan.block {
                samples.push(subject.once()?);
            }
        }
    }
    Ok(samples)
}

/// Keeps every lane busy for a while, from one thread so that the asker takes little of the
/// machine, and counts answers in a second.
pub(crate) fn race(lanes: &mut [impl Lane], duration: Duration) -> anyhow::Result<f64> {
    for lane in &mut *lanes {
        lane.once()?;
    }
    let start = Instant::now();
    for lane in &mut *lanes {
        lane.send()?;
    }
    let mut answers: u32 = 0;
    while start.elapsed() < duration {
        for place in ready(lanes)? {
            lanes[place].receive()?;
            answers += 1;
            lanes[place].send()?;
        }
    }
    // What is still on its way was worked on in the same time, so it counts too.
    for lane in lanes {
        lane.receive()?;
        answers += 1;
    }
    Ok(f64::from(answers) / start.elapsed().as_secs_f64())
}

/// Lets two groups race in turns and returns the middle result of each.
pub(crate) fn race_beside(
    subjects: &mut [impl Lane],
    floors: &mut [impl Lane],
    duration: Duration,
) -> anyhow::Result<(Quantity, Quantity)> {
    let (mut of_subjects, mut of_floors) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        of_subjects.push(race(subjects, duration / ROUNDS)?);
        of_floors.push(race(floors, duration / ROUNDS)?);
    }
    Ok((
        Quantity::PerSecond(median(&of_subjects)),
        Quantity::PerSecond(median(&of_floors)),
    ))
}

/// The places of the lanes that have something to say.
fn ready(lanes: &[impl Lane]) -> anyhow::Result<Vec<usize>> {
    let mut descriptors: Vec<PollFd<'_>> = lanes
        .iter()
        .map(|lane| PollFd::from_borrowed_fd(lane.descriptor(), PollFlags::IN))
        .collect();
    let count = poll(&mut descriptors, Some(&SILENCE_MAX))?;
    ensure!(count > 0, "no answer within {} s", SILENCE_MAX.tv_sec);
    Ok((0..lanes.len())
        .filter(|place| !descriptors[*place].revents().is_empty())
        .collect())
}
