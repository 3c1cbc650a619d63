"""Toolkits and tools as CAMEL's users write them; the driver puts them into sandboxes."""

import asyncio
import time
from typing import List

from camel.toolkits import FunctionTool
from camel.toolkits.base import BaseToolkit
from camel.toolkits.function_tool import tool
from pydantic import BaseModel


class Point(BaseModel):
    """Where something is."""

    x: int
    y: int


class CountingToolkit(BaseToolkit):
    """A toolkit that remembers."""

    def __init__(self, start: int = 0, options: dict | None = None) -> None:
        super().__init__()
        self.count = start
        self.step = (options or {}).get('step', {}).get('size', 1)

    def next_number(self) -> int:
        """Counts.

        Returns:
            int: The next number.
        """
        self.count += self.step
        return self.count

    def get_tools(self) -> List[FunctionTool]:
        return [FunctionTool(self.next_number)]


@tool()
def fail(message: str) -> str:
    """Raises.

    Args:
        message (str): What to say.
    """
    print('before')
    raise KeyError(message)


@tool()
def talk(name: str, lines: int) -> str:
    """Prints lines, slowly.

    Args:
        name (str): Who talks.
        lines (int): How many.
    """
    for number in range(lines):
        print(f'{name} {number}')
        time.sleep(0.005)
    return name


@tool()
def sleepy(seconds: float) -> str:
    """Takes its time.

    Args:
        seconds (float): How long.
    """
    time.sleep(seconds)
    return 'awake'


@tool()
async def later(number: int) -> int:
    """One more, after a while.

    Args:
        number (int): Than what.
    """
    await asyncio.sleep(0.01)
    return number + 1


@tool()
def mirrored(point: Point) -> dict:
    """The point on the other side.

    Args:
        point (Point): Which.
    """
    given = point if isinstance(point, dict) else point.model_dump()
    return {'x': -given['x'], 'y': -given['y']}
