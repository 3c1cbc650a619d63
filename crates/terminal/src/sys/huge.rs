//! This program in huge pages.

use std::{io, ptr};

use crate::pages::{HUGE_BYTES, Stretch, huge_stretches, is_huge};

/// A released program is smaller. One that was built to be debugged is not worth its memory.
const HELD_BYTES_MAX: usize = 96 * 1024 * 1024;

/// Holds this program in huge pages of memory instead of pages of its file, so that a copy of this
/// process has all of it from its first moment. Otherwise the kernel maps it into every copy anew,
/// a few pages at a time as they are used. Says how many bytes it holds so: none where the kernel
/// has no huge pages to give.
///
/// The calling process must have a single thread.
///
/// # Errors
/// When `/proc` is not there, or the system refuses.
pub fn hold_program_in_huge_pages() -> io::Result<usize> {
    let program = std::fs::read_link("/proc/self/exe")?;
    let mappings = std::fs::read_to_string("/proc/self/smaps")?;
    let stretches = huge_stretches(&mappings, &program);
    let wanted: usize = stretches.iter().map(|stretch| stretch.length).sum();
    if wanted > HELD_BYTES_MAX {
        return Ok(0);
    }
    let mut held = 0;
    for stretch in stretches {
        if !HugeCopy::of(&stretch)?.put_in_place(&stretch)? {
            break;
        }
        held += stretch.length;
    }
    Ok(held)
}

/// A copy of a part of this program. Dropping it unmaps it.
struct HugeCopy {
    /// More than is needed, so that a huge page can begin in it.
    mapping: *mut libc::c_void,
    mapped: usize,
    start: usize,
}

impl HugeCopy {
    fn of(stretch: &Stretch) -> io::Result<Self> {
        let mapped = stretch.length + HUGE_BYTES;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at an address that the kernel chooses touches no other.
        let mapping = unsafe { libc::mmap(ptr::null_mut(), mapped, access, kind, -1, 0) };
        if mapping == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = (mapping as usize).next_multiple_of(HUGE_BYTES);
        // SAFETY: the advice is for the inside of the mapping, which is ours; it need not be taken.
        unsafe { libc::madvise(start as *mut _, stretch.length, libc::MADV_HUGEPAGE) };
        // SAFETY: the source is a mapping of our own file that can be read and that nobody can have
        // written to; the destination is as long, new, writable, and apart from it.
        unsafe {
            ptr::copy_nonoverlapping(stretch.start as *const u8, start as *mut u8, stretch.length);
        }
        Ok(Self {
            mapping,
            mapped,
            start,
        })
    }

    /// Moves it to where the program expects its own, unless it is not in huge pages: many small ones
    /// would make every copy of this process slower.
    fn put_in_place(self, stretch: &Stretch) -> io::Result<bool> {
        let mappings = std::fs::read_to_string("/proc/self/smaps")?;
        if !is_huge(&mappings, self.start, stretch.length) {
            return Ok(false);
        }
        let access = if stretch.is_executable {
            libc::PROT_READ | libc::PROT_EXEC
        } else {
            libc::PROT_READ
        };
        let (copy, length) = (self.start as *mut libc::c_void, stretch.length);
        // SAFETY: the range is ours alone, and nobody writes to it any more.
        if unsafe { libc::mprotect(copy, length, access) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let place = stretch.start as *mut libc::c_void;
        let how = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        // SAFETY: what is replaced are the same bytes with the same rights, in one step, and no other
        // thread could see anything between. This very code may be among them.
        if unsafe { libc::mremap(copy, length, length, how, place) } == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(true)
    }
}

impl Drop for HugeCopy {
    fn drop(&mut self) {
        // SAFETY: the mapping was made for this value. What was moved out of it is elsewhere, and
        // nobody else has been given an address in this range meanwhile: there is one thread.
        unsafe { libc::munmap(self.mapping, self.mapped) };
    }
}
