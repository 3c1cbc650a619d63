//! This program in huge pages.

use std::{
    fs::{self, File},
    io,
    os::{fd::AsRawFd as _, unix::fs::FileExt as _},
    ptr, slice,
};

use rustix::{
    fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create},
    process::{Resource, getrlimit},
};

use crate::pages::{HUGE_BYTES, Stretch, huge_stretches};

/// What is mapped where.
const MAPPINGS: &str = "/proc/self/smaps";

/// A released program is smaller. One that was built to be debugged is not worth its memory.
const HELD_BYTES_MAX: usize = 96 * 1024 * 1024;

/// What is copied in one step.
const STEP_BYTES: usize = HUGE_BYTES / 4;

/// This program on its way into huge pages of memory instead of pages of its file, which the kernel maps
/// into every copy of this process anew, a few at a time as they are used. Of huge pages it maps two
/// mebibytes at once.
///
/// They belong to a file without a name that nobody can change any more: pages that were this process's
/// own would have to be noted for each copy when it is made, used or not.
///
/// The way is made in steps of about a millisecond at most, so that a process can do something else
/// between two of them, such as to copy itself. That process must have a single thread.
#[derive(Debug, Default)]
pub struct HugeProgram {
    /// What has not been begun; to find out what there is to do is the first step.
    waiting: Option<Vec<Stretch>>,
    begun: Option<Begun>,
    held: usize,
}

/// What has been done of a part.
#[derive(Debug)]
enum Begun {
    Copy(HugeCopy),
    Mapped(HugeMapping),
}

impl HugeProgram {
    /// How many bytes of the program are in huge pages by now: none, at the end, where the kernel has
    /// no huge pages to give.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Makes one step, and says whether there is another one.
    ///
    /// # Errors
    /// When `/proc` is not there, or the system refuses. What was reached by then stays.
    pub fn step(&mut self) -> io::Result<bool> {
        let Some(waiting) = &mut self.waiting else {
            self.waiting = Some(find()?);
            return Ok(true);
        };
        self.begun = match self.begun.take() {
            None => match waiting.pop() {
                None => return Ok(false),
                Some(stretch) => Some(Begun::Copy(HugeCopy::begin(stretch)?)),
            },
            Some(Begun::Copy(copy)) if copy.is_whole() => Some(Begun::Mapped(copy.map()?)),
            Some(Begun::Copy(mut copy)) => {
                copy.go_on()?;
                Some(Begun::Copy(copy))
            }
            Some(Begun::Mapped(mapping)) if mapping.is_huge() => {
                self.held += mapping.put_in_place()?;
                None
            }
            Some(Begun::Mapped(mut mapping)) => {
                mapping.join_page()?;
                Some(Begun::Mapped(mapping))
            }
        };
        Ok(true)
    }
}

/// What there is of this program to hold in huge pages: all of it, or nothing. Whoever makes a file
/// larger than it may is ended.
fn find() -> io::Result<Vec<Stretch>> {
    let program = fs::read_link("/proc/self/exe")?;
    let found = huge_stretches(&fs::read_to_string(MAPPINGS)?, &program);
    let wanted: usize = found.iter().map(|stretch| stretch.pages.len()).sum();
    let file_max = getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX);
    Ok(if wanted > HELD_BYTES_MAX || wanted as u64 > file_max {
        Vec::new()
    } else {
        found
    })
}

/// A copy of a part of this program, in a file.
#[derive(Debug)]
struct HugeCopy {
    stretch: Stretch,
    file: File,
    /// Bytes of the program's.
    copied: usize,
}

impl HugeCopy {
    fn begin(stretch: Stretch) -> io::Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = File::from(memfd_create("zareba-program", flags)?);
        file.set_len(stretch.pages.len() as u64)?;
        Ok(Self {
            stretch,
            file,
            copied: 0,
        })
    }

    fn is_whole(&self) -> bool {
        self.copied == self.stretch.program.len()
    }

    fn go_on(&mut self) -> io::Result<()> {
        let Stretch { pages, program, .. } = &self.stretch;
        let from = program.start + self.copied;
        let length = STEP_BYTES.min(program.end - from);
        // SAFETY: the range is inside a mapping of our own file, which stays, can be read, and cannot
        // be written to.
        let bytes = unsafe { slice::from_raw_parts(from as *const u8, length) };
        let offset = from - pages.start;
        self.file.write_all_at(bytes, offset as u64)?;
        self.copied += length;
        Ok(())
    }

    /// Maps it, when nobody can change it any more: all copies of this process will share it, and not
    /// all of them trust each other.
    fn map(self) -> io::Result<HugeMapping> {
        fcntl_add_seals(
            &self.file,
            SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL,
        )?;
        let length = self.stretch.pages.len();
        let mapped = length + HUGE_BYTES;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at an address that the kernel chooses touches no other.
        let room = unsafe { libc::mmap(ptr::null_mut(), mapped, libc::PROT_NONE, kind, -1, 0) };
        if room == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mapping = HugeMapping {
            start: (room as usize).next_multiple_of(HUGE_BYTES),
            stretch: self.stretch,
            room,
            mapped,
            joined: 0,
        };
        let access = if mapping.stretch.is_executable {
            libc::PROT_READ | libc::PROT_EXEC
        } else {
            libc::PROT_READ
        };
        let (start, file) = (mapping.start as *mut libc::c_void, self.file.as_raw_fd());
        let kind = libc::MAP_PRIVATE | libc::MAP_FIXED;
        // SAFETY: the range is inside the room that was made for it, where nothing is.
        if unsafe { libc::mmap(start, length, access, kind, file, 0) } == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(mapping)
    }
}

/// A copy of a part of this program, mapped with the same rights. Dropping it unmaps it.
#[derive(Debug)]
struct HugeMapping {
    stretch: Stretch,
    /// More than is needed, so that a huge page can begin in it.
    room: *mut libc::c_void,
    mapped: usize,
    start: usize,
    joined: usize,
}

impl HugeMapping {
    fn is_huge(&self) -> bool {
        self.joined == self.stretch.pages.len()
    }

    /// Has the kernel make a huge page of the next small ones, or say that it does not.
    fn join_page(&mut self) -> io::Result<()> {
        let page = (self.start + self.joined) as *mut libc::c_void;
        // SAFETY: the page is inside the mapping, which is ours; what is in it stays as it is.
        if unsafe { libc::madvise(page, HUGE_BYTES, libc::MADV_COLLAPSE) } != 0 {
            return Err(io::Error::last_os_error());
        }
        self.joined += HUGE_BYTES;
        Ok(())
    }

    /// Moves it to where the program expects its own, and says how many bytes that are.
    fn put_in_place(self) -> io::Result<usize> {
        let (copy, length) = (self.start as *mut libc::c_void, self.joined);
        let place = self.stretch.pages.start as *mut libc::c_void;
        let how = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        // SAFETY: what is replaced are the same bytes with the same rights, and around them nothing, in
        // one step, and no other thread could see anything between. This very code may be among them.
        if unsafe { libc::mremap(copy, length, length, how, place) } == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(length)
    }
}

impl Drop for HugeMapping {
    fn drop(&mut self) {
        // SAFETY: the room was made for this value. What was moved out of it is elsewhere, and
        // nobody else has been given an address in this range meanwhile: there is one thread.
        unsafe { libc::munmap(self.room, self.mapped) };
    }
}
