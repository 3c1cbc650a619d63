"""A wheel with the program inside works where nothing else is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

SDK = Path(__file__).resolve().parents[1]


def build(tmp_path: Path, **more: str) -> Path:
    """Builds from a copy, so that nothing is left in the tree."""
    source = tmp_path / "source"
    shutil.copytree(SDK, source, ignore=shutil.ignore_patterns("__pycache__", "_bin", "tests"))
    environment = {name: text for name, text in os.environ.items() if "WHEEL" not in name}
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "out")],
        cwd=source,
        env={**environment, **more},
        check=True,
        capture_output=True,
    )
    [made] = (tmp_path / "out").iterdir()
    return made


def test_a_wheel_without_the_program_is_for_all_machines(tmp_path: Path) -> None:
    made = build(tmp_path)
    assert made.name.endswith("-py3-none-any.whl")
    names = zipfile.ZipFile(made).namelist()
    assert "zareba/py.typed" in names and "zareba/_guardian.py" in names
    assert not any("_bin" in name for name in names)


def test_a_wheel_with_the_program_needs_no_other(program: str, tmp_path: Path) -> None:
    made = build(tmp_path, ZAREBA_WHEEL_BINARY=program, ZAREBA_WHEEL_MACHINE="x86_64")
    assert made.name.endswith("-py3-none-manylinux_2_17_x86_64.musllinux_1_1_x86_64.whl")
    target = tmp_path / "installed"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*install, "--target", str(target), str(made)], check=True)
    code = "import zareba; print(zareba.Sandbox.create().run('echo inside').output)"
    environment = {
        name: text for name, text in os.environ.items() if not name.startswith(("ZAREBA", "PYTHON"))
    }
    environment.update(PYTHONPATH=str(target), PATH="/usr/bin:/bin", HOME=str(tmp_path))
    environment["ZAREBA_STATE_DIRECTORY"] = str(tmp_path / "none")
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout == "inside\n", done.stderr


def test_a_program_that_is_not_there_is_not_left_out(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError) as caught:
        build(tmp_path, ZAREBA_WHEEL_BINARY=str(tmp_path / "none"))
    assert b"ZAREBA_WHEEL_BINARY" in caught.value.stderr
