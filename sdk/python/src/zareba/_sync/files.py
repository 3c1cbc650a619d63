# Made by scripts/unasync.py from ../_async/files.py; change that one.
"""The files of a sandbox, as bytes and text."""

from __future__ import annotations

import errno
import os
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import IO, Iterator, List, Optional, Type, Union

import httpx

from .. import _archive, _calls, _checks, _http, models
from .._calls import Call
from .._checks import Path as SandboxPath
from .._wait import beside
from ..errors import DisconnectedError, NotFoundError, NotTextError
from .client import Client
from .link import Body
from .messages import Messages

_BYTES = "application/octet-stream"
LocalPath = Union[str, "os.PathLike[str]"]


class Files:
    """The files of a sandbox. Relative paths are meant from its workspace."""

    def __init__(self, client: Client, session: str) -> None:
        self._client = client
        self._session = session

    def read(
        self, path: SandboxPath, *, encoding: str = "utf-8", errors: str = "strict"
    ) -> str:
        """The text in a file. One that is none raises :class:`zareba.NotTextError`."""
        _checks.text(encoding, "encoding")
        _checks.text(errors, "errors")
        content = self.read_bytes(path)
        try:
            return content.decode(encoding, errors)
        except UnicodeDecodeError as error:
            problem = f"`{path}` is no text in {encoding}: {error.reason} at byte {error.start}"
            raise NotTextError(problem, error) from error
        except (LookupError, ValueError) as error:
            raise _checks.invalid(str(error)) from error

    def read_bytes(
        self, path: SandboxPath, *, start: int = 0, length: Optional[int] = None
    ) -> bytes:
        """The bytes in a file, all of them or a part."""
        call = self._call("read_file").asking(path=_checks.path(path)).within(_calls.LONG)
        start = _checks.whole(start, "start")
        length = None if length is None else _checks.whole(length, "length")
        if length == 0:
            return b""
        if start or length is not None:
            last = "" if length is None else start + length - 1
            call = call.saying("range", f"bytes={start}-{last}")
        return (self._client.send(call)).content

    def stream(self, path: SandboxPath) -> Iterator[bytes]:
        """The bytes in a file, piece by piece, for files that are too large to hold."""
        for piece in self._pieces(self._call("read_file").asking(path=_checks.path(path))):
            yield piece

    def write(
        self,
        path: SandboxPath,
        content: Union[str, bytes],
        *,
        mode: Optional[int] = None,
        parents: bool = True,
        if_version: Optional[str] = None,
        exclusive: bool = False,
    ) -> models.FileStatus:
        """Writes a file, and returns what is there then. At any time it is the old or the new one.

        `mode` are its permissions, such as 0o755. Missing directories are made unless `parents` is
        false. With `if_version` it is written only if it still has that version, with `exclusive`
        only if it is not there; otherwise :class:`zareba.BusyError` is raised.
        """
        data = _checks.content(content)
        call = self._write(path, mode, parents).saying("if-match", _quoted(if_version))
        if exclusive:
            call = call.saying("if-none-match", "*")
        elif if_version is None:
            # Writing the same twice is writing it once.
            call = call.repeated()
        return self._client.ask(call.with_bytes(data), models.FileStatus)

    def list(self, path: Optional[SandboxPath] = None) -> List[models.FileEntry]:
        """What is in a directory, sorted by name; the workspace when none is named."""
        named = None if path is None else _checks.path(path)
        found: List[models.FileEntry] = []
        after: Optional[str] = None
        while True:
            call = self._call("list_files").asking(path=named, after=after)
            page = self._client.ask(call, models.FilePage)
            found += page.entries
            after = page.next
            if after is None:
                return found

    def stat(
        self, path: SandboxPath, *, follow: bool = True, digest: bool = False
    ) -> models.FileStatus:
        """What is at a path: at the end of a link, unless `follow` is false."""
        call = self._call("get_file_status").asking(path=_checks.path(path))
        call = call.asking(follow=bool(follow), digest="sha256" if digest else None)
        return self._client.ask(call.within(_calls.LONG), models.FileStatus)

    def exists(self, path: SandboxPath) -> bool:
        """Whether there is something at a path; a link that leads nowhere is nothing."""
        try:
            self.stat(path)
        except NotFoundError:
            return False
        return True

    def remove(self, path: SandboxPath, *, recursive: bool = False) -> None:
        """Removes a file, or a directory with all that is in it. A link goes itself."""
        call = self._call("remove_file")
        call = call.asking(path=_checks.path(path), recursive=bool(recursive))
        try:
            self._client.send(call.repeated().within(_calls.LONG))
        except NotFoundError as error:
            # Gone is gone, if that may have been our own doing.
            if not error.in_doubt:
                raise

    def make_dir(
        self, path: SandboxPath, *, parents: bool = True, mode: Optional[int] = None
    ) -> models.FileStatus:
        """Makes a directory. With `parents` it is no error that it is there."""
        wanted = models.CreateDirectory(
            path=_checks.path(path), parents=bool(parents), mode=_checks.mode(mode)
        )
        call = self._call("create_directory").carrying(wanted)
        return self._client.ask(call.repeated() if parents else call, models.FileStatus)

    def rename(self, path: SandboxPath, to: SandboxPath, *, replace: bool = False) -> None:
        """Gives something another name; what has that name is replaced only if that is wanted."""
        named = {"from": _checks.path(path), "to": _checks.path(to, "to")}
        wanted = models.RenameFile(**named, replace=bool(replace))
        self._client.send(self._call("rename_file").carrying(wanted))

    def upload(self, local: LocalPath, path: Optional[SandboxPath] = None) -> None:
        """Copies a file, or what is in a directory, from this machine into the sandbox.

        Without a path it goes into the workspace under the same name.
        """
        source = Path(_checks.local(local))
        target = source.resolve().name if path is None else _checks.path(path)
        with _checks.local_files():
            self._upload(source, target)

    def _upload(self, source: Path, target: str) -> None:
        if not source.is_dir():
            mode = source.stat().st_mode & 0o777
            call = self._write(target, mode, parents=True).repeated()
            self._client.send(call.within(_calls.ACTION_TIMEOUT), _of_file(source))
            return
        self.make_dir(target)
        packed = beside(lambda: _archive.pack(source))
        with packed:
            call = self._call("unpack_files").asking(path=target, format="tar")
            call = call.saying("content-type", _BYTES).repeated().within(_calls.ACTION_TIMEOUT)
            self._client.send(call, _of_open(packed))

    def download(self, path: SandboxPath, local: LocalPath) -> Path:
        """Copies a file, or what is in a directory, to a path of this machine."""
        target = Path(_checks.local(local))
        named = _checks.path(path)
        with _checks.local_files():
            self._download(named, target)
        return target

    def _download(self, path: str, target: Path) -> None:
        status = self.stat(path)
        if status.kind != models.FileKind.DIRECTORY:
            return self._download_file(path, target)
        with _archive.spool() as packed:
            call = self._call("pack_files").asking(path=path, format="tar")
            for piece in self._pieces(call):
                packed.write(piece)
            name = PurePosixPath(path).name
            beside(lambda: _archive.unpack(packed, name, target))
        return None

    def watch(self, path: Optional[SandboxPath] = None, *, recursive: bool = True) -> Watch:
        """Tells of changes in a directory; to be used as a context manager and iterated over."""
        named = None if path is None else _checks.path(path)
        call = self._call("watch_files").asking(path=named, recursive=bool(recursive))
        return Watch(Messages(self._client, call))

    def _download_file(self, path: str, target: Path) -> None:
        """Through a file beside the target, which is the old or the new one at any time."""
        if not target.name:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
        beside = target.with_name(f".{target.name}.zareba-{os.getpid()}")
        try:
            with open(beside, "xb") as file:
                for piece in self._pieces(self._call("read_file").asking(path=path)):
                    file.write(piece)
            os.replace(beside, target)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise

    def _pieces(self, call: Call) -> Iterator[bytes]:
        response = self._client.open(call)
        try:
            for piece in response.iter_bytes():
                yield piece
        except httpx.HTTPError as error:
            raise DisconnectedError(
                f"the file did not arrive whole: {error}", code="disconnected"
            ) from error
        finally:
            response.close()

    def _call(self, operation: str) -> Call:
        return _calls.call(operation, session=self._session)

    def _write(self, path: SandboxPath, mode: Optional[int], parents: bool) -> Call:
        call = self._call("write_file").asking(path=_checks.path(path))
        call = call.asking(mode=_checks.mode(mode), parents=bool(parents))
        return call.saying("content-type", _BYTES).within(_calls.LONG)


class Watch:
    """Changes in a directory as they come, from the moment in which the context is entered."""

    def __init__(self, messages: Messages) -> None:
        self._messages = messages
        self._is_over = False

    def __enter__(self) -> Watch:
        # The first message says that nothing is missed from now on.
        self._messages.next()
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    def __iter__(self) -> Watch:
        return self

    def __next__(self) -> models.FileChange:
        if self._is_over:
            raise StopIteration
        message = self._messages.next()
        if message.kind == "ready":
            message = self._messages.next()
        change = _http.parse(models.FileChange, message.data.encode())
        self._is_over = change.change == models.ChangeKind.GONE
        return change

    def close(self) -> None:
        """Stops watching."""
        self._is_over = True
        self._messages.close()


def _quoted(tag: Optional[str]) -> Optional[str]:
    return None if tag is None else f'"{_checks.text(tag, "if_version")}"'


def _of_file(path: Path) -> Body:
    def pieces() -> Iterator[bytes]:
        with open(path, "rb") as file:
            for piece in _of_open(file)():
                yield piece

    return pieces


def _of_open(file: IO[bytes]) -> Body:
    """The content of a file from its beginning, however often it is asked for."""

    def pieces() -> Iterator[bytes]:
        file.seek(0)
        while True:
            piece = beside(lambda: file.read(_http.PIECE_BYTES))
            if not piece:
                return
            yield piece

    return pieces
