"""Every example of the page about this package runs and prints what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import List, Tuple

import pytest

from conftest import Server

PAGE = Path(__file__).resolve().parents[3] / "docs" / "python-sdk.md"


def examples() -> List[Tuple[int, str]]:
    text = PAGE.read_text()
    return [
        (text.count("\n", 0, match.start(1)) + 1, match.group(1))
        for match in re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    ]


def test_there_are_examples() -> None:
    assert len(examples()) >= 10


@pytest.mark.parametrize(("line", "code"), examples(), ids=[f"line-{n}" for n, _ in examples()])
def test_an_example_prints_what_it_says(
    line: int, code: str, server: Server, tmp_path: Path
) -> None:
    expected = re.findall(r"^ *#> (.*)$", code, re.MULTILINE)
    named = {"ZAREBA_URL": server.url, "ZAREBA_API_KEY": server.key}
    done = run(code, {**os.environ, **named}, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == expected


def test_the_first_example_runs_without_a_server(program: str, tmp_path: Path) -> None:
    done = run(examples()[0][1], {**os.environ, "ZAREBA_BIN": program}, tmp_path)
    assert (done.returncode, done.stdout) == (0, "hello\nLinux\n0\n"), done.stderr


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
