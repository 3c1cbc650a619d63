//! Packs a source into a zip or tar archive while it is being read.

use std::{
    cell::Cell,
    fs::{File, Metadata},
    io::{self, Read, Write},
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::Path,
};

use bytes::Bytes;
use tar::{EntryType, Header};
use tokio::sync::mpsc;
use zareba_wire::ArchiveFormat;
use zip::{CompressionMethod, DateTime, ZipWriter, write::SimpleFileOptions};

use super::{
    outlet::Outlet,
    source::{Item, LinkPolicy, Source},
    spool::PERMISSION_BITS,
};

/// From this size on an entry needs the 64-bit form of zip.
const ZIP32_BYTES_MAX: u64 = u32::MAX as u64 - 1;
/// The directory mark in the part of a zip entry's attributes that comes from DOS.
const DOS_DIRECTORY: u32 = 0x10;

/// Packs the source into the channel. A failure is the last thing the channel carries.
pub(super) fn pack(
    source: Source,
    format: ArchiveFormat,
    sender: &mpsc::Sender<io::Result<Bytes>>,
) {
    let closed = Cell::new(false);
    let outlet = Outlet::new(sender, &closed);
    let packed = match format {
        ArchiveFormat::Zip => pack_zip(&source, outlet, &closed),
        ArchiveFormat::Tar => pack_tar(&source, outlet, &closed),
    };
    if let Err(error) = packed {
        // When the reader is gone there is nobody to tell.
        let _ = sender.blocking_send(Err(error));
    }
}

fn pack_zip(source: &Source, outlet: Outlet<'_>, closed: &Cell<bool>) -> io::Result<()> {
    let mut archive = ZipWriter::new_stream(outlet);
    let packed = source.for_each(LinkPolicy::of(ArchiveFormat::Zip), &mut |item| match item {
        Item::File {
            path,
            file,
            metadata,
        } => {
            let options = zip_options(&metadata).large_file(metadata.len() > ZIP32_BYTES_MAX);
            archive.start_file_with_options(options.name(path.as_os_str().as_bytes()))?;
            // A file that grows meanwhile is packed as long as it was when it was opened.
            io::copy(&mut file.take(metadata.len()), &mut archive)?;
            Ok(())
        }
        Item::Directory {
            path,
            metadata,
            is_empty: true,
        } => {
            let mut name = path.as_os_str().as_bytes().to_vec();
            name.push(b'/');
            let options = zip_options(&metadata);
            match String::from_utf8(name) {
                Ok(name) => Ok(archive.add_directory(name, options)?),
                Err(error) => {
                    let mode = (metadata.mode() & PERMISSION_BITS) << 16 | DOS_DIRECTORY;
                    let name = error.into_bytes();
                    let options = options.external_attributes(mode).name(&name);
                    Ok(archive.start_file_with_options(options)?)
                }
            }
        }
        // Other directories are in the names of what is in them.
        Item::Directory { .. } | Item::Link { .. } => Ok(()),
    });
    if packed.is_err() {
        closed.set(true);
        return packed;
    }
    archive.finish()?.into_inner().flush()
}

fn zip_options(metadata: &Metadata) -> SimpleFileOptions {
    SimpleFileOptions::default()
        .compression_method(CompressionMethod::Stored)
        .unix_permissions(metadata.mode() & PERMISSION_BITS)
        .last_modified_time(zip_time(metadata.mtime()))
}

/// A Unix time as zip's calendar date, in UTC; zip begins in 1980.
fn zip_time(seconds: i64) -> DateTime {
    const DAY: i64 = 86_400;
    let (days, second) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
    // Days to date in the calendar that begins on 1 March of year 0: a leap day then is the last
    // day of its year, and all months before it have the same lengths every year.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let byte = |number: i64| u8::try_from(number).unwrap_or(0);
    u16::try_from(year)
        .ok()
        .and_then(|year| {
            let (hour, minute) = (byte(second / 3_600), byte(second / 60 % 60));
            DateTime::from_date_and_time(
                year,
                byte(month),
                byte(day),
                hour,
                minute,
                byte(second % 60),
            )
            .ok()
        })
        .unwrap_or_default()
}

fn pack_tar(source: &Source, outlet: Outlet<'_>, closed: &Cell<bool>) -> io::Result<()> {
    let mut archive = tar::Builder::new(outlet);
    let packed = source.for_each(LinkPolicy::of(ArchiveFormat::Tar), &mut |item| match item {
        Item::File {
            path,
            file,
            metadata,
        } => {
            let mut header = tar_header(EntryType::Regular, Some(&metadata));
            header.set_size(metadata.len());
            let content = Exactly {
                file,
                left: metadata.len(),
            };
            archive.append_data(&mut header, path, content)
        }
        Item::Directory { path, metadata, .. } => {
            let mut header = tar_header(EntryType::Directory, Some(&metadata));
            archive.append_data(&mut header, path, io::empty())
        }
        Item::Link { path, target } => {
            let mut header = tar_header(EntryType::Symlink, None);
            archive.append_link(&mut header, path, Path::new(&target))
        }
    });
    if packed.is_err() {
        closed.set(true);
        return packed;
    }
    archive.into_inner()?.flush()
}

fn tar_header(kind: EntryType, metadata: Option<&Metadata>) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(0);
    header.set_mode(metadata.map_or(PERMISSION_BITS, |metadata| {
        metadata.mode() & PERMISSION_BITS
    }));
    if let Some(metadata) = metadata {
        header.set_uid(u64::from(metadata.uid()));
        header.set_gid(u64::from(metadata.gid()));
        header.set_mtime(u64::try_from(metadata.mtime()).unwrap_or(0));
    }
    header
}

/// A file of a length that was promised: tar writes the length first.
struct Exactly {
    file: File,
    left: u64,
}

impl Read for Exactly {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = buffer
            .len()
            .min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let read = self.file.read(&mut buffer[..wanted])?;
        if read == 0 && wanted > 0 {
            return Err(io::Error::other(
                "a file became shorter while it was packed",
            ));
        }
        self.left -= read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unix_times_become_calendar_dates() {
        let parts = |seconds| {
            let time = zip_time(seconds);
            let date = (time.year(), time.month(), time.day());
            (date, (time.hour(), time.minute(), time.second()))
        };
        assert_eq!(parts(951_827_696), ((2000, 2, 29), (12, 34, 56)));
        assert_eq!(parts(1_735_689_599), ((2024, 12, 31), (23, 59, 58)));
        assert_eq!(parts(0), ((1980, 1, 1), (0, 0, 0)));
        assert_eq!(parts(i64::MAX / 2), ((1980, 1, 1), (0, 0, 0)));
    }

    #[test]
    fn a_file_that_became_shorter_is_an_error() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"abc").unwrap();
        io::Seek::rewind(&mut file).unwrap();
        let mut content = Vec::new();
        let error = Exactly { file, left: 4 }
            .read_to_end(&mut content)
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "a file became shorter while it was packed"
        );
    }
}
