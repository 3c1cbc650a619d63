//! Unpacks the archive of one layer, with both of its digests computed on the way.

use std::{
    cell::Cell,
    io::{self, BufReader, Read},
    path::Path,
};

use super::{
    archive::{Archive, Entry, EntryKind, Source, cut_short},
    entry_path::EntryPath,
    failure::{Refusal, UnpackError},
    tree::{Attributes, Contents, Tree},
};
use crate::{
    decode::Decoder,
    digest::{Digest, HashingReader},
    limits::{Budget, Counted, Metered},
};

/// Begins the name of an entry that hides one of the layers below.
const HIDES: &[u8] = b".wh.";
/// Begins the names that an old union file system kept its own books under.
const BOOKS: &[u8] = b".wh..wh.";
/// Hides all that the layers below have in its directory.
const HIDES_ALL: &[u8] = b".wh..wh..opq";
const BUFFER_BYTES: usize = 128 * 1024;

/// A layer that was unpacked to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unpacked {
    pub(crate) contents: Contents,
    /// The digest of the archive without compression.
    pub(crate) diff_id: Digest,
    /// The digest of the bytes as they came.
    pub(crate) blob: Digest,
}

impl<R: Read> Source for &mut BufReader<R> {}

/// Unpacks a layer, compressed or not, into an empty directory. `tell` hears how many bytes of
/// it have been read. After an error the directory holds something useless.
pub(crate) fn unpack_layer(
    blob: impl Read,
    into: &Path,
    budget: &Budget,
    tell: &mut dyn FnMut(u64),
) -> Result<Unpacked, UnpackError> {
    let count = Cell::new(0);
    let counted = Counted {
        inner: blob,
        count: &count,
        tell,
    };
    let mut blob = HashingReader::new(counted);
    let decoder = Decoder::new(&mut blob).map_err(cut_short)?;
    let plain = HashingReader::new(Metered::new(decoder, budget, &count));
    let mut plain = BufReader::with_capacity(BUFFER_BYTES, plain);
    let tree = Tree::open(into, budget)?;
    let contents = unpack_archive(Archive::new(&mut plain, budget), tree)?;
    let diff_id = plain.into_inner().finish();
    // What a decoder left unread belongs to the digest, too.
    io::copy(&mut blob, &mut io::sink()).map_err(UnpackError::reading)?;
    Ok(Unpacked {
        contents,
        diff_id,
        blob: blob.finish(),
    })
}

fn unpack_archive<R: Source>(
    mut archive: Archive<'_, R>,
    mut tree: Tree<'_>,
) -> Result<Contents, UnpackError> {
    while let Some(entry) = archive.next()? {
        tree.contents.entries = tree.contents.entries.saturating_add(1);
        unpack_entry(&mut tree, &entry, &mut archive.content())?;
    }
    archive.finish()?;
    Ok(tree.contents)
}

fn unpack_entry(
    tree: &mut Tree<'_>,
    entry: &Entry,
    content: &mut dyn Read,
) -> Result<(), UnpackError> {
    let path = EntryPath::parse(&entry.name)?;
    if let Some((name, above)) = path.split()
        && let Some(hidden) = name.strip_prefix(HIDES)
    {
        return unpack_mark(tree, entry, above, name, hidden);
    }
    if path.parts().iter().any(|part| part.starts_with(BOOKS)) {
        return Ok(());
    }
    let attributes = Attributes {
        mode: entry.mode,
        modified: entry.modified,
    };
    match entry.kind {
        EntryKind::File => tree.add_file(&path, attributes, content, &mut |_| {}),
        EntryKind::Directory => tree.add_directory(&path, entry.mode),
        EntryKind::Symlink => tree.add_symlink(&path, attributes, &entry.link),
        EntryKind::HardLink => tree.add_hard_link(&path, &EntryPath::parse(&entry.link)?),
        EntryKind::Special => {
            tree.contents.skipped = tree.contents.skipped.saturating_add(1);
            Ok(())
        }
    }
}

/// An entry that is not a file but says what the layers below no longer have.
fn unpack_mark(
    tree: &mut Tree<'_>,
    entry: &Entry,
    above: &[Vec<u8>],
    name: &[u8],
    hidden: &[u8],
) -> Result<(), UnpackError> {
    if name == HIDES_ALL {
        return tree.hide_all(&EntryPath::of(above));
    }
    if name.starts_with(BOOKS) {
        return Ok(());
    }
    if matches!(hidden, b"" | b"." | b"..") {
        return Err(UnpackError::refused(&entry.name, Refusal::BadName));
    }
    let mut parts = above.to_vec();
    parts.push(hidden.to_vec());
    tree.hide(&EntryPath::of(&parts))
}
