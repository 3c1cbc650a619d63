"""What a runtime needs of a tool, and a small class of tools for those who have no `camel-ai`."""

from __future__ import annotations

import asyncio
import functools
import importlib
import inspect
from typing import Any, Callable, Dict, List, Optional, Protocol, Tuple, cast

from ..errors import InvalidError

Function = Callable[..., Any]
Invoke = Callable[[Tuple[Any, ...], Dict[str, Any]], Any]
_ORIGINAL = "__zareba_original__"
_GATE = "__zareba_gate__"


class Tool(Protocol):
    """A tool as CAMEL has it: its function is replaced, all the rest stays."""

    func: Function

    def get_function_name(self) -> str:
        """Its name."""


class FunctionTool:
    """A function as a tool. With `camel-ai` installed, its `FunctionTool` is used instead."""

    def __init__(self, func: Function) -> None:
        self.func = func
        self.schema: Optional[Dict[str, Any]] = None
        """What a model is told of it; the sandbox knows once the runtime is built."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.func(*args, **kwargs)

    def get_function_name(self) -> str:
        """Its name."""
        return str(self.func.__name__)

    def get_openai_tool_schema(self) -> Dict[str, Any]:
        """What a model is told of it."""
        if self.schema is None:
            raise InvalidError(
                f"nobody has looked at the function `{self.get_function_name()}` yet",
                code="invalid",
                hint="build the runtime first",
            )
        return self.schema


def as_tools(funcs: Any) -> List[Tool]:
    """One tool, one function, or a list of them, as a list of tools."""
    several = list(funcs) if isinstance(funcs, (list, tuple)) else [funcs]
    return [_as_tool(each) for each in several]


def _as_tool(given: Any) -> Tool:
    if callable(getattr(given, "get_function_name", None)) and hasattr(given, "func"):
        return cast(Tool, given)
    if not callable(given):
        raise TypeError(f"a tool is a function or a FunctionTool, and not {type(given).__name__}")
    try:
        made = importlib.import_module("camel.toolkits").FunctionTool(given)
    except ImportError:
        made = FunctionTool(given)
    return cast(Tool, made)


def original(function: Function) -> Function:
    """The function itself, of one that a runtime has replaced."""
    return cast(Function, getattr(function, _ORIGINAL, function))


def is_gated(function: Function) -> bool:
    """Whether a guard stands before a function, which nobody may take away."""
    return getattr(function, _GATE, None) is not None


def gate_of(function: Function) -> Tuple[Any, Function]:
    """Who has put up the gate before a function, if there is one, and what is behind it."""
    return cast(Tuple[Any, Function], getattr(function, _GATE, (None, function)))


def gated(owner: object, function: Function, check: Invoke) -> Function:
    """A function that looks the same and is called only if the check returns `None`.

    Otherwise what that returns is returned instead.
    """

    @functools.wraps(function)
    async def awaited(*args: Any, **kwargs: Any) -> Any:
        loop = asyncio.get_running_loop()
        refusal = await loop.run_in_executor(None, check, args, kwargs)
        return await function(*args, **kwargs) if refusal is None else refusal

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        refusal = check(args, kwargs)
        return function(*args, **kwargs) if refusal is None else refusal

    gate = awaited if inspect.iscoroutinefunction(inspect.unwrap(function)) else called
    # Looking the same includes what others have written on it.
    vars(gate).pop(_ORIGINAL, None)
    setattr(gate, _GATE, (owner, function))
    return gate


def replaced(function: Function, invoke: Invoke) -> Function:
    """A function that looks the same and runs somewhere else.

    One that has to be awaited stays so, and others go on meanwhile.
    """
    if inspect.iscoroutinefunction(inspect.unwrap(function)):

        @functools.wraps(function)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(None, invoke, args, kwargs)

        setattr(awaited, _ORIGINAL, function)
        return awaited

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        return invoke(args, kwargs)

    setattr(called, _ORIGINAL, function)
    return called
