"""What a sandbox has changed in its workspace, as a list and as a patch."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path
from typing import List, Tuple

import pytest

from conftest import Server
from zareba import AsyncClient, AsyncSandbox, InvalidError, Sandbox, WorkspaceChange
from zareba._sync.client import Client


@pytest.fixture
def project(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    (made / "src").mkdir(parents=True)
    (made / "src" / "kept").write_text("kept\n")
    (made / "old").write_text("old\n")
    (made / "moved").write_text("a text that is long enough to be known again\n")
    return made


def told(changes: List[WorkspaceChange]) -> List[Tuple[str, str, str]]:
    return [(each.path, str(each.change), str(each.kind)) for each in changes]


@pytest.fixture
def private(program: str, monkeypatch: pytest.MonkeyPatch) -> Client:
    """A server that accepts any directory as a workspace."""
    return Client()


def test_changes_are_listed_and_applied_as_a_patch(project: Path, private: Client) -> None:
    with Sandbox.create(workspace=str(project), client=private) as sandbox:
        assert (sandbox.changes().changes, sandbox.patch()) == ([], b"")
        sandbox.run(
            "echo new > src/new; chmod +x src/new; echo more >> src/kept; rm old; mv moved there;"
            " ln -s new src/link"
        ).check()
        found = sandbox.changes()
        assert told(found.changes) == [
            ("old", "deleted", "file"),
            ("src/kept", "modified", "file"),
            ("src/link", "added", "link"),
            ("src/new", "added", "file"),
            ("there", "renamed", "file"),
        ]
        by_path = {each.path: each for each in found.changes}
        assert by_path["there"].from_ == "moved" and by_path["src/link"].target == "new"
        assert by_path["src/new"].executable and by_path["src/new"].size == 4
        assert found.unread == []
        assert [each.path for each in sandbox.changes("src/new").changes] == ["src/new"]
        assert b"old" not in sandbox.patch(Path("src"))
        with pytest.raises(InvalidError):
            sandbox.changes("../outside")
        patch = sandbox.patch()
    subprocess.run(["git", "apply"], input=patch, cwd=project, check=True)
    assert (project / "src" / "kept").read_text() == "kept\nmore\n"
    names = sorted(str(each.relative_to(project)) for each in project.rglob("*"))
    assert names == ["src", "src/kept", "src/link", "src/new", "there"]


def test_what_a_patch_leaves_out_is_named_in_it(sandbox: Sandbox) -> None:
    sandbox.files.write("binary", b"\x00\xff")
    assert sandbox.patch().startswith(b"# left out: ")
    assert told(sandbox.changes().changes) == [("binary", "added", "file")]


def test_the_same_without_blocking(server: Server) -> None:
    async def main() -> None:
        async with AsyncClient(server.url, server.key) as client:
            async with await AsyncSandbox.create(client=client) as sandbox:
                await sandbox.files.write("f", "f\n")
                assert told((await sandbox.changes()).changes) == [("f", "added", "file")]
                assert (await sandbox.patch()).endswith(b"+f\n")

    asyncio.run(main())
