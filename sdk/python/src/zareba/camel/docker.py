"""CAMEL's Docker runtimes: tools in a container, hardened unless something else is asked for."""

from __future__ import annotations

import codecs
import os
import sys
import warnings
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Tuple, Union

from .. import _private
from .._sync.client import Client
from .._sync.sandbox import Sandbox
from ..errors import BusyError, UnsupportedError
from ._docker_settings import environment_of, settings_of
from ._tasks import Runner, TaskConfig, TaskResult, variables
from ._upload import put
from .runtime import ZarebaRuntime

if TYPE_CHECKING:
    from typing_extensions import Self

_PORT = 8000
_READ_ONLY = "Read-only file system"
"""What programs say that want to change a file of an image."""
_TIME_OUT = 15.0
_PYTHON = "/usr/bin/python3"
_ABOUT = "import site, sys; print(sys.executable); print(*site.getsitepackages(), sep=':')"
_ERROR = "ERROR: "
"""What stands in front of errors that go the same way as output."""
_LINE_MAX = 64 * 1024
_LOOKED_FOR = ("python3", "python")


class DockerRuntime(ZarebaRuntime):
    """Tools in a container of a Docker Engine, with any image that has Python.

    The image needs nothing of ours, and no port is open. `options` are those of docker-py's
    `containers.create`; what would open a wall is refused with the option that does it in the
    open: `read_only=False` lets the image's files be changed, `network="bridge"` gives a network,
    `user="root"` makes the user inside root.
    """

    def __init__(
        self,
        image: str,
        port: Optional[int] = None,
        remove: bool = True,
        *,
        python: str = "python3",
        secrets: Optional[Mapping[str, str]] = None,
        timeout: Optional[float] = None,
        checked: bool = True,
        errors: str = "raise",
        client: Optional[Client] = None,
        **options: Any,
    ) -> None:
        """`port` has no effect, and neither has a number for `ports`: no port is open, and a value
        is answered by a warning. `remove` is always so.

        With a `client` the container is one of that server, whose operator decides on all options.
        """
        super().__init__(
            image,
            runtime="docker",
            python=python,
            env=environment_of(options),
            secrets=secrets,
            timeout=timeout,
            checked=checked,
            errors=errors,
            client=client,
        )
        if not remove:
            raise UnsupportedError(
                "a container cannot stay when its runtime ends",
                code="unsupported",
                hint="download what you need with `sandbox.files`, or use a server's sandbox",
            )
        self.port = _PORT if port is None else port
        if port:
            _warn("port", port)
        if isinstance(options.get("ports"), int):
            _warn("ports", options["ports"])
        self._options = dict(options)
        self._mounts: List[str] = []

    def mount(self, path: str, mount_path: str) -> Self:
        """Lets a directory of this machine be seen, and changed, inside."""
        local, inside = Path(path), PurePosixPath(mount_path)
        if not local.exists():
            raise FileNotFoundError(f"there is no directory `{path}`")
        if not local.is_dir():
            raise NotADirectoryError(f"`{path}` is no directory")
        if not local.is_absolute():
            raise ValueError(f"the path `{path}` does not begin with a slash")
        if not inside.is_absolute():
            raise ValueError(f"the path `{mount_path}` inside does not begin with a slash")
        if ":" in path or ":" in mount_path:
            raise ValueError(f"a path that is mounted has no colon: `{path}`, `{mount_path}`")
        if self._sandbox is not None:
            raise BusyError(
                "a running container gets no more mounts", code="conflict", hint="call stop() first"
            )
        self._mounts.append(f"{local}:{inside}:rw")
        return self

    def build(self, time_out: Optional[float] = _TIME_OUT) -> Self:
        """Makes the container, and returns once the tools can be called."""
        super().build(time_out)
        return self

    def stop(self, remove: Optional[bool] = None) -> Self:
        """Ends the container and removes it."""
        if remove is False:
            raise UnsupportedError("a container that is stopped is removed", code="unsupported")
        super().stop()
        return self

    def _task_hint(self, said: str) -> Optional[str]:
        if _READ_ONLY not in said or self._options.get("read_only") is False:
            return None
        return 'pass `read_only=False`, and `user="root"` for files of root'

    def _connect(self) -> Tuple[Client, List[Callable[[], None]]]:
        if self._given is not None:
            refused = sorted({*self._options, *(["mount()"] if self._mounts else [])})
            refused = [each for each in refused if each not in ("environment", "detach")]
            if refused:
                raise UnsupportedError(
                    f"on a server its operator decides on: {', '.join(refused)}",
                    code="unsupported",
                    hint="leave them out, or leave `client` out",
                )
            return self._given, []
        settings = settings_of(str(self.image), self._options, self._mounts)
        # A server of its own, since the options are those of a server.
        server = _private.PrivateServer(_private.program(os.environ), settings)
        client = Client(server.place.url, server.place.key)
        return client, [client.close, server.end]


class UbuntuDockerRuntime(DockerRuntime):
    """A container with a Python of its own, which is looked for where it is not named."""

    def __init__(
        self,
        image: str,
        port: Optional[int] = 0,
        remove: bool = True,
        python_path: str = _PYTHON,
        **options: Any,
    ) -> None:
        super().__init__(image, port, remove, python=python_path, **options)
        self.python_path = python_path
        self.site_packages = ""
        """Where that Python keeps its packages; known once the runtime is built."""
        self._env.setdefault("PYTHONUNBUFFERED", "1")

    def add(
        self,
        funcs: Any,
        entrypoint: Optional[str] = None,
        redirect_stdout: Union[bool, Mapping[str, Any]] = False,
        arguments: Optional[Mapping[str, Any]] = None,
    ) -> Self:
        """Adds tools. A command that says `python` means the Python of this runtime."""
        for each in funcs if isinstance(funcs, (list, tuple)) else [funcs]:
            command = getattr(each, "command", None)
            if isinstance(command, list) and "python" in command:
                command[command.index("python")] = self.python_path
        super().add(funcs, entrypoint, redirect_stdout, arguments)
        return self

    def exec_python_file(
        self,
        local_file_path: str,
        container_path: Optional[str] = None,
        args: Optional[List[str]] = None,
        env: Optional[Dict[str, str]] = None,
        callback: Optional[Callable[[str], None]] = None,
        timeout: Optional[float] = None,
    ) -> TaskResult:
        """Runs a Python file of this machine inside, and returns its status and output.

        What it writes goes to `callback` as it comes, errors with `ERROR: ` in front, or is
        printed. After `timeout` seconds it is ended, as it is when this is interrupted.
        """
        sandbox = self._built("run a Python file")
        local = Path(local_file_path)
        if not local.is_file():
            raise FileNotFoundError(f"there is no file `{local_file_path}`")
        inside = container_path or f"/tmp/{local.name}"
        put(sandbox, self.python, local, inside)
        words = [self.python, inside, *(args or [])]
        out, errors = _Text(callback or _show), _Errors(callback or _complain)
        program = sandbox.program(words, env={**self._tool_environment(), **variables(env)})
        done = program.communicate(timeout=timeout, on_stdout=out.add, on_stderr=errors.add)
        out.end()
        errors.end()
        return TaskResult(words, done.exit_code, done.stdout, done.stderr)

    def _tool_environment(self) -> Dict[str, str]:
        made = {"PYTHON_PATH": self.python, "PYTHON_EXECUTABLE": self.python}
        if self.site_packages and "PYTHONPATH" not in self._env:
            made["PYTHONPATH"] = self.site_packages
        return made

    def _prepare(self, sandbox: Sandbox) -> None:
        """Finds the interpreter and where it keeps its packages."""
        candidates = [self.python_path]
        if self.python_path == _PYTHON:
            candidates += _LOOKED_FOR
        said = ""
        for candidate in candidates:
            done = self._try(sandbox, candidate)
            if done.ok:
                self.python, _, packages = done.stdout.decode().partition("\n")
                self.site_packages = packages.strip()
                return
            said = done.stderr.decode(errors="replace").strip()
        raise RuntimeError(
            f"Python installation verification failed: {', '.join(candidates)}: {said}"
        )

    def _try(self, sandbox: Sandbox, python: str) -> TaskResult:
        return Runner(sandbox).finish(TaskConfig(cmd=[python, "-c", _ABOUT], timeout=_TIME_OUT))


def _warn(name: str, value: object) -> None:
    """Tells of an option that CAMEL's own class needs."""
    warnings.warn(
        f"`{name}={value!r}` has no effect: tools are called without an open port",
        UserWarning,
        stacklevel=3,
    )


class _Text:
    """Bytes on their way to somebody who wants text; a character may come in parts."""

    def __init__(self, listener: Callable[[str], Any]) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._listener = listener

    def add(self, piece: bytes) -> None:
        self._tell(self._decoder.decode(piece))

    def end(self) -> None:
        self._tell(self._decoder.decode(b"", final=True))

    def _tell(self, text: str) -> None:
        if text:
            self._listener(text)


class _Errors(_Text):
    """The same line by line, each marked as an error."""

    def __init__(self, listener: Callable[[str], Any]) -> None:
        super().__init__(listener)
        self._line = ""

    def end(self) -> None:
        super().end()
        if self._line:
            self._listener(_ERROR + self._line)

    def _tell(self, text: str) -> None:
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            self._listener(f"{_ERROR}{line}\n")
        if len(self._line) > _LINE_MAX:
            self._listener(_ERROR + self._line)
            self._line = ""


def _show(text: str) -> None:
    print(text, end="", flush=True)


def _complain(text: str) -> None:
    print(text, end="", flush=True, file=sys.stderr)
