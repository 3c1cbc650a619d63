"""Functions of every kind, for the tests."""

import asyncio
import enum
import os
import sys
import time
from typing import Dict, List, Literal, Optional, Union


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


def add(a: int, b: int = 2) -> int:
    """Adds two numbers.

    It is exact.

    Args:
        a (int): The first one,
            which is a number.
        b: The second one.

    Returns:
        The sum.
    """
    return a + b


def rest_style(query: str, limit: Optional[int] = None, *more, **others):
    """Looks for something.

    :param query: what to look for
    :param int limit: how many
        at the most
    :returns: what it was given
    """
    return [query, limit, list(more), others]


def numpy_style(names: List[str], table: Dict[str, float], mode: Literal["a", "b"] = "a"):
    """Takes containers.

    Parameters
    ----------
    names : list of str
        The names.
    table : dict
        The table.

    Returns
    -------
    list
    """
    return [names, table, mode]


def epydoc_style(color: Color, either: Union[int, str] = 1, plain=3):
    """Takes a colour.

    @param color: the colour
    @param either: a number or a text
    """
    return [repr(color), either, plain]


def echo(value):
    return value


def say(word: str, times: int = 1):
    for _ in range(times):
        print(word)
        print(word.upper(), file=sys.stderr)
        time.sleep(0)
    return word


def print_much(count: int):
    sys.stdout.write("x" * count)


def print_bytes():
    sys.stdout.buffer.write(b"\xc3\xa4\xff")
    sys.stdout.flush()


def print_below():
    os.system("echo from below")
    return "done"


async def later(seconds: float, word: str = "late"):
    print("before", word)
    await asyncio.sleep(seconds)
    print("after", word)
    return word


def awaitable(word: str):
    async def answer():
        print(word)
        return word

    return answer()


async def fail_later():
    raise KeyError("later")


def nap(seconds: float):
    time.sleep(seconds)
    return seconds


def spin(path: str):
    open(path, "w").close()
    while True:
        pass


def stubborn(path: str):
    while True:
        try:
            open(path, "w").close()
            while True:
                pass
        except BaseException:
            pass


def fail(message: str = "no"):
    print("about to fail")
    raise ValueError(message)


class Odd(Exception):
    def __str__(self):
        raise RuntimeError("no text")


def fail_oddly():
    raise Odd()


def leave(code: int = 3):
    sys.exit(code)


def die(code: int = 7):
    os._exit(code)


def crash():
    import ctypes

    ctypes.string_at(0)


def not_json():
    return {1, 2}


def circle():
    items = []
    items.append(items)
    return items


def odd_numbers():
    return [float("nan"), float("inf"), -float("inf")]


def surrogate():
    return "\ud800"


def length(text: str):
    return len(text)


def repeat(text: str, count: int):
    return text * count


def nested(depth: int):
    value = 1
    for _ in range(depth):
        value = [value]
    return value


def ask():
    return input("what? ")


def environment(name: str):
    return os.environ.get(name)


def where():
    return os.getcwd()


class Counter:
    """A toolkit that counts."""

    def __init__(self, start=0, options=None):
        self.count = start
        self.options = options

    def up(self) -> int:
        """Counts up."""
        self.count += 1
        return self.count

    def told(self):
        return self.options

    def get_tools(self):
        return [self.up, self.told]


class Tool:
    """What a tool of CAMEL looks like from outside."""

    def __init__(self, func):
        self.func = func

    def get_function_name(self):
        return "camel_" + self.func.__name__

    def get_openai_tool_schema(self):
        schema = {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": ["integer", "null"]}},
            "required": ["a", "b"],
            "additionalProperties": False,
        }
        return {
            "type": "function",
            "function": {
                "name": self.get_function_name(),
                "description": "Of CAMEL.",
                "strict": True,
                "parameters": schema,
            },
        }


tools = [Tool(add), echo]
number = 5


class Model:
    """What a model of pydantic looks like from outside."""

    def __init__(self, x):
        self.x = x

    @classmethod
    def model_json_schema(cls):
        return {
            "title": "Model",
            "type": "object",
            "properties": {"x": {"title": "X", "type": "integer"}},
            "required": ["x"],
        }

    @classmethod
    def model_validate(cls, value):
        return cls(value["x"])


def take_model(model: Model):
    return model.x if isinstance(model, Model) else "a " + type(model).__name__
