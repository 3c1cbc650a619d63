"""A runtime whose tools run in a sandbox."""

from __future__ import annotations

import atexit
import logging
import sys
import threading
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Tuple, Union
from urllib.parse import quote

from .. import _relay
from .._defaults import default_client
from .._sync.client import Client
from .._sync.sandbox import Sandbox
from ..errors import InvalidError, NotFoundError, ToolError, ZarebaError
from ..result import ToolResult
from . import _entrypoints
from ._arguments import as_json
from ._base import BaseRuntime
from ._errors import LoadError, NotBuiltError, TaskFailedError, load_failure
from ._tasks import ExecResult, Runner, TaskConfig, TaskResult, checked, variables
from ._tool import FunctionTool, Tool, as_tools, is_gated, original, replaced
from ._upload import put

if TYPE_CHECKING:
    from typing_extensions import Self

_log = logging.getLogger("zareba.camel")
_RAISE, _RETURN = "raise", "return"
_INDENT = " " * 24
_HINT = (
    "inside the sandbox it must be possible to import them: name an `image` or a `python` that "
    "has them, give a `workspace` with your modules, or see what runs there with exec_run"
)


class ZarebaRuntime(BaseRuntime):
    """Replaces the functions of tools by ones that run in a sandbox of their own.

    Tools keep their names and schemas, so that agents notice nothing. What a tool raises is raised
    here as :class:`zareba.ToolError`; with `errors="return"` it is returned as CAMEL does it, as a
    dictionary `{"error": ...}`.
    """

    def __init__(
        self,
        image: Optional[str] = None,
        *,
        runtime: Optional[str] = None,
        workspace: Optional[str] = None,
        python: str = "python3",
        env: Union[Mapping[str, str], List[str], None] = None,
        secrets: Optional[Mapping[str, str]] = None,
        timeout: Optional[float] = None,
        checked: bool = True,
        errors: str = _RAISE,
        client: Optional[Client] = None,
    ) -> None:
        """What is left out is the server's choice, as in :meth:`zareba.Sandbox.create`.

        `python` is the interpreter inside that runs the tools, `timeout` the seconds that a call
        may take, and `checked` whether arguments are held against the tools' schemas first.
        """
        super().__init__()
        if errors not in (_RAISE, _RETURN):
            raise ValueError(f'`errors` is "{_RAISE}" or "{_RETURN}", and not {errors!r}')
        self.image = image
        self.python = python
        self.timeout = timeout
        self.entrypoint: Dict[str, str] = {}
        """The entrypoint of each tool, by its name."""
        self.task_results: List[TaskResult] = []
        """What came of the tasks of the last build."""
        self._where: Dict[str, Any] = {"runtime": runtime, "workspace": workspace}
        self._env = variables(dict(env) if isinstance(env, Mapping) else env)
        self._secrets = dict(secrets or {})
        self._checked = checked
        self._errors = errors
        self._given = client
        self._copies: List[Tuple[Path, str]] = []
        self._tasks: List[TaskConfig] = []
        self._loaded: List[str] = []
        self._lock = threading.RLock()
        self._sandbox: Optional[Sandbox] = None
        self._closer: Optional[weakref.finalize[Any, Any]] = None

    def add(
        self,
        funcs: Any,
        entrypoint: Optional[str] = None,
        redirect_stdout: Union[bool, Mapping[str, Any]] = False,
        arguments: Optional[Mapping[str, Any]] = None,
    ) -> Self:
        """Adds a tool or a list of them, and says where they are found inside the sandbox.

        `entrypoint` is what Python imports there: a function, or a toolkit, which is made with
        `arguments`. Left out, it is read off the functions. With `redirect_stdout` what a tool
        prints is printed here as well. A dictionary in its place, as in CAMEL's examples, is
        what the toolkit is made with.
        """
        if isinstance(redirect_stdout, Mapping):
            if arguments is not None:
                raise TypeError("what a toolkit is made with is given twice")
            arguments = redirect_stdout
            redirect_stdout = False
        if not isinstance(redirect_stdout, bool):
            raise TypeError(
                f"`redirect_stdout` is true or false, and not {type(redirect_stdout).__name__}; "
                "what a toolkit is made with is `arguments=`"
            )
        tools = as_tools(funcs)
        if entrypoint is None:
            names = [
                _entrypoints.with_arguments(e, arguments) for e in _entrypoints.of_tools(tools)
            ]
        else:
            names = [_entrypoints.with_arguments(entrypoint, arguments)] * len(tools)
        with self._lock:
            for tool, name in zip(tools, names):
                self._adopt(tool, name, redirect_stdout)
            if self._sandbox is not None:
                self._load(self._sandbox)
        return self

    def copy(self, source: str, dest: str) -> Self:
        """Copies a file or directory into a directory of the sandbox, under the same name."""
        local = Path(source)
        if not local.exists():
            raise FileNotFoundError(f"there is no file or directory `{source}`")
        with self._lock:
            self._copies.append((local, dest))
            if self._sandbox is not None:
                self._upload(self._sandbox, local, dest)
        return self

    def add_task(self, task: Any) -> Self:
        """Has a program run when the sandbox is built, before the tools are loaded."""
        self._tasks.append(checked(task))
        return self

    def exec_run(self, task: Any) -> ExecResult:
        """Runs a program now, and returns its status and output as docker-py does."""
        return Runner(self._built("run a program")).run(checked(task))

    def build(self, time_out: Optional[float] = None) -> Self:
        """Makes the sandbox, copies files, runs tasks and loads the tools; then all is ready.

        Nothing is left behind when one of these fails. `time_out` are the seconds that a task
        may take which does not say so itself.
        """
        with self._lock:
            if self._sandbox is not None:
                _log.warning("the runtime is built already")
                return self
            try:
                self._build(time_out)
            except BaseException:
                self.cleanup()
                raise
        return self

    def reset(self, *args: Any, **kwargs: Any) -> Self:
        """Begins anew, with a new sandbox: whatever was in the old one is lost."""
        with self._lock:
            self.cleanup()
            return self.build(*args, **kwargs)

    def reset_tools(self) -> Self:
        """Lets the tools begin anew in the same sandbox: files stay, what toolkits knew goes."""
        self._built("reset the tools").tools.reset()
        return self

    def cleanup(self) -> None:
        """Ends the sandbox, and with it everything inside."""
        with self._lock:
            closer, self._closer = self._closer, None
            self._sandbox = None
            self._loaded = []
            if closer is not None:
                closer()

    def stop(self) -> Self:
        """The same, and returns the runtime."""
        self.cleanup()
        return self

    def __enter__(self) -> Self:
        if self._sandbox is None:
            self.build()
        return self

    @property
    def sandbox(self) -> Sandbox:
        """The sandbox, for whatever else it can do."""
        return self._built("use the sandbox")

    @property
    def ok(self) -> bool:
        """Whether the sandbox is ready and has every tool that was added."""
        sandbox = self._sandbox
        if sandbox is None:
            return False
        try:
            state = sandbox.info().state
            there = {each.name for each in sandbox.tools.list()}
        except ZarebaError:
            return False
        return state in ("ready", "paused") and set(self.tools_map) <= there

    def wait(self, timeout: float = 10) -> bool:
        """Whether it can be used: building returns when it can, so that there is no waiting."""
        return self.ok

    @property
    def docs(self) -> str:
        """Where the tools are described, on the server that the sandbox is on.

        The page of a server on a socket has a port of this machine, as long as this process lives.
        """
        sandbox = self._built("say where the tools are described")
        place = sandbox.client.place()
        target = f"/sessions/{quote(sandbox.id)}/camel/docs"
        return place.base_url + target if place.socket is None else _relay.page(place, target)

    def _connect(self) -> Tuple[Client, List[Callable[[], None]]]:
        """The server that the sandbox is to be on, and what is to be done when it has ended."""
        return self._given or default_client(), []

    def _prepare(self, sandbox: Sandbox) -> None:
        """What has to be found out before tasks and tools can run."""

    def _build(self, time_out: Optional[float]) -> None:
        client, afterwards = self._connect()
        self._on_end(None, afterwards)
        sandbox = Sandbox.create(
            self.image, env=self._env, secrets=self._secrets, client=client, **self._where
        )
        self._on_end(sandbox, afterwards)
        self._prepare(sandbox)
        for local, dest in self._copies:
            self._upload(sandbox, local, dest)
        self.task_results = []
        for task in self._tasks:
            self._run_task(sandbox, task, time_out)
        self._load(sandbox)
        self._sandbox = sandbox

    def _on_end(self, sandbox: Optional[Sandbox], afterwards: List[Callable[[], None]]) -> None:
        """Says what `cleanup` does, also when nobody calls it and the tools are forgotten."""
        if self._closer is not None:
            self._closer.detach()
        self._closer = weakref.finalize(self, _close, sandbox, afterwards)
        # When the process ends, it is done before the private server ends: see below.
        self._closer.atexit = False
        _living.add(self)

    def _run_task(self, sandbox: Sandbox, task: TaskConfig, time_out: Optional[float]) -> None:
        if task.detach:
            return Runner(sandbox).start(task)
        if task.timeout is None:
            task = task.model_copy(update={"timeout": time_out})
        result = Runner(sandbox).finish(task)
        self.task_results.append(result)
        if result.ok:
            return None
        said = (result.stderr or result.stdout).decode(errors="replace").strip()[-500:]
        message = f"the task `{task.cmd}` exited with {result.exit_code}: {said}"
        if self._errors == _RAISE:
            raise TaskFailedError(message, result, self._task_hint(said))
        _log.warning("%s", message)
        return None

    def _task_hint(self, said: str) -> Optional[str]:
        """What to do about a task that failed, when that is known by what it said."""
        return None

    def _upload(self, sandbox: Sandbox, local: Path, dest: str) -> None:
        put(sandbox, self.python, local, f"{dest.rstrip('/')}/{local.resolve().name}")

    def _adopt(self, tool: Tool, entrypoint: str, redirect_stdout: bool) -> None:
        """Replaces the function of a tool, also of one that another runtime has replaced."""
        name = tool.get_function_name()
        if is_gated(tool.func):
            raise InvalidError(
                f"a guard stands before the tool `{name}`, and would be left out",
                code="invalid",
                hint="put the tool into a sandbox first, and add it to the guard then",
            )
        known = self.entrypoint.get(name)
        if known is not None and known != entrypoint:
            raise InvalidError(
                f"there is a tool `{name}` already, of `{known}`: `{entrypoint}` cannot have one "
                "of the same name",
                code="exists",
                hint="use a runtime of its own for it",
            )

        def invoke(args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
            return self._answer(name, args, kwargs, redirect_stdout)

        tool.func = replaced(original(tool.func), invoke)
        self.tools_map[name] = tool
        self.entrypoint[name] = entrypoint

    def _load(self, sandbox: Sandbox) -> None:
        """Loads what is not loaded yet, and makes sure that every tool is there."""
        wanted = dict.fromkeys(self.entrypoint.values())
        new = [each for each in wanted if each not in self._loaded]
        if not new:
            return
        try:
            loaded = sandbox.tools.add(*new, python=self.python, env=self._tool_environment())
        except InvalidError as error:
            # Not a single one could be loaded.
            raise LoadError(error.message, hint=_HINT) from error
        if loaded.failures:
            raise load_failure(loaded.failures, _HINT)
        self._loaded += new
        there = {each.name: each for each in sandbox.tools.list()}
        missing = [name for name in self.entrypoint if name not in there]
        if missing:
            raise LoadError(
                f"`{self.entrypoint[missing[0]]}` was loaded and has no tool `{missing[0]}`; "
                f"there are: {', '.join(there) or 'none'}"
            )
        self._describe(sandbox)

    def _tool_environment(self) -> Dict[str, str]:
        """Variables of the interpreter that runs the tools, beside those of the sandbox."""
        return {}

    def _describe(self, sandbox: Sandbox) -> None:
        """Tells our own kind of tools what they look like to a model."""
        ours = {n: each for n, each in self.tools_map.items() if isinstance(each, FunctionTool)}
        if ours:
            for schema in sandbox.tools.schemas():
                name = schema.get("function", {}).get("name")
                if name in ours:
                    ours[name].schema = schema

    def _answer(
        self, name: str, args: Tuple[Any, ...], kwargs: Dict[str, Any], redirect_stdout: bool
    ) -> Any:
        try:
            result = self._call(name, args, kwargs, redirect_stdout)
        except ZarebaError as error:
            if redirect_stdout and isinstance(error, ToolError):
                _print(error.stdout, error.stderr)
            if self._errors == _RAISE:
                raise
            _log.error("the tool `%s` failed: %s", name, error)
            return _as_dictionary(name, error)
        if redirect_stdout:
            _print(result.stdout, result.stderr)
        return result.value

    def _call(
        self, name: str, args: Tuple[Any, ...], kwargs: Dict[str, Any], redirect_stdout: bool
    ) -> ToolResult:
        sandbox = self._built(f"call the tool `{name}`")
        positional, named = as_json(name, args, kwargs)
        return sandbox.tools.call(
            name, named, positional=positional, timeout=self.timeout, checked=self._checked
        )

    def _built(self, deed: str) -> Sandbox:
        if self._sandbox is None:
            raise NotBuiltError(deed)
        return self._sandbox


_living: weakref.WeakSet[ZarebaRuntime] = weakref.WeakSet()


@atexit.register
def _end() -> None:
    for each in list(_living):
        each.cleanup()


def _close(sandbox: Optional[Sandbox], afterwards: List[Callable[[], None]]) -> None:
    """Ends a sandbox, and what there was for it alone."""
    try:
        if sandbox is not None:
            sandbox.close()
    except NotFoundError:
        _log.debug("the sandbox was gone already")
    except ZarebaError as error:
        _log.warning("a sandbox could not be ended: %s", error)
    finally:
        for each in afterwards:
            each()


def _as_dictionary(name: str, error: ZarebaError) -> Dict[str, Any]:
    """A failure as CAMEL returns it."""
    told = error.detail if isinstance(error, ToolError) else str(error)
    text = f"Failed to execute function:\n{_INDENT}{name},\n{_INDENT}response: {told}"
    return {"error": text}


def _print(stdout: str, stderr: str) -> None:
    if stdout:
        print(stdout, end="")
    if stderr:
        print(stderr, end="", file=sys.stderr)
