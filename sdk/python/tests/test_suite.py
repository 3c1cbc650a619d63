"""The script that runs these tests finds the Pythons that they are for."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

RUN = Path(__file__).resolve().parents[3] / "e2e" / "sdk" / "run"


def oldest(home: Path) -> subprocess.CompletedProcess[str]:
    """Runs `--oldest` where nothing of this machine is found but what a home has."""
    shims = home / "shims"
    shims.mkdir(parents=True)
    write_program(shims / "python3.9", "echo 'pyenv: python3.9: command not found' >&2; exit 127")
    environment = {
        "PATH": f"{shims}:/usr/bin:/bin",
        "HOME": str(home),
        "PYENV_ROOT": str(home / "pyenv"),
        "TMPDIR": str(home),
        "ZAREBA_BIN": os.environ["ZAREBA_BIN"],
    }
    return subprocess.run(
        [str(RUN), "--oldest"], env=environment, capture_output=True, text=True, check=False
    )


def write_program(path: Path, script: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_a_machine_without_the_oldest_python_says_so_and_passes_nothing(tmp_path: Path) -> None:
    done = oldest(tmp_path / "home")
    assert done.returncode == 77
    assert "there is no Python 3.9" in done.stderr.splitlines()[-1]


def test_the_oldest_python_is_found_also_where_it_is_not_selected(tmp_path: Path) -> None:
    place = tmp_path / "home" / "pyenv" / "versions" / "3.9.99" / "bin" / "python3.9"
    # It says what it is, and makes no environment, so that the run ends here.
    write_program(
        place, 'case "$*" in *venv,*) echo 3.9;; *"-m venv"*) exit 1;; *) echo 3.9.99;; esac'
    )
    done = oldest(tmp_path / "home")
    assert f"with {place}: Python 3.9.99" in done.stdout.splitlines()
    assert done.returncode == 77
