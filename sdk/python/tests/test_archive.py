"""Archives of sandboxes, unpacked on this machine: what is good, and what an attacker sends."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path
from typing import Callable, List, Tuple

import pytest

from zareba import InvalidError, _archive

Entry = Tuple[str, bytes, str]
"""A name, a kind, and the content or the target."""


def packed(*entries: Entry) -> io.BytesIO:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, kind, content in entries:
            member = tarfile.TarInfo(name)
            member.type, member.mode, member.mtime = kind, 0o6777, 1_000_000
            if kind == tarfile.REGTYPE:
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content.encode()))
            else:
                member.linkname = content
                archive.addfile(member)
    return made


def test_files_directories_and_links_come_out(tmp_path: Path) -> None:
    archive = packed(
        ("top", tarfile.DIRTYPE, ""),
        ("top/deep/file", tarfile.REGTYPE, "content"),
        ("top/deep/soft", tarfile.SYMTYPE, "../deep/file"),
        ("top/hard", tarfile.LNKTYPE, "top/deep/file"),
        ("top/empty", tarfile.DIRTYPE, ""),
    )
    _archive.unpack(archive, "top", tmp_path / "out")
    out = tmp_path / "out"
    assert sorted(os.listdir(out)) == ["deep", "empty", "hard"]
    assert (out / "deep/soft").read_text() == (out / "hard").read_text() == "content"
    status = (out / "deep/file").stat()
    assert (status.st_mode & 0o7777, status.st_mtime, status.st_nlink) == (0o755, 1_000_000, 2)


HOSTILE: List[Callable[[Path], List[Entry]]] = [
    lambda outside: [(f"{outside}/file", tarfile.REGTYPE, "x")],
    lambda outside: [("../file", tarfile.REGTYPE, "x")],
    lambda outside: [("a/../../file", tarfile.REGTYPE, "x")],
    lambda outside: [("link", tarfile.SYMTYPE, str(outside))],
    lambda outside: [("a/link", tarfile.SYMTYPE, "../../../out")],
    lambda outside: [("link", tarfile.SYMTYPE, "inside"), ("link/file", tarfile.REGTYPE, "x")],
    lambda outside: [
        ("a/b/l", tarfile.SYMTYPE, "../.."),
        ("a/b/l/p/q/out", tarfile.SYMTYPE, "../../../.."),
    ],
    lambda outside: [("hard", tarfile.LNKTYPE, "../secret")],
    lambda outside: [("hard", tarfile.LNKTYPE, str(outside / "secret"))],
    lambda outside: [("s", tarfile.SYMTYPE, "."), ("hard", tarfile.LNKTYPE, "s/../../secret")],
    lambda outside: [("pipe", tarfile.FIFOTYPE, "")],
    lambda outside: [("device", tarfile.CHRTYPE, "")],
]


@pytest.mark.parametrize("entries", HOSTILE)
def test_nothing_gets_out_of_the_directory(
    entries: Callable[[Path], List[Entry]], tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("secret")
    archive = packed(*entries(tmp_path))
    with pytest.raises(InvalidError, match="cannot be unpacked"):
        _archive.unpack(archive, "", tmp_path / "out")
    assert sorted(os.listdir(tmp_path)) == ["out", "secret"]
    assert os.listdir(tmp_path / "out") == []


def test_a_broken_archive_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    whole = packed(("file", tarfile.REGTYPE, "x" * 5000)).getvalue()
    for broken in (b"no archive at all" * 100, whole[:1000]):
        with pytest.raises(InvalidError):
            _archive.unpack(io.BytesIO(broken), "", tmp_path / "out")
        assert os.listdir(tmp_path / "out") == []
