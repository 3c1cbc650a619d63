"""Directories as archives, on this machine.

What comes out of a sandbox is treated as written by an attacker: an archive is unpacked with the
rules of Python's `data` filter, which keeps every file below the directory that was named.
"""

from __future__ import annotations

import os
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import IO

from .errors import InvalidError, UnsupportedError

_SPOOLED_BYTES = 8 * 1024 * 1024
"""What is kept in memory before a file is used."""


def pack(directory: Path) -> IO[bytes]:
    """A tar of what is in a directory, to be read and closed."""
    packed = spool()
    try:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for name in sorted(os.listdir(directory)):
                archive.add(directory / name, arcname=name, filter=_without_owner)
        packed.seek(0)
        return packed
    except BaseException:
        packed.close()
        raise


def pack_as(source: Path, name: str) -> IO[bytes]:
    """A tar of one file or directory under a name, to be read and closed."""
    packed = spool()
    try:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
            archive.add(source, arcname=name, filter=_without_owner)
        packed.seek(0)
        return packed
    except BaseException:
        packed.close()
        raise


def spool() -> IO[bytes]:
    """A place for an archive that comes."""
    return tempfile.SpooledTemporaryFile(_SPOOLED_BYTES)


def unpack(archive: IO[bytes], name: str, directory: Path) -> None:
    """Puts what a tar has below `name` into a directory, which is made when missing."""
    if not hasattr(tarfile, "data_filter"):
        raise UnsupportedError(
            "this version of Python cannot unpack archives safely",
            code="unsupported",
            hint="use a later patch release of it, or download single files",
        )
    archive.seek(0)
    directory.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=".zareba-", dir=directory))
    try:
        with tarfile.open(fileobj=archive, mode="r|") as tar:
            tar.extractall(beside, filter="data")
        source = beside / name if name and (beside / name).is_dir() else beside
        _move(source, directory)
    except tarfile.TarError as error:
        raise InvalidError(f"the archive cannot be unpacked: {error}", code="invalid") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _move(source: Path, directory: Path) -> None:
    """Moves everything, into directories that are there and over files that are there."""
    for entry in list(os.scandir(source)):
        target = directory / entry.name
        is_directory = entry.is_dir(follow_symlinks=False)
        if is_directory and target.is_dir() and not target.is_symlink():
            _move(Path(entry.path), target)
            continue
        if target.is_symlink() or target.is_file():
            target.unlink()
        os.rename(entry.path, target)


def _without_owner(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Who owns it here means nothing there."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member
