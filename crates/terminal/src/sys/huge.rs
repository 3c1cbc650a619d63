//! This program in huge pages.

use std::{fs, io, ptr};

use crate::pages::{HUGE_BYTES, Stretch, huge_stretches, is_huge};

/// What is mapped where, and in which pages.
const MAPPINGS: &str = "/proc/self/smaps";

/// A released program is smaller. One that was built to be debugged is not worth its memory.
const HELD_BYTES_MAX: usize = 96 * 1024 * 1024;

/// This program on its way into huge pages of memory instead of pages of its file, so that a copy of
/// this process has all of it from its first moment. Otherwise the kernel maps it into every copy
/// anew, a few pages at a time as they are used.
///
/// The way is made in steps of less than a millisecond, so that a process can do something else
/// between two of them, such as to copy itself. That process must have a single thread.
#[derive(Debug, Default)]
pub struct HugeProgram {
    /// What has not been begun; to find out what there is to do is the first step.
    waiting: Option<Vec<Stretch>>,
    begun: Option<HugeCopy>,
    held: usize,
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
        let Some(mut copy) = self.begun.take() else {
            self.begun = waiting.pop().map(HugeCopy::begin).transpose()?;
            return Ok(self.begun.is_some());
        };
        if copy.is_whole() {
            self.held += copy.put_in_place()?;
            return Ok(true);
        }
        copy.copy_page();
        // Many small pages would make every copy of this process slower.
        if (copy.is_at_first_page() || copy.is_whole()) && !copy.is_huge()? {
            waiting.clear();
            return Ok(false);
        }
        self.begun = Some(copy);
        Ok(true)
    }
}

/// What there is of this program to hold in huge pages: all of it, or nothing.
fn find() -> io::Result<Vec<Stretch>> {
    let program = fs::read_link("/proc/self/exe")?;
    let found = huge_stretches(&fs::read_to_string(MAPPINGS)?, &program);
    let wanted: usize = found.iter().map(|stretch| stretch.pages.len()).sum();
    Ok(if wanted > HELD_BYTES_MAX {
        Vec::new()
    } else {
        found
    })
}

/// A copy of a part of this program. Dropping it unmaps it.
#[derive(Debug)]
struct HugeCopy {
    stretch: Stretch,
    /// More than is needed, so that a huge page can begin in it.
    mapping: *mut libc::c_void,
    mapped: usize,
    start: usize,
    copied: usize,
}

impl HugeCopy {
    fn begin(stretch: Stretch) -> io::Result<Self> {
        let length = stretch.pages.len();
        let mapped = length + HUGE_BYTES;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at an address that the kernel chooses touches no other.
        let mapping = unsafe { libc::mmap(ptr::null_mut(), mapped, access, kind, -1, 0) };
        if mapping == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = (mapping as usize).next_multiple_of(HUGE_BYTES);
        // SAFETY: the advice is for the inside of the mapping, which is ours; it need not be taken.
        unsafe { libc::madvise(start as *mut _, length, libc::MADV_HUGEPAGE) };
        Ok(Self {
            stretch,
            mapping,
            mapped,
            start,
            copied: 0,
        })
    }

    fn is_whole(&self) -> bool {
        self.copied == self.stretch.pages.len()
    }

    fn is_at_first_page(&self) -> bool {
        self.copied == HUGE_BYTES
    }

    /// Copies what the program has in the next huge page. There must be one.
    fn copy_page(&mut self) {
        assert!(!self.is_whole(), "there is no page left");
        let Stretch { pages, program, .. } = &self.stretch;
        let page = pages.start + self.copied;
        let from = page.max(program.start);
        let length = (page + HUGE_BYTES).min(program.end) - from;
        let to = self.start + (from - pages.start);
        // SAFETY: both ranges are inside, because every page of a stretch has a part of the program.
        // The source is a mapping of our own file that can be read and that nobody can have written
        // to; the destination is new, writable, and apart from it.
        unsafe { ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, length) };
        self.copied += HUGE_BYTES;
    }

    /// Whether the kernel gave huge pages for what was copied.
    fn is_huge(&self) -> io::Result<bool> {
        let mappings = fs::read_to_string(MAPPINGS)?;
        Ok(is_huge(&mappings, self.start, self.copied))
    }

    /// Moves it to where the program expects its own, and says how many bytes that are.
    fn put_in_place(self) -> io::Result<usize> {
        let access = if self.stretch.is_executable {
            libc::PROT_READ | libc::PROT_EXEC
        } else {
            libc::PROT_READ
        };
        let (copy, length) = (self.start as *mut libc::c_void, self.copied);
        // SAFETY: the range is ours alone, and nobody writes to it any more.
        if unsafe { libc::mprotect(copy, length, access) } != 0 {
            return Err(io::Error::last_os_error());
        }
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

impl Drop for HugeCopy {
    fn drop(&mut self) {
        // SAFETY: the mapping was made for this value. What was moved out of it is elsewhere, and
        // nobody else has been given an address in this range meanwhile: there is one thread.
        unsafe { libc::munmap(self.mapping, self.mapped) };
    }
}
