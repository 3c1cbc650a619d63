"""Files of a sandbox: as text, as bytes, as trees, and changes as they happen."""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

import pytest

from zareba import BusyError, InvalidError, NotFoundError, Sandbox

EVERY_BYTE = bytes(range(256)) * 3


def test_text_and_bytes_come_back_as_they_were(sandbox: Sandbox) -> None:
    files = sandbox.files
    status = files.write("deep/er/text", "ä\r\nno end")
    assert (files.read("deep/er/text"), status.size, status.kind) == ("ä\r\nno end", 10, "file")
    files.write("/tmp/bytes", EVERY_BYTE, mode=0o700)
    assert files.read_bytes("/tmp/bytes") == EVERY_BYTE
    assert files.read_bytes("/tmp/bytes", start=10, length=5) == EVERY_BYTE[10:15]
    assert files.read_bytes("/tmp/bytes", start=760) == EVERY_BYTE[760:]
    assert files.read_bytes("/tmp/bytes", length=0) == b""
    assert b"".join(files.stream("/tmp/bytes")) == EVERY_BYTE
    assert sandbox.run("stat -c %a /tmp/bytes").output == "700"
    with pytest.raises(UnicodeDecodeError):
        files.read("/tmp/bytes")
    files.write("empty", "")
    assert files.read_bytes("empty") == b""


def test_odd_names_are_names(sandbox: Sandbox) -> None:
    name = "a b?&=%#+ü'\"$(x)"
    sandbox.files.write(name, "odd")
    assert [entry.name for entry in sandbox.files.list()] == [name]
    assert sandbox.files.read(name) == "odd"
    sandbox.files.remove(name)
    assert not sandbox.files.exists(name)


def test_a_directory_is_listed_page_by_page(sandbox: Sandbox) -> None:
    sandbox.run("mkdir many; cd many; touch $(seq -w 1 2500); ln -s 0001 zz; mkdir dir").check()
    entries = sandbox.files.list("many")
    assert [entry.name for entry in entries][:2] == ["0001", "0002"] and len(entries) == 2502
    by_name = {entry.name: entry.status for entry in entries}
    assert (by_name["zz"].kind, by_name["zz"].target) == ("link", "0001")
    assert by_name["dir"].kind == "directory"
    with pytest.raises(NotFoundError):
        sandbox.files.list("none")
    with pytest.raises(InvalidError):
        sandbox.files.list("many/0001")


def test_what_is_at_a_path_is_told(sandbox: Sandbox) -> None:
    sandbox.files.write("f", "content", mode=0o640)
    status = sandbox.files.stat("f", digest=True)
    assert status.sha256 == hashlib.sha256(b"content").hexdigest()
    assert (status.size, status.mode, status.modified.tzinfo is not None) == (7, "0640", True)
    sandbox.run("ln -s f link; ln -s nowhere broken")
    assert sandbox.files.stat("link").kind == "file"
    assert sandbox.files.stat("link", follow=False).kind == "link"
    assert sandbox.files.exists("link") and not sandbox.files.exists("broken")


def test_nobody_writes_over_what_they_have_not_seen(sandbox: Sandbox) -> None:
    files = sandbox.files
    seen = files.write("f", "one", exclusive=True)
    with pytest.raises(BusyError):
        files.write("f", "two", exclusive=True)
    sandbox.run("echo changed > f")
    with pytest.raises(BusyError):
        files.write("f", "two", if_version=seen.version)
    files.write("f", "two", if_version=files.stat("f").version)
    assert files.read("f") == "two"
    with pytest.raises(NotFoundError):
        files.write("no/parents", "x", parents=False)


def test_directories_are_made_renamed_and_removed(sandbox: Sandbox) -> None:
    files = sandbox.files
    assert files.make_dir("a/b", mode=0o750).kind == "directory"
    files.make_dir("a/b")
    with pytest.raises(BusyError):
        files.make_dir("a/b", parents=False)
    files.write("a/b/f", "f")
    files.rename("a/b", "a/c")
    files.write("g", "g")
    with pytest.raises(BusyError):
        files.rename("g", "a/c/f")
    files.rename("g", "a/c/f", replace=True)
    assert files.read("a/c/f") == "g"
    with pytest.raises(BusyError):
        files.remove("a")
    files.remove("a", recursive=True)
    assert files.list() == []
    with pytest.raises(NotFoundError):
        files.remove("a")


def test_files_are_copied_both_ways(sandbox: Sandbox, tmp_path: Path) -> None:
    source = tmp_path / "large"
    source.write_bytes(os.urandom(9_000_001))
    source.chmod(0o755)
    sandbox.files.upload(source)
    assert sandbox.run("stat -c '%s %a' large").output == "9000001 755"
    assert sandbox.files.download("large", tmp_path / "back") == tmp_path / "back"
    assert (tmp_path / "back").read_bytes() == source.read_bytes()
    with pytest.raises(NotFoundError):
        sandbox.files.download("none", tmp_path / "none")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["back", "large"]


def test_trees_are_copied_both_ways(sandbox: Sandbox, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "sub" / "empty").mkdir(parents=True)
    (tree / "sub" / "run").write_bytes(EVERY_BYTE)
    (tree / "sub" / "run").chmod(0o755)
    (tree / "link").symlink_to("sub/run")
    sandbox.files.upload(tree, "copy")
    shown = sandbox.run("cd copy && find . | sort && stat -c %a sub/run && readlink link").output
    assert shown.split() == [".", "./link", "./sub", "./sub/empty", "./sub/run", "755", "sub/run"]
    target = tmp_path / "target"
    (target / "sub").mkdir(parents=True)
    (target / "kept").write_text("kept")
    sandbox.files.download("copy", target)
    assert (target / "sub" / "run").read_bytes() == EVERY_BYTE
    assert (target / "kept").read_text() == "kept"
    assert sorted(each.name for each in target.iterdir()) == ["kept", "link", "sub"]


def test_a_hostile_tree_stays_where_it_was_asked_to(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.run("mkdir evil; cd evil; ln -s /etc out; ln -s ../.. up; echo x > fine").check()
    victim = tmp_path / "target"
    with contextlib.suppress(InvalidError):
        sandbox.files.download("evil", victim)
    for each in victim.rglob("*"):
        assert victim.resolve() in each.resolve().parents, each


def test_changes_are_told_as_they_happen(sandbox: Sandbox) -> None:
    sandbox.files.make_dir("watched/below")
    with sandbox.files.watch("watched") as changes:
        sandbox.run("cd watched/below; echo x > new; mv new other; rm other; cd /; rm -r $OLDPWD")
        told = []
        for change in changes:
            told.append((str(change.change), change.path, change.to))
            if change.change == "removed" and change.path == "below":
                break
    assert ("created", "below/new", None) in told
    assert ("renamed", "below/new", "below/other") in told
    assert ("removed", "below/other", None) in told
