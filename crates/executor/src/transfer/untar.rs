//! Reads an uploaded tar archive, entry by entry: ustar, GNU and PAX.
//!
//! The loop over the blocks is our own because the library's reads long names and PAX records
//! into memory whatever their size; the fields of a header are read by the library. Sparse files
//! are not taken.

use std::{
    fs::File,
    io::{self, BufReader, Read, Seek, SeekFrom},
    path::Path,
};

use tar::{EntryType, Header};
use zareba_wire::TransferError;

use super::{
    budget::Budget,
    entry_path::EntryPath,
    failure::{bad_archive, bad_entry},
    staging::Staging,
};

/// Everything in a tar archive comes in blocks of this size.
const BLOCK_BYTES: u64 = 512;
/// Longest extension record (a long name, or the PAX records of one entry).
const EXTENSION_BYTES_MAX: u64 = 64 * 1024;
/// The largest size that a plain header can say; only beyond it may PAX say another one.
const PLAIN_SIZE_MAX: u64 = 0o77_777_777_777;

/// Unpacks the archive into the staging. `label` is what it is called in the error.
pub(super) fn untar(
    archive: &File,
    label: &Path,
    mut budget: Budget,
    staging: &mut Staging<'_>,
) -> Result<(), TransferError> {
    let mut blocks = Blocks {
        reader: BufReader::new(archive),
        label,
    };
    blocks
        .reader
        .seek(SeekFrom::Start(0))
        .map_err(|error| blocks.broken(&error))?;
    let mut extensions = Extensions::default();
    let mut is_first = true;
    while let Some(header) = blocks.header(is_first)? {
        is_first = false;
        // Extension records count as entries too, or an archive could consist of them.
        budget.charge_entry()?;
        match header.entry_type() {
            EntryType::GNULongName => extensions.name = Some(blocks.long_name(&header)?),
            EntryType::GNULongLink => extensions.link = Some(blocks.long_name(&header)?),
            EntryType::XHeader => {
                let records = blocks.extension(&header)?;
                extensions.read_pax(&records)?;
            }
            EntryType::XGlobalHeader => {
                let records = blocks.extension(&header)?;
                refuse_names_for_all(&records)?;
            }
            _ => {
                let extensions = std::mem::take(&mut extensions);
                blocks.entry(&header, extensions, &mut budget, staging)?;
            }
        }
    }
    blocks.expect_zeros_to_the_end()
}

struct Blocks<'a> {
    reader: BufReader<&'a File>,
    label: &'a Path,
}

impl Blocks<'_> {
    /// The next header, or nothing at the end marker.
    fn header(&mut self, is_first: bool) -> Result<Option<Header>, TransferError> {
        let mut header = Header::new_old();
        self.reader
            .read_exact(header.as_mut_bytes())
            .map_err(|error| {
                if is_first {
                    self.not_a_tar()
                } else {
                    self.broken(&error)
                }
            })?;
        let bytes = header.as_bytes();
        if bytes.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        // The checksum counts its own eight bytes as spaces.
        let (head, rest) = bytes.split_at(148);
        let sum = head
            .iter()
            .chain(&rest[8..])
            .map(|byte| u32::from(*byte))
            .sum::<u32>()
            + 8 * 32;
        match header.cksum() {
            Ok(expected) if expected == sum => Ok(Some(header)),
            _ if is_first => Err(self.not_a_tar()),
            _ => Err(bad_archive(format!(
                "{} has a corrupt header",
                self.label.display()
            ))),
        }
    }

    fn entry(
        &mut self,
        header: &Header,
        extensions: Extensions,
        budget: &mut Budget,
        staging: &mut Staging<'_>,
    ) -> Result<(), TransferError> {
        let name = extensions
            .name
            .unwrap_or_else(|| header.path_bytes().into_owned());
        let unreadable = |error: io::Error| bad_entry(&name, format!("is corrupt: {error}"));
        let path = EntryPath::parse(&name)?;
        let plain_size = header.entry_size().map_err(unreadable)?;
        let size = extensions.size.unwrap_or(plain_size);
        if size != plain_size && size <= PLAIN_SIZE_MAX {
            return Err(bad_entry(&name, "has two sizes that differ"));
        }
        let mode = header.mode().map_err(unreadable)?;
        let target = extensions
            .link
            .or_else(|| header.link_name_bytes().map(|name| name.into_owned()));
        let mut content = (&mut self.reader).take(size);
        match header.entry_type() {
            EntryType::Regular | EntryType::Continuous if name.ends_with(b"/") => {
                staging.add_directory(&path, mode, budget)?;
            }
            EntryType::Regular | EntryType::Continuous => {
                staging.add_file(&path, mode, &mut content, budget)?;
            }
            EntryType::Directory => staging.add_directory(&path, mode, budget)?,
            EntryType::Symlink => staging.add_link(path, &target.unwrap_or_default(), budget)?,
            EntryType::Link => {
                let target = EntryPath::parse(&target.unwrap_or_default())?;
                staging.add_hard_link(&path, &target, budget)?;
            }
            _ => {
                return Err(bad_entry(
                    &name,
                    "is neither a file, a directory nor a link",
                ));
            }
        }
        // What is left is the content of an entry that has none, or of a file cut short.
        io::copy(&mut content, &mut io::sink()).map_err(unreadable)?;
        if content.limit() > 0 {
            return Err(bad_entry(&name, "is cut short"));
        }
        self.skip_padding(size)
    }

    /// The content of an extension record, which is small.
    fn extension(&mut self, header: &Header) -> Result<Vec<u8>, TransferError> {
        let size = header.entry_size().map_err(|error| self.broken(&error))?;
        if size > EXTENSION_BYTES_MAX {
            return Err(bad_archive(format!(
                "{} has an extension record of more than {EXTENSION_BYTES_MAX} bytes",
                self.label.display()
            )));
        }
        let mut content = Vec::new();
        (&mut self.reader)
            .take(size)
            .read_to_end(&mut content)
            .map_err(|error| self.broken(&error))?;
        if content.len() as u64 != size {
            return Err(self.broken(&io::ErrorKind::UnexpectedEof.into()));
        }
        self.skip_padding(size)?;
        Ok(content)
    }

    /// A GNU long name, which is closed by a null byte.
    fn long_name(&mut self, header: &Header) -> Result<Vec<u8>, TransferError> {
        let mut name = self.extension(header)?;
        if name.last() == Some(&0) {
            name.pop();
        }
        Ok(name)
    }

    fn skip_padding(&mut self, size: u64) -> Result<(), TransferError> {
        let padding = size.next_multiple_of(BLOCK_BYTES) - size;
        let skipped = io::copy(&mut (&mut self.reader).take(padding), &mut io::sink());
        match skipped {
            Ok(skipped) if skipped == padding => Ok(()),
            Ok(_) => Err(self.broken(&io::ErrorKind::UnexpectedEof.into())),
            Err(error) => Err(self.broken(&error)),
        }
    }

    /// After the end marker there is only padding; anything else would be read by other tools.
    fn expect_zeros_to_the_end(&mut self) -> Result<(), TransferError> {
        let mut block = [0; BLOCK_BYTES as usize];
        loop {
            match self.reader.read(&mut block) {
                Ok(0) => return Ok(()),
                Ok(read) if block[..read].iter().all(|byte| *byte == 0) => {}
                Ok(_) => {
                    return Err(bad_archive(format!(
                        "{} has something after its end",
                        self.label.display()
                    )));
                }
                Err(error) => return Err(self.broken(&error)),
            }
        }
    }

    fn not_a_tar(&self) -> TransferError {
        bad_archive(format!("{} is not a tar file", self.label.display()))
    }

    fn broken(&self, error: &io::Error) -> TransferError {
        let reason = match error.kind() {
            io::ErrorKind::UnexpectedEof => "it is cut short".to_owned(),
            _ => error.to_string(),
        };
        bad_archive(format!("{} is corrupt: {reason}", self.label.display()))
    }
}

/// What extension records say about the next entry.
#[derive(Debug, Default, PartialEq, Eq)]
struct Extensions {
    name: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    size: Option<u64>,
}

impl Extensions {
    /// Reads records of the form `LENGTH KEY=VALUE\n`, where the length counts all of it.
    fn read_pax(&mut self, mut records: &[u8]) -> Result<(), TransferError> {
        let malformed = || bad_archive("archive has a malformed PAX record");
        while !records.is_empty() {
            let space = records
                .iter()
                .position(|byte| *byte == b' ')
                .ok_or_else(malformed)?;
            let length: usize = std::str::from_utf8(&records[..space])
                .ok()
                .and_then(|digits| digits.parse().ok())
                .ok_or_else(malformed)?;
            let record = records.get(space + 1..length).ok_or_else(malformed)?;
            let record = record.strip_suffix(b"\n").ok_or_else(malformed)?;
            let equals = record
                .iter()
                .position(|byte| *byte == b'=')
                .ok_or_else(malformed)?;
            let (key, value) = (&record[..equals], &record[equals + 1..]);
            match key {
                b"path" => self.name = Some(value.to_vec()),
                b"linkpath" => self.link = Some(value.to_vec()),
                b"size" => {
                    let size = std::str::from_utf8(value)
                        .ok()
                        .and_then(|size| size.parse().ok());
                    self.size = Some(size.ok_or_else(malformed)?);
                }
                _ if key.starts_with(b"GNU.sparse.") => {
                    return Err(bad_archive(
                        "archive has a sparse file, which is not supported",
                    ));
                }
                _ => {}
            }
            records = &records[length..];
        }
        Ok(())
    }
}

/// Refuses global records that name entries or their sizes: some programs apply them to every entry that
/// follows and others to none, so the archive would not hold the same for both.
fn refuse_names_for_all(records: &[u8]) -> Result<(), TransferError> {
    let mut global = Extensions::default();
    global.read_pax(records)?;
    match global == Extensions::default() {
        true => Ok(()),
        false => Err(bad_archive(
            "archive gives all its entries one name or size by a global PAX record",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pax(records: &[u8]) -> Result<Extensions, String> {
        let mut extensions = Extensions::default();
        extensions
            .read_pax(records)
            .map_err(|error| error.to_string())?;
        Ok(extensions)
    }

    #[test]
    fn pax_records_are_read_by_their_length() {
        let expected = Extensions {
            name: Some(b"a\nb=c".to_vec()),
            link: Some(b"t".to_vec()),
            size: Some(12),
        };
        assert_eq!(
            pax(b"14 path=a\nb=c\n14 linkpath=t\n11 size=12\n9 mtime=\n"),
            Ok(expected)
        );
    }

    #[test]
    fn malformed_pax_records_are_refused() {
        let records: [&[u8]; 6] = [
            b"path=a",
            b"99 path=a\n",
            b"8 path=a\n",
            b"0 path=a\n",
            b"9 nothing\n",
            b"10 size=-1\n",
        ];
        for record in records {
            assert_eq!(
                pax(record),
                Err("archive has a malformed PAX record".to_owned())
            );
        }
        assert_eq!(
            pax(b"22 GNU.sparse.major=1\n"),
            Err("archive has a sparse file, which is not supported".to_owned())
        );
    }
}
