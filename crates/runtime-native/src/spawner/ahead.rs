//! What a spawner does for copies to come while nobody asks for one.

use std::{io, os::fd::BorrowedFd, time::Duration};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::retry_on_intr,
};
use zareba_confine::network::{MakeNetworkError, ReadyNetwork};
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

    /// Goes on in small steps, as long as there is something to do. To be called between two orders.
    ///
    /// # Errors
    /// When copies of this process would not be what they should be any more.
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
        while self.networks.step(ReadyNetwork::make)? && !comes_within(channel, Duration::ZERO)? {}
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

/// Networks for sandboxes to come: as many as were asked for without a pause the last time. When those
/// are fewer the next time, half of what is too much goes: each takes the kernel a sixth of a mebibyte.
#[derive(Debug)]
struct Networks {
    ready: Vec<ReadyNetwork>,
    wanted: usize,
    /// Since it was last quiet.
    asked_for: usize,
    can_be_made: bool,
}

impl Networks {
    /// More are not worth their memory.
    const MAX: usize = 128;

    fn new() -> Self {
        Self {
            ready: Vec::new(),
            wanted: 1,
            asked_for: 0,
            can_be_made: true,
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
        if asked_for > 0 && self.can_be_made {
            self.wanted = asked_for.max(usize::midpoint(asked_for, self.wanted));
            self.wanted = self.wanted.min(Self::MAX);
        }
    }

    /// Makes one or lets go of one, and says whether that was necessary. When none can be made, sandboxes
    /// make their own.
    fn step(
        &mut self,
        make: impl FnOnce() -> Result<ReadyNetwork, MakeNetworkError>,
    ) -> io::Result<bool> {
        if self.ready.len() > self.wanted {
            self.ready.pop();
        } else if self.ready.len() < self.wanted {
            match make() {
                Ok(network) => self.ready.push(network),
                Err(MakeNetworkError::Refused(error)) => {
                    // Whoever has no right to has none later.
                    self.can_be_made = error.kind() != io::ErrorKind::PermissionDenied;
                    self.wanted = self.ready.len();
                }
                Err(MakeNetworkError::Astray(error)) => return Err(error),
            }
        } else {
            return Ok(false);
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    fn after(networks: &mut Networks, asked_for: usize) -> usize {
        for _ in 0..asked_for {
            networks.take();
        }
        networks.count_anew();
        networks.wanted
    }

    #[test]
    fn as_many_networks_are_wanted_as_were_asked_for_without_a_pause() {
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
    fn whoever_may_make_no_networks_does_not_try_again() {
        let mut networks = Networks::new();
        let refused = |errno: Errno| move || Err(MakeNetworkError::Refused(errno.into()));
        // Others may have let go of some by then.
        assert!(networks.step(refused(Errno::NOSPC)).unwrap());
        assert!(networks.are_complete());
        assert_eq!(after(&mut networks, 5), 5);
        assert!(networks.step(refused(Errno::PERM)).unwrap());
        assert_eq!(after(&mut networks, 5), 0);
        assert!(networks.are_complete());
    }

    #[test]
    fn whoever_has_gone_astray_makes_no_more_copies() {
        let astray = || Err(MakeNetworkError::Astray(Errno::PERM.into()));
        assert!(Networks::new().step(astray).is_err());
    }
}
