# Made by scripts/unasync.py from ../_async/tools.py; change that one.
"""Functions that run inside a sandbox: added by name, called with JSON, and reset."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from .. import _calls, _checks, _http, models
from ..errors import NotFoundError
from ..result import ToolResult, tool_result_of
from .client import Client


class Tools:
    """The tools of a sandbox. Each call is an action in its log, like a command."""

    def __init__(self, client: Client, session: str) -> None:
        self._client = client
        self._session = session

    def add(
        self,
        *entrypoints: str,
        python: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        directory: Optional[str] = None,
        threads: Optional[int] = None,
        commands: Sequence[Union[models.CommandTool, Mapping[str, Any]]] = (),
    ) -> models.ToolsAdded:
        """Adds Python functions, toolkits and commands, and tells what was added.

        An entrypoint is what Python would import inside, such as `package.module.function`, or a
        toolkit with its arguments, such as `package.Toolkit{"start": 5}`. What cannot be loaded is
        told in `failures`. `python` is the interpreter, `env` its variables, `directory` where it
        starts (the workspace when left out), `threads` how many calls it runs at once.
        """
        _checks.entrypoints(entrypoints)
        made = _checks.items(commands, "commands")
        wanted = _checks.made(
            models.AddTools,
            entrypoints=list(entrypoints),
            python=python,
            environment=_checks.texts(env),
            directory=directory,
            threads=threads,
            commands=made,
        )
        call = _calls.call("add_tools", session=self._session).carrying(wanted)
        return self._client.ask(call.within(_calls.LONG), models.ToolsAdded)

    def list(self) -> List[models.Tool]:
        """All tools, in the order in which they were added."""
        page = self._page(None)
        return [_http.checked(models.Tool, each) for each in page.tools]

    def schemas(self, format: str = "openai") -> List[Dict[str, Any]]:
        """The tools as a model is told of them: in the form of "openai" or of "mcp"."""
        return (self._page(_checks.text(format, "format"))).tools

    def call(
        self,
        name: str,
        arguments: Optional[Mapping[str, Any]] = None,
        *,
        positional: Sequence[Any] = (),
        timeout: Optional[float] = None,
        checked: bool = True,
    ) -> ToolResult:
        """Calls a tool and returns what it returned and printed.

        What it raises is raised here as :class:`zareba.ToolError`. Arguments are held against the
        tool's schema first, unless `checked` is false. After `timeout` seconds it is ended.
        """
        timeout = _checks.timeout(timeout)
        named = {} if arguments is None else _checks.document(arguments, "arguments")
        values = _checks.items(positional, "positional")
        action = _calls.call_tool(name, named, values, timeout, bool(checked))
        return tool_result_of(self._client.perform(self._session, action))

    def remove(self, name: str) -> None:
        """Removes a tool."""
        call = _calls.call("remove_tool", session=self._session, tool=_checks.text(name, "name"))
        try:
            self._client.send(call.repeated())
        except NotFoundError as error:
            # Gone is gone, if that may have been our own doing.
            if not error.in_doubt:
                raise

    def reset(self) -> None:
        """Starts whatever hosts the tools anew: they are as they were when they were added."""
        call = _calls.call("reset_tools", session=self._session)
        self._client.send(call.repeated().within(_calls.LONG))

    def _page(self, format: Optional[str]) -> models.ToolPage:
        call = _calls.call("list_tools", session=self._session).asking(format=format)
        return self._client.ask(call, models.ToolPage)
