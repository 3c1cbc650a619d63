"""Drives `zareba tools serve` with the real, unmodified runtime class of `camel-ai`.

Started by `run --camel` inside the environment that `setup-camel` makes. The server loads CAMEL's
own toolkits and the sample ones inside its sandbox; the client knows a host and a port. One case
asks CAMEL's own server the same, request by request.

Prints one line per case and a closing line; exits 0 when nothing failed.
"""

import argparse
import contextlib
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path


class Stage:
    """What the cases play on: a server that most of them share, and the means to start others."""

    def __init__(self, scratch: Path, binary: Path, runtime: str | None):
        from camel_cases.servers import ENTRYPOINTS, NESTED, Ours, make_workspace

        self.scratch = scratch
        self.binary = binary
        self.runtime = runtime
        self.workspace = make_workspace(scratch / 'workspace')
        # Most cases ask as their own server is asked, which knows no token.
        self.ours = Ours(binary, scratch, self.workspace, '--open', *ENTRYPOINTS, NESTED, runtime=runtime)

    @contextlib.contextmanager
    def another(self, *words: str):
        from camel_cases.servers import Ours

        server = Ours(self.binary, self.scratch, self.workspace, *words, runtime=self.runtime)
        try:
            yield server
        finally:
            server.close()

    def refused(self, *words: str) -> tuple[int, str]:
        """A server that must not start: what it ends with and what it says."""
        command = [str(self.binary), 'tools', 'serve', '--workspace', str(self.workspace)]
        command += ['--python', 'venv/bin/python', *(['--runtime', self.runtime] if self.runtime else []), *words]
        environment = os.environ | {'ZAREBA_STATE_DIRECTORY': str(self.scratch / 'state')}
        ended = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False
        )
        return ended.returncode, ended.stderr

    def close(self) -> None:
        self.ours.close()


def explain(error: BaseException) -> str:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if 'camel_cases' in frame.filename]
    where = f'{Path(frames[-1].filename).name}:{frames[-1].lineno} ' if frames else ''
    return f'{where}{type(error).__name__}: {error or (frames[-1].line if frames else "")}'[:6000]


def run_cases(arguments: argparse.Namespace, scratch: Path) -> tuple[int, int]:
    from camel_cases.calls import CASES

    # A build that runs meanwhile must not take the program away.
    binary = Path(shutil.copy2(arguments.binary, scratch / 'zareba'))
    try:
        stage = Stage(scratch, binary, arguments.runtime)
    except Exception as error:  # noqa: BLE001 - reported like a case
        print(f'FAIL the_server_starts: {explain(error)}', flush=True)
        return 0, 1
    passed = failed = 0
    try:
        for check in CASES:
            if arguments.only not in check.__name__:
                continue
            started = time.monotonic()
            try:
                check(stage)
            except Exception as error:  # noqa: BLE001 - a case may fail in any way their client can
                failed += 1
                print(f'FAIL {check.__name__}: {explain(error)}', flush=True)
            else:
                passed += 1
                print(f'ok {check.__name__} ({time.monotonic() - started:.2f} s)', flush=True)
    finally:
        stage.close()
    return passed, failed


def prepare_environment(scratch: Path) -> None:
    """Keeps the package and the servers away from the real home directory."""
    home = scratch / 'home'
    home.mkdir()
    for name in list(os.environ):
        if name.startswith(('ZAREBA_RUNTIME', 'CAMEL_')) or name in ('VIRTUAL_ENV', 'PYTHONPATH', 'PYTHONHOME', 'ZAREBA_URL'):
            del os.environ[name]
    os.environ.update(HOME=str(home), XDG_CONFIG_HOME=str(home / '.config'), LANG='C.UTF-8', LC_ALL='C.UTF-8')
    os.environ.setdefault('ZAREBA_LOG', 'error')


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--binary', type=Path, required=True, help='the zareba binary that has to serve')
    parser.add_argument('--runtime', help='the runtime that tools run in; the default otherwise')
    parser.add_argument('--only', default='', help='run only cases whose name contains this')
    arguments = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    with tempfile.TemporaryDirectory(prefix='zareba-camel-') as scratch:
        scratch_path = Path(scratch).resolve()
        prepare_environment(scratch_path)
        # What their client logs of a failure is what the cases look at.
        logging.disable(logging.CRITICAL)
        passed, failed = run_cases(arguments, scratch_path)
    print(f'{passed} passed, {failed} failed')
    return 1 if failed or passed == 0 else 0


if __name__ == '__main__':
    sys.exit(main())
