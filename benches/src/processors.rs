//! The same work on fewer and on more processors: how a rate grows with the machine.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::{anyhow, ensure};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Clients for each processor, so that none of them waits for work.
pub(crate) const CLIENTS_PER_PROCESSOR: usize = 2;

/// 1, 2, 4, … processors, as far as this process may use so many.
///
/// # Errors
/// When the kernel does not say which these are.
pub(crate) fn steps() -> anyhow::Result<Vec<usize>> {
    let usable = usable()?.len();
    let powers = std::iter::successors(Some(1), |count| Some(count * 2));
    Ok(powers.take_while(|count| *count <= usable).collect())
}

/// Does work in a thread that may use so many processors; threads and processes that it starts may use
/// the same ones.
///
/// # Errors
/// When there are fewer processors, or the work fails.
pub(crate) fn on_processors<T: Send>(
    count: usize,
    work: impl FnOnce() -> anyhow::Result<T> + Send,
) -> anyhow::Result<T> {
    let usable = usable()?;
    ensure!(
        count <= usable.len(),
        "there are {} processors",
        usable.len()
    );
    thread::scope(|scope| {
        let worker = scope.spawn(move || {
            let mut allowed = CpuSet::new();
            for processor in usable.into_iter().take(count) {
                allowed.set(processor);
            }
            sched_setaffinity(None, &allowed)?;
            work()
        });
        worker.join().map_err(|_| anyhow!("a worker panicked"))?
    })
}

/// Lets so many clients repeat their work for a while, and returns how often it was done in a second.
/// `client` makes the work of one client.
///
/// # Errors
/// When any of it fails.
pub(crate) fn rate<W>(
    clients: usize,
    duration: Duration,
    client: impl Fn(usize) -> anyhow::Result<W> + Sync,
) -> anyhow::Result<f64>
where
    W: FnMut() -> anyhow::Result<()>,
{
    let done = AtomicU64::new(0);
    let start = Instant::now();
    thread::scope(|scope| {
        let running: Vec<_> = (0..clients)
            .map(|number| {
                let (client, done) = (&client, &done);
                scope.spawn(move || {
                    let mut work = client(number)?;
                    while start.elapsed() < duration {
                        work()?;
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                    anyhow::Ok(())
                })
            })
            .collect();
        for client in running {
            client.join().map_err(|_| anyhow!("a client panicked"))??;
        }
        anyhow::Ok(())
    })?;
    let count = u32::try_from(done.into_inner())?;
    Ok(f64::from(count) / start.elapsed().as_secs_f64())
}

fn usable() -> anyhow::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|processor| set.is_set(*processor))
        .collect())
}
