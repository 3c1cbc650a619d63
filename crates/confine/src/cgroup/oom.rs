//! Word that memory ran out, as a descriptor to wait on.
//!
//! The two generations give it differently: one marks a file as changed, the other raises a
//! counter that it was handed. Both are gathered in one epoll descriptor, which any event loop
//! can watch for reading.

use std::{
    io,
    os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd},
    sync::Arc,
};

use rustix::{
    event::{EventfdFlags, epoll, eventfd},
    fs::OFlags,
    io::Errno,
};

use super::{
    CgroupError, Controller, Version,
    directory::{Directory, is_gone, keyed},
    events::EventsFile,
    seats::Seats,
};

const LEGACY: &str = "memory.oom_control";
const UNIFIED: &str = "memory.events";

/// Readable when memory ran out, until [`OomWatch::acknowledge`] is called.
#[derive(Debug)]
pub struct OomWatch {
    epoll: OwnedFd,
    sources: Vec<Source>,
}

#[derive(Debug)]
enum Source {
    Unified {
        events: EventsFile,
        seen: u64,
    },
    Legacy {
        counter: OwnedFd,
        directory: Arc<Directory>,
    },
}

impl OomWatch {
    pub(super) fn new(seats: &Seats) -> Result<Self, CgroupError> {
        let Some(seat) = seats.with(Controller::Memory) else {
            return Err(CgroupError::Unavailable {
                deed: "watch for lack of memory in",
            });
        };
        let watch = || {
            let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            let mut watch = Self {
                epoll,
                sources: Vec::new(),
            };
            match seat.version {
                Version::V2 => watch.add_unified(&seat.directory)?,
                Version::V1 => {
                    watch.add_legacy(Arc::clone(&seat.directory))?;
                    // A leaf that runs out at its own limit tells only those who asked the leaf.
                    for name in seat.directory.children()? {
                        watch.add_legacy(Arc::new(seat.directory.child(&name)?))?;
                    }
                }
            }
            Ok(watch)
        };
        watch().map_err(seat.directory.failure("watch for lack of memory in", ""))
    }

    fn add_unified(&mut self, directory: &Directory) -> io::Result<()> {
        let events = EventsFile::open(directory, UNIFIED)?;
        let seen = times_out_of_memory(&events.read()?);
        self.add(events.descriptor(), epoll::EventFlags::PRI)?;
        self.sources.push(Source::Unified { events, seen });
        Ok(())
    }

    fn add_legacy(&mut self, directory: Arc<Directory>) -> io::Result<()> {
        let counter = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let control = directory.open_file(LEGACY, OFlags::RDONLY)?;
        let request = format!("{} {}", counter.as_raw_fd(), control.as_raw_fd());
        directory.write("cgroup.event_control", &request)?;
        self.add(&counter, epoll::EventFlags::IN)?;
        self.sources.push(Source::Legacy { counter, directory });
        Ok(())
    }

    fn add(&self, descriptor: &OwnedFd, flags: epoll::EventFlags) -> io::Result<()> {
        let data = epoll::EventData::new_u64(self.sources.len() as u64);
        Ok(epoll::add(&self.epoll, descriptor, data, flags)?)
    }

    /// Says whether memory ran out since the last call, and makes the descriptor silent until it
    /// does again. In the first generation the word comes before the kernel has killed anybody,
    /// so how many were killed is only sure once their ends are seen.
    ///
    /// # Errors
    /// When the group's state cannot be read. A group that was removed has nothing to say.
    pub fn acknowledge(&mut self) -> Result<bool, CgroupError> {
        let mut ran_out = false;
        for source in &mut self.sources {
            ran_out |= source.acknowledge().map_err(|source| CgroupError::Io {
                deed: "read the memory events of",
                path: "the watched group".into(),
                source,
            })?;
        }
        Ok(ran_out)
    }
}

impl AsFd for OomWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

impl Source {
    fn acknowledge(&mut self) -> io::Result<bool> {
        match self {
            Self::Unified { events, seen } => {
                let now = match events.read() {
                    Err(error) if is_gone(&error) => return Ok(false),
                    text => times_out_of_memory(&text?),
                };
                // The file changes for other reasons as well, as when memory is reclaimed.
                let ran_out = now > *seen;
                *seen = now;
                Ok(ran_out)
            }
            Self::Legacy { counter, directory } => {
                let mut count = [0; 8];
                match rustix::io::read(&*counter, &mut count[..]) {
                    Err(Errno::AGAIN) => return Ok(false),
                    read => read?,
                };
                // The removal of a group raises the counter, too.
                match directory.read(LEGACY) {
                    Err(error) if is_gone(&error) => Ok(false),
                    Err(error) => Err(error),
                    Ok(_) => Ok(true),
                }
            }
        }
    }
}

/// How often the second generation has seen memory run out, or somebody killed for it.
fn times_out_of_memory(events: &str) -> u64 {
    keyed(events, "oom").unwrap_or(0) + keyed(events, "oom_kill").unwrap_or(0)
}
