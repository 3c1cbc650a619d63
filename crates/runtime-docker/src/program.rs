//! The program that runs in every container: it must need nothing of the image.

use std::{
    fs::File,
    io,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
};

/// Why a program cannot be mounted into any image.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProgramError {
    #[error("cannot read the program `{path}`", path = path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("`{path}` is no program of 64-bit Linux", path = path.display())]
    NotAProgram { path: PathBuf },
    #[error(
        "`{path}` asks for a dynamic linker, which images may not have; \
         use the static program that `make build` makes",
        path = path.display()
    )]
    Dynamic { path: PathBuf },
    #[error(
        "`{path}` is a program for {program}, and the image is for {image}",
        path = path.display()
    )]
    OtherMachine {
        path: PathBuf,
        program: &'static str,
        image: String,
    },
}

/// A static program, and what machine it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StaticProgram {
    /// With links resolved, because that is what the Engine mounts.
    pub(crate) path: PathBuf,
    /// As images name it, such as `amd64`.
    machine: &'static str,
}

/// The header of a 64-bit ELF file and of one of its segments.
const HEADER_BYTES: usize = 64;
const SEGMENT_BYTES: u16 = 56;
/// Linkers make about ten.
const SEGMENTS_MAX: u16 = 128;
/// The segment that names a dynamic linker.
const PT_INTERP: u32 = 3;

impl StaticProgram {
    /// Looks into the file.
    pub(crate) fn check(path: &Path) -> Result<Self, ProgramError> {
        let read = |source| ProgramError::Read {
            path: path.to_owned(),
            source,
        };
        let real = path.canonicalize().map_err(read)?;
        let file = File::open(&real).map_err(read)?;
        let mut header = [0; HEADER_BYTES];
        let wrong = || ProgramError::NotAProgram { path: real.clone() };
        file.read_exact_at(&mut header, 0).map_err(|_| wrong())?;
        let machine = machine_of(&header).ok_or_else(wrong)?;
        let (start, count) = segments_of(&header).ok_or_else(wrong)?;
        for number in 0..u64::from(count) {
            let mut kind = [0; 4];
            let at = start.saturating_add(number * u64::from(SEGMENT_BYTES));
            file.read_exact_at(&mut kind, at).map_err(|_| wrong())?;
            if u32::from_le_bytes(kind) == PT_INTERP {
                return Err(ProgramError::Dynamic { path: real });
            }
        }
        Ok(Self {
            path: real,
            machine,
        })
    }

    /// Whether it can run in an image for this platform, such as `linux/amd64`.
    pub(crate) fn fits(&self, platform: &str) -> Result<(), ProgramError> {
        let wanted = platform.split('/').nth(1).unwrap_or_default();
        if wanted.is_empty() || wanted == self.machine {
            return Ok(());
        }
        Err(ProgramError::OtherMachine {
            path: self.path.clone(),
            program: self.machine,
            image: platform.to_owned(),
        })
    }
}

/// The machine of a 64-bit little-endian program.
fn machine_of(header: &[u8; HEADER_BYTES]) -> Option<&'static str> {
    if !header.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    match [header[18], header[19]] {
        [62, 0] => Some("amd64"),
        [183, 0] => Some("arm64"),
        [243, 0] => Some("riscv64"),
        _ => None,
    }
}

/// Where the segments are described, and how many there are.
fn segments_of(header: &[u8; HEADER_BYTES]) -> Option<(u64, u16)> {
    let start = u64::from_le_bytes(header[32..40].try_into().ok()?);
    let size = u16::from_le_bytes([header[54], header[55]]);
    let count = u16::from_le_bytes([header[56], header[57]]);
    (size == SEGMENT_BYTES && (1..=SEGMENTS_MAX).contains(&count)).then_some((start, count))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_static_program_is_told_from_a_dynamic_one() {
        let busybox = StaticProgram::check("/bin/busybox".as_ref()).unwrap();
        assert!(busybox.fits("linux/amd64").is_ok() != busybox.fits("linux/arm64").is_ok());
        let dynamic = StaticProgram::check("/bin/sh".as_ref()).unwrap_err();
        assert!(matches!(dynamic, ProgramError::Dynamic { .. }), "{dynamic}");
    }

    #[test]
    fn what_is_no_program_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("x");
        let mut truncated = fs::read("/bin/busybox").unwrap();
        truncated.truncate(80);
        for content in [&b""[..], b"#!/bin/sh\n", &[0x7f; 64], &truncated] {
            fs::write(&path, content).unwrap();
            let error = StaticProgram::check(&path).unwrap_err();
            assert!(matches!(error, ProgramError::NotAProgram { .. }), "{error}");
        }
        let missing = StaticProgram::check(&place.path().join("none")).unwrap_err();
        assert!(matches!(missing, ProgramError::Read { .. }));
    }
}
