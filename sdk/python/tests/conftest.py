"""A real server for the tests, in a directory of its own, that ends with them.

`ZAREBA_BIN` names the program.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Iterator

import pytest

from zareba import Client, Sandbox

SECONDS_TO_START = 60


class Server:
    """A server on a port of this machine."""

    def __init__(self, program: str, state: Path) -> None:
        held, self._lifeline = os.pipe()
        ready, told = os.pipe()
        self.log = state / "log"
        descriptors = ["--ready-fd", str(told), "--lifeline-fd", str(held)]
        # Sandboxes may ask for a filtered network, and for any hosts in it.
        permits = ['sessions.networks=["filtered"]', "sessions.network_rules=any"]
        settings = [word for setting in permits for word in ("--set", setting)]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [program, "serve", "--listen", "127.0.0.1:0", *descriptors, *settings],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                env={**os.environ, "ZAREBA_STATE_DIRECTORY": str(state)},
                pass_fds=(held, told),
            )
        os.close(held)
        os.close(told)
        with os.fdopen(ready, "rb") as answer:
            assert answer.read(1) == b"r", self.log.read_text()
        self.state = state
        self.url = str(json.loads((state / "server.json").read_text())["url"])
        self.key = (state / "admin.key").read_text().strip()

    def end(self) -> None:
        with Client(self.url, self.key) as client:
            for each in Sandbox.list(client=client):
                each.close()
        os.close(self._lifeline)
        assert self.process.wait(SECONDS_TO_START) == 0, self.log.read_text()


@pytest.fixture(scope="session")
def program() -> str:
    named = os.environ.get("ZAREBA_BIN")
    if not named:
        pytest.exit("ZAREBA_BIN must name the program", returncode=2)
    return named


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No test finds a server, a home or a state directory of this machine."""
    monkeypatch.setenv("ZAREBA_STATE_DIRECTORY", str(tmp_path / "no-state"))
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("ZAREBA_URL", "ZAREBA_API_KEY", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def server(program: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    state = tmp_path_factory.mktemp("state")
    state.chmod(0o700)
    running = Server(program, state)
    try:
        yield running
    finally:
        running.end()


@pytest.fixture(scope="session")
def client(server: Server) -> Iterator[Client]:
    with Client(server.url, server.key) as made:
        yield made


@pytest.fixture
def sandbox(client: Client) -> Iterator[Sandbox]:
    with Sandbox.create(client=client) as made:
        yield made
