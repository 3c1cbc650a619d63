"""Every example of the pages about this package runs and prints what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import List, Tuple

import pytest

from conftest import Server

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGES = ("python-sdk", "camel-sdk")


def examples() -> List[Tuple[str, str]]:
    """Where each is, and its code. Those that need more than this package are marked as such."""
    found = []
    for page in PAGES:
        text = (DOCS / f"{page}.md").read_text()
        for match in re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            found.append((f"{page}-{text.count(chr(10), 0, match.start(1)) + 1}", match.group(1)))
    return found


def test_there_are_examples() -> None:
    assert len(examples()) >= 15


@pytest.mark.parametrize(("place", "code"), examples(), ids=[place for place, _ in examples()])
@pytest.mark.parametrize("has_server", [True, False], ids=["server", "private"])
def test_an_example_prints_what_it_says(
    place: str, code: str, has_server: bool, server: Server, tmp_path: Path
) -> None:
    expected = re.findall(r"^ *#> (.*)$", code, re.MULTILINE)
    named = {"ZAREBA_URL": server.url, "ZAREBA_API_KEY": server.key} if has_server else {}
    done = run(code, {**os.environ, **named}, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == expected


def run(code: str, environment: dict[str, str], home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
