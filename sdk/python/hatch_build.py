"""Puts the program into the wheel when `ZAREBA_WHEEL_BINARY` names one.

Such a wheel is for one kind of machine; without the variable it is for all of them and contains
Python only.
"""

from __future__ import annotations

import os
import platform
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

VARIABLE = "ZAREBA_WHEEL_BINARY"


class ProgramHook(BuildHookInterface[Any]):
    """Adds one file and the tag that says where it runs."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        program = os.environ.get(VARIABLE)
        if not program or version == "editable":
            return
        program = os.path.abspath(program)
        if not os.access(program, os.X_OK):
            raise FileNotFoundError(f"{VARIABLE} names `{program}`, which is no program")
        machine = os.environ.get("ZAREBA_WHEEL_MACHINE") or platform.machine()
        # A static program needs no library of the system, whichever that uses.
        build_data["tag"] = f"py3-none-manylinux_2_17_{machine}.musllinux_1_1_{machine}"
        build_data["pure_python"] = False
        build_data["force_include"][program] = "zareba/_bin/zareba"
