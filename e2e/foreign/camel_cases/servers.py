"""The two tool servers: ours, and the one of the package."""

import os
import queue
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

# Longer than a server takes to start or to end on a busy machine.
PATIENCE = 60

ENTRYPOINTS = ('camel.toolkits.MathToolkit', 'sample_tools.Counter{"start": 5}', 'sample_tools.TOOLS')
# Only ours can load it.
NESTED = 'sample_tools.Settings{"limits": {"files": {"open": 12}}}'

HERE = Path(__file__).resolve().parent


def make_workspace(directory: Path) -> Path:
    """A directory with the sample tools and this very environment, at no cost where links can be had."""
    directory.mkdir()
    shutil.copy(HERE / 'sample_tools.py', directory)
    try:
        shutil.copytree(sys.prefix, directory / 'venv', symlinks=True, copy_function=os.link)
    except (shutil.Error, OSError):
        shutil.rmtree(directory / 'venv', ignore_errors=True)
        shutil.copytree(sys.prefix, directory / 'venv', symlinks=True)
    return directory


class Server:
    """A process that serves tools on a port of this machine."""

    port: int
    process: subprocess.Popen

    def close(self, how: int = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            return self.process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError('the server did not end when it was told to') from None


class Ours(Server):
    """`zareba tools serve`, on a port that the kernel chose.

    It asks for a token unless `--open` is among the words; `host` is then what their client is told.
    """

    def __init__(self, binary: Path, scratch: Path, workspace: Path, *words: str, runtime: str | None = None):
        self.words: list[str] = []
        self._lines: queue.Queue[str | None] = queue.Queue()
        self.home = scratch / 'home'
        self.state = scratch / 'state'
        environment = os.environ | {'HOME': str(self.home), 'ZAREBA_STATE_DIRECTORY': str(self.state)}
        command = [str(binary), 'tools', 'serve', '--port', '0', '--workspace', str(workspace)]
        command += ['--runtime', runtime] if runtime else []
        command += ['--python', 'venv/bin/python', *words]
        started = time.monotonic()
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        threading.Thread(target=self._read, daemon=True).start()
        try:
            self.port = self._port()
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise
        self.start_seconds = time.monotonic() - started

    def _read(self) -> None:
        for line in self.process.stderr:
            self.words.append(line)
            self._lines.put(line)
        self._lines.put(None)

    def _port(self) -> int:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                line = self._lines.get(timeout=max(0, deadline - time.monotonic()))
            except queue.Empty:
                line = None
            assert line is not None, f'the server does not say where it listens: {"".join(self.words)}'
            found = re.search(r'listening on https?://[^ ]*:(\d+)', line)
            if found:
                return int(found.group(1))

    @property
    def token(self) -> str:
        """What callers must show: it is in a file that the server names."""
        found = re.search(r'the token of callers is in (.+)', ''.join(self.words))
        assert found, f'the server does not say where the token is: {"".join(self.words)}'
        return Path(found.group(1)).read_text().strip()

    @property
    def host(self) -> str:
        return f'zareba:{self.token}@127.0.0.1'


# Their server knows one address only, which would be open to the network.
LAUNCHER = """
import os, runpy, sys, uvicorn
import camel.runtimes
port = int(sys.argv.pop(1))
serve = uvicorn.run
uvicorn.run = lambda app, **_: serve(app, host='127.0.0.1', port=port, reload=False, log_level='critical')
sys.argv[0] = os.path.join(os.path.dirname(camel.runtimes.__file__), 'api.py')
runpy.run_path(sys.argv[0], run_name='__main__')
"""


class Original(Server):
    """Their `api.py` as it is, but on a free port of loopback."""

    def __init__(self, workspace: Path, *entrypoints: str):
        self.port = free_port()
        command = [sys.executable, '-c', LAUNCHER, str(self.port), *entrypoints]
        started = time.monotonic()
        self.process = subprocess.Popen(
            command, cwd=workspace, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while True:
            try:
                socket.create_connection(('127.0.0.1', self.port), timeout=1).close()
                break
            except OSError:
                assert self.process.poll() is None, 'their server ended at once'
                assert time.monotonic() - started < PATIENCE, 'their server did not start'
                time.sleep(0.02)
        self.start_seconds = time.monotonic() - started


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]
