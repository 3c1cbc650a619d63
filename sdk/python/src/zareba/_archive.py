"""Directories as archives, on this machine.

What comes out of a sandbox is treated as written by an attacker. An archive is unpacked by the
rules of Python's `data` filter, which keeps every file below the directory that was named; they are
written out here, because not every Python that is in use has that filter.
"""

from __future__ import annotations

import os
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import IO, List

from .errors import InvalidError

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
    archive.seek(0)
    directory.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=".zareba-", dir=directory))
    try:
        with tarfile.open(fileobj=archive, mode="r|") as tar:
            for member in tar:
                _take_out(tar, member, beside)
        source = beside / name if name and (beside / name).is_dir() else beside
        _move(source, directory)
    except (tarfile.TarError, EOFError) as error:
        raise _bad(str(error)) from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _take_out(tar: tarfile.TarFile, member: tarfile.TarInfo, top: Path) -> None:
    """Makes what an entry describes: a file, a directory or a link, all of them below `top`."""
    parts = _inside(member.name, member.name)
    if not parts:
        return
    target = top.joinpath(*parts)
    _make_directories(top, parts[:-1], member.name)
    if member.isdir():
        if target.is_symlink() or not target.is_dir():
            target.mkdir()
        return
    if target.is_symlink() or target.is_file():
        target.unlink()
    if member.isreg():
        content = tar.extractfile(member)
        if content is None:
            raise _bad(f"`{member.name}` has no content")
        # Neither set-user-id bits nor a file that others may write.
        mode = (member.mode & 0o755) | 0o600
        opened = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(opened, "wb") as file:
            shutil.copyfileobj(content, file)
            os.fchmod(file.fileno(), mode)
        os.utime(target, (member.mtime, member.mtime))
    elif member.issym():
        if os.path.isabs(member.linkname):
            raise _bad(f"the link `{member.name}` leads out of it, to `{member.linkname}`")
        _inside("/".join([*parts[:-1], member.linkname]), member.name)
        os.symlink(member.linkname, target)
    elif member.islnk():
        linked = _inside(member.linkname, member.name)
        _make_directories(top, linked[:-1], member.name)
        os.link(top.joinpath(*linked), target, follow_symlinks=False)
    else:
        raise _bad(f"`{member.name}` is neither a file, a directory nor a link")


def _inside(path: str, name: str) -> List[str]:
    """The parts of a path that stays in the archive's directory."""
    parts: List[str] = []
    if path.startswith("/"):
        raise _bad(f"`{name}` leads out of it")
    for part in path.split("/"):
        if part == ".." and not parts:
            raise _bad(f"`{name}` leads out of it")
        if part == "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return parts


def _make_directories(top: Path, parts: List[str], name: str) -> None:
    """Makes the directories of an entry. None of them is a link: that could lead anywhere."""
    for part in parts:
        top = top / part
        if top.is_symlink():
            raise _bad(f"`{name}` is behind a link")
        if not top.is_dir():
            top.mkdir()


def _bad(problem: str) -> InvalidError:
    return InvalidError(f"the archive cannot be unpacked: {problem}", code="invalid")


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
