"""Every program in `examples/python` runs without a server and prints what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).resolve().parents[3] / "examples" / "python").glob("*.py"))


def test_there_are_programs() -> None:
    assert [path.name for path in EXAMPLES] == ["tool_loop.py"]


@pytest.mark.parametrize("path", EXAMPLES, ids=[path.stem for path in EXAMPLES])
def test_a_program_prints_what_it_says(path: Path, program: str, tmp_path: Path) -> None:
    expected = re.findall(r"^ *#> (.*)$", path.read_text(), re.MULTILINE)
    done = subprocess.run(
        [sys.executable, str(path)],
        env={**os.environ, "ZAREBA_BIN": program},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stdout.splitlines()) == (0, expected), done.stderr
