//! What a spawner does for copies to come while nobody asks for one.

use std::{io, os::fd::BorrowedFd, time::Duration};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::retry_on_intr,
};
use zareba_confine::network::ReadyNetwork;
use zareba_terminal::HugeProgram;

/// Who orders nothing for so long orders nothing at once.
const QUIET: Duration = Duration::from_millis(10);

/// For each that was ordered: by then whoever has ordered many does not wait for them any more, and
/// what is done for the next ones takes nothing from these.
const SETTLING: Duration = Duration::from_millis(5);

/// What is ready, and what is being made so.
#[derive(Debug)]
pub(super) struct Ahead {
    /// Until it is done.
    program: Option<HugeProgram>,
    networks: Networks,
}

impl Ahead {
    pub(super) fn new() -> Self {
        Self {
            program: Some(HugeProgram::default()),
            networks: Networks::new(),
        }
    }

    /// Goes on in steps of less than a millisecond, as long as there is something to do. To be called
    /// between two orders.
    pub(super) fn prepare_until_an_order_comes(
        &mut self,
        channel: BorrowedFd<'_>,
    ) -> io::Result<()> {
        let mut patience = QUIET;
        while let Some(program) = &mut self.program {
            if comes_within(channel, patience)? {
                return Ok(());
            }
            // Without it copies are only slower.
            if !program.step().unwrap_or(false) {
                self.program = None;
            }
            patience = Duration::ZERO;
        }
        if self.networks.are_complete() || comes_within(channel, self.networks.patience())? {
            return Ok(());
        }
        self.networks.count_anew();
        while self.networks.step() && !comes_within(channel, Duration::ZERO)? {}
        Ok(())
    }

    /// Takes a network for a sandbox, if there is one.
    pub(super) fn take_network(&mut self) -> Option<ReadyNetwork> {
        self.networks.take()
    }
}

fn comes_within(channel: BorrowedFd<'_>, time: Duration) -> io::Result<bool> {
    let mut order = [PollFd::new(&channel, PollFlags::IN)];
    let time = Timespec::try_from(time).unwrap_or_default();
    Ok(retry_on_intr(|| poll(&mut order, Some(&time)))? > 0)
}

/// Networks for sandboxes to come: as many as were asked for since it was last quiet. When there are
/// fewer the next time, half of those that are too many go: each takes the kernel a sixth of a
/// mebibyte.
#[derive(Debug)]
struct Networks {
    ready: Vec<ReadyNetwork>,
    wanted: usize,
    /// Since it was last quiet.
    asked_for: usize,
}

impl Networks {
    /// More are not worth their memory.
    const MAX: usize = 128;

    fn new() -> Self {
        Self {
            ready: Vec::new(),
            wanted: 1,
            asked_for: 0,
        }
    }

    fn take(&mut self) -> Option<ReadyNetwork> {
        self.asked_for += 1;
        self.ready.pop()
    }

    fn patience(&self) -> Duration {
        let ordered = self.asked_for.min(Self::MAX);
        QUIET + SETTLING * u32::try_from(ordered).unwrap_or(u32::MAX)
    }

    fn are_complete(&self) -> bool {
        self.asked_for == 0 && self.ready.len() == self.wanted
    }

    fn count_anew(&mut self) {
        let asked_for = std::mem::take(&mut self.asked_for);
        // Nobody may make any, or nobody has asked for any.
        if asked_for > 0 && self.wanted > 0 {
            self.wanted = asked_for.max(usize::midpoint(asked_for, self.wanted));
            self.wanted = self.wanted.min(Self::MAX);
        }
    }

    fn step(&mut self) -> bool {
        if self.ready.len() > self.wanted {
            self.ready.pop();
        } else if self.ready.len() < self.wanted {
            match ReadyNetwork::make() {
                Ok(network) => self.ready.push(network),
                // Sandboxes make their own, as they do without root.
                Err(_) => self.wanted = 0,
            }
        } else {
            return false;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(networks: &mut Networks, asked_for: usize) -> usize {
        for _ in 0..asked_for {
            networks.take();
        }
        networks.count_anew();
        networks.wanted
    }

    #[test]
    fn as_many_networks_are_wanted_as_were_asked_for_at_once() {
        let mut networks = Networks::new();
        let asked_for = [1, 4, 1, 1, 1000, 100, 3, 3, 0];
        let wanted = asked_for.map(|asked_for| after(&mut networks, asked_for));
        assert_eq!(wanted, [1, 4, 2, 1, 128, 114, 58, 30, 30]);
    }

    #[test]
    fn the_more_were_asked_for_the_longer_the_next_ones_wait() {
        let mut networks = Networks::new();
        let mut last = networks.patience();
        for _ in 0..Networks::MAX {
            networks.take();
            assert!(networks.patience() > last);
            last = networks.patience();
        }
        assert!(last < Duration::from_secs(1));
        networks.take();
        assert_eq!(networks.patience(), last);
    }

    #[test]
    fn whoever_can_make_no_networks_does_not_try_again() {
        let mut networks = Networks::new();
        networks.wanted = 0;
        assert_eq!(after(&mut networks, 5), 0);
        assert!(networks.are_complete());
    }
}
