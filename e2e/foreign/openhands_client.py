"""Drives an executor with the real, unmodified client of OpenHands 0.62.

Started by `run` inside the environment that `setup` makes. `LocalRuntime` of the installed
package starts the server, waits for it, sets up its environment and sends every action; the cases
in `cases/` say what has to come back. Nothing of the client is replaced or patched: it starts
"its" server with `sys.executable`, and that is pointed at a launcher which runs our binary.

With `--original` the launcher is left out and the same cases run against the server of the
package itself. That is how an expectation is shown to be theirs and not our wish; cases where we
are better on purpose are marked and left out there.

Prints one line per case and a closing line; exits 0 when nothing failed.
"""

import argparse
import getpass
import os
import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--binary', type=Path, help='the zareba binary that has to answer')
    parser.add_argument('--original', action='store_true', help="drive the package's own server")
    parser.add_argument('--only', default='', help='run only cases whose name contains this')
    arguments = parser.parse_args()
    if bool(arguments.binary) == arguments.original:
        parser.error('give either --binary or --original')
    return arguments


def prepare_environment(scratch: Path) -> None:
    """Keeps the client and the shells it drives away from the real home directory.

    Must run before the first import of their package, which reads these variables at import.
    """
    home = scratch / 'home'
    home.mkdir()
    for name in list(os.environ):
        if name.startswith(('SANDBOX_', 'RUNTIME_', 'SESSION_API_KEY')) or name in STRAY_VARIABLES:
            del os.environ[name]
    os.environ.update(
        HOME=str(home),
        XDG_CONFIG_HOME=str(home / '.config'),
        LOG_LEVEL='CRITICAL',
        LANG='C.UTF-8',
        LC_ALL='C.UTF-8',
        SU_TO_USER='false',
        USER=getpass.getuser(),
        HISTFILE='/dev/null',
    )
    os.environ.setdefault('ZAREBA_LOG', 'error')


# The original now and then takes the previous prompt for the end of a command, and then answers
# with nothing. An expectation is theirs when it holds in one of these attempts; our own executor
# gets a single one.
RETRIES_OF_THE_ORIGINAL = 3

# Variables of a developer's own set-up that would change what their client or server does.
STRAY_VARIABLES = {
    'VIRTUAL_ENV',
    'PYTHONPATH',
    'PYTHONHOME',
    'DEBUG',
    'LOG_TO_FILE',
    'VSCODE_PORT',
    'APP_PORT_1',
    'APP_PORT_2',
    'WORK_PORT_1',
    'WORK_PORT_2',
    'NO_CHANGE_TIMEOUT_SECONDS',
    'INITIAL_NUM_WARM_SERVERS',
    'DESIRED_NUM_WARM_SERVERS',
    'PROMPT_COMMAND',
    'BASH_ENV',
    'TMUX',
    'GIT_CONFIG_GLOBAL',
}


def run_cases(arguments: argparse.Namespace, scratch: Path) -> tuple[int, int, int]:
    """Runs every selected case and returns how many passed, failed and were left out."""
    from cases import ALL
    from cases.sandbox import Sandboxes

    passed = failed = skipped = 0
    binary = arguments.binary
    if binary is not None:
        # A build that runs meanwhile must not take the program away between two cases.
        binary = Path(shutil.copy2(binary, scratch / 'zareba'))
    try:
        sandboxes = Sandboxes(scratch, binary)
    except BaseException as error:  # noqa: BLE001 - reported like a case
        print(f'FAIL the_executor_keeps_to_the_home_it_is_given: {explain(error)}', flush=True)
        return 0, 1, 0
    try:
        for case in ALL:
            if arguments.only not in case.name:
                continue
            if arguments.original and case.better:
                print(f'skip {case.name}: {case.better}', flush=True)
                skipped += 1
                continue
            started = time.monotonic()
            why = attempt(case, sandboxes)
            for _ in range(RETRIES_OF_THE_ORIGINAL if arguments.original else 0):
                if why is None:
                    break
                why = attempt(case, sandboxes)
            elapsed = time.monotonic() - started
            if why is None:
                passed += 1
                print(f'ok {case.name} ({elapsed:.2f} s)', flush=True)
            else:
                failed += 1
                print(f'FAIL {case.name}: {why}', flush=True)
    finally:
        sandboxes.close()
    return passed, failed, skipped


def attempt(case, sandboxes) -> str | None:
    """Runs one case; returns why it failed, or nothing.

    A case that leaves the shell unusable has failed even when its own checks held, and the next
    case gets a fresh server, so that one fault is reported once.
    """
    try:
        sandbox = sandboxes.get(case.server)
        sandbox.enter_own_directory(case.name)
        case.check(sandbox)
        sandbox.check_usable()
    except BaseException as error:  # noqa: BLE001 - a case may fail in any way their client can
        if isinstance(error, KeyboardInterrupt):
            raise
        sandboxes.discard(case.server)
        return explain(error)
    return None


def explain(error: BaseException) -> str:
    """One line: the place in the case, and the message with its line breaks made visible."""
    frames = traceback.extract_tb(error.__traceback__)
    here = os.sep + 'cases' + os.sep
    place = next((f for f in reversed(frames) if here in f.filename and 'expect' not in f.filename), None)
    where = f'{Path(place.filename).name}:{place.lineno} ' if place else ''
    text = str(error) or (place.line if place else '')
    return f'{where}{type(error).__name__}: {text}'.replace('\n', '\\n')[:2000]


def main() -> int:
    arguments = parse_arguments()
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    with tempfile.TemporaryDirectory(prefix='zareba-foreign-') as scratch:
        # The kernel gives back the resolved path in the prompt, so the checks must use it too.
        scratch_path = Path(scratch).resolve()
        prepare_environment(scratch_path)
        passed, failed, skipped = run_cases(arguments, scratch_path)
    left_out = f', {skipped} left out' if skipped else ''
    print(f'{passed} passed, {failed} failed{left_out}')
    return 1 if failed or passed == 0 else 0


if __name__ == '__main__':
    sys.exit(main())
