"""The fixed texts of the protocol and comparisons that say what differed."""

from openhands.events.observation import CmdOutputObservation, ErrorObservation, Observation

# Both ends of a value that is too long to print whole.
SHOWN = 300

ADVICE = (
    "You may wait longer to see additional output by sending empty command '', send other commands "
    'to interact with the current process, send keys ("C-c", "C-z", "C-d") to interrupt/kill the '
    'previous command before sending your new command, or use the timeout parameter in '
    'execute_bash for future commands.'
)

CONTINUED = '[Below is the output of the previous command.]\n'

CUT = '\n[... Observation truncated due to length ...]\n'

# Characters of a `run` observation that reach the model; half from each end.
LONGEST = 30_000


def completed(code: int, key: str = '') -> str:
    sent = f' CTRL+{key} was sent.' if key else ''
    return f'\n[The command completed with exit code {code}.{sent}]'


def silent(seconds: int) -> str:
    return f'\n[The command has no new output after {seconds} seconds. {ADVICE}]'


def timed_out(seconds: float) -> str:
    return f'\n[The command timed out after {seconds!r} seconds. {ADVICE}]'


def refused(command: str) -> str:
    return (
        f'\n[Your command "{command}" is NOT executed. The previous command is still running - You '
        'CANNOT send new commands until the previous command is completed. By setting `is_input` '
        f'to `true`, you can interact with the current process: {ADVICE}]'
    )


def shortened(text: str) -> str:
    """What is left of an output after the cut in the middle."""
    if len(text) <= LONGEST:
        return text
    half = LONGEST // 2
    return text[:half] + CUT + text[-half:]


def show(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 2 * SHOWN else f'{text[:SHOWN]} ... {text[-SHOWN:]}'


def equal(actual: object, expected: object) -> None:
    if actual != expected:
        raise AssertionError(f'got {show(actual)}, expected {show(expected)}{first_difference(actual, expected)}')


def first_difference(actual: object, expected: object) -> str:
    if not (isinstance(actual, str) and isinstance(expected, str)) or len(expected) <= SHOWN:
        return ''
    at = next((i for i, (a, b) in enumerate(zip(actual, expected)) if a != b), min(len(actual), len(expected)))
    return f'; first difference at {at}: {actual[at : at + 60]!r} and {expected[at : at + 60]!r}'


def contains(text: str, *parts: str) -> None:
    for part in parts:
        if part not in text:
            raise AssertionError(f'{show(part)} is not in {show(text)}')


def lacks(text: str, *parts: str) -> None:
    for part in parts:
        if part in text:
            raise AssertionError(f'{show(part)} is in {show(text)}')


def finished(observation: CmdOutputObservation, content: str, code: int = 0, key: str = '') -> None:
    """The command ended: all of its output, its exit code and the closing text."""
    metadata = observation.metadata
    equal(
        (observation.content, metadata.exit_code, metadata.prefix, metadata.suffix),
        (content, code, '', completed(code, key)),
    )


def running(observation: CmdOutputObservation, content: str, suffix: str, prefix: str = '') -> None:
    """The command goes on: the output so far, and nothing that only a prompt could tell."""
    metadata = observation.metadata
    equal(
        (observation.content, metadata.exit_code, metadata.prefix, metadata.suffix),
        (content, -1, prefix, suffix),
    )
    equal((metadata.pid, metadata.working_dir, metadata.username), (-1, None, None))


def error(observation: Observation, content: str) -> None:
    equal(type(observation), ErrorObservation)
    equal(observation.content, content)
