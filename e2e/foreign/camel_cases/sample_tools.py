"""Tools for the cases: good ones, and such as fail in every way there is.

Copied into the workspace of a server, which loads them by entrypoint.
"""

import os
import sys
import threading
import time

from camel.toolkits import BaseToolkit, FunctionTool


class Counter(BaseToolkit):
    """Keeps a number between calls."""

    def __init__(self, start: int = 0):
        super().__init__()
        self.value = start

    def count(self) -> int:
        """Counts one up."""
        self.value += 1
        return self.value

    def get_tools(self) -> list[FunctionTool]:
        return [FunctionTool(self.count)]


class Settings(BaseToolkit):
    """Is made with nested settings."""

    def __init__(self, limits: dict):
        super().__init__()
        self.limits = limits

    def limit(self, group: str, name: str) -> int:
        """Looks a limit up."""
        return self.limits[group][name]

    def get_tools(self) -> list[FunctionTool]:
        return [FunctionTool(self.limit)]


def fails(text: str) -> str:
    """Raises an error with a text."""
    raise ValueError(text)


def prints(lines: int, word: str = 'line') -> int:
    """Prints some lines, and lets others print between them."""
    for number in range(lines):
        print(word, number)
        time.sleep(0.001)
    return lines


def sleeps(seconds: float) -> float:
    """Sleeps."""
    time.sleep(seconds)
    return seconds


async def later(value: int) -> int:
    """Is asynchronous."""
    return value + 1


def not_finite() -> list:
    """Returns what strict JSON cannot say."""
    return [float('nan'), float('inf'), float('-inf')]


def no_json() -> object:
    """Returns what JSON cannot say at all."""
    return {1, 2}


def exits() -> None:
    """Wants to end the process."""
    sys.exit(3)


def dies() -> None:
    """Ends the process."""
    os._exit(7)


def echo(value: object) -> object:
    """Returns what it is given."""
    return value


TICKS = 0


def ticks_for(seconds: float) -> int:
    """Counts for a while, twenty times a second."""
    global TICKS
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.05)
        TICKS += 1
    return TICKS


def ticks() -> int:
    """Says how far the counting has come."""
    return TICKS


def surroundings() -> dict:
    """Says where it runs."""
    return {
        'runtime': os.environ.get('CAMEL_RUNTIME'),
        'directory': os.getcwd(),
        'prefix': sys.prefix,
        'home': os.environ.get('HOME'),
        'pid': os.getpid(),
    }


def leaves(path: str) -> bool:
    """Writes a file."""
    with open(path, 'w') as file:
        file.write('left')
    return True


BARRIER = threading.Barrier(8)


def meets(seconds: float) -> int:
    """Waits until eight calls are here at once."""
    return BARRIER.wait(timeout=seconds)


TOOLS = [
    FunctionTool(function)
    for function in (
        fails,
        prints,
        sleeps,
        later,
        not_finite,
        no_json,
        exits,
        dies,
        echo,
        ticks_for,
        ticks,
        surroundings,
        leaves,
        meets,
    )
]
