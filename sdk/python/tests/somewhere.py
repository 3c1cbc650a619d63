"""Functions and a toolkit that tests put into sandboxes; it imports nothing but Python's own."""

import asyncio
import os
import sys
import time
from typing import Any, Callable, Dict, List


def double(number: int) -> int:
    """Twice as much."""
    return number * 2


def shout(text: str, times: int = 1) -> str:
    """Says it louder.

    Args:
        text: What to say.
        times: How often.
    """
    return " ".join([text.upper()] * times)


async def later(number: int) -> int:
    """One more, after a while."""
    await asyncio.sleep(0.01)
    return number + 1


def fail(message: str) -> None:
    """Raises."""
    print("before")
    print("trouble", file=sys.stderr)
    raise ValueError(message)


def talk(lines: int, name: str) -> str:
    """Prints lines, slowly."""
    for number in range(lines):
        print(f"{name} {number}")
        time.sleep(0.005)
    return name


def sleepy(seconds: float) -> str:
    """Takes its time."""
    time.sleep(seconds)
    return "awake"


def where() -> Dict[str, Any]:
    """Tells where it runs."""
    return {"pid": os.getpid(), "cwd": os.getcwd(), "camel": os.environ.get("CAMEL_RUNTIME")}


def odd() -> Any:
    """Returns what is no JSON."""
    return object()


def nan() -> float:
    """Returns what only Python calls JSON."""
    return float("nan")


def die() -> None:
    """Ends the interpreter."""
    os._exit(3)


def echo(value: Any) -> Any:
    """Returns what it is given."""
    return value


class Tool:
    """What CAMEL calls a function tool, as far as a sandbox looks at it."""

    def __init__(self, func: Callable[..., Any]) -> None:
        self.func = func

    def get_function_name(self) -> str:
        return self.func.__name__

    def get_openai_tool_schema(self) -> Dict[str, Any]:
        return {
            "type": "function",
            "function": {
                "name": self.func.__name__,
                "description": self.func.__doc__ or "",
                "parameters": {"type": "object", "properties": {}, "required": []},
            },
        }


class Counter:
    """A toolkit that remembers."""

    def __init__(self, start: int = 0) -> None:
        self._count = start

    def count(self) -> int:
        """The next number."""
        self._count += 1
        return self._count

    def get_tools(self) -> List[Tool]:
        return [Tool(self.count)]
