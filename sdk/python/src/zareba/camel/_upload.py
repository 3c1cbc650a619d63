"""Files on their way into a sandbox, also into one that offers none of its own as bytes."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from .. import _archive, _http
from .._sync.sandbox import Sandbox
from ..errors import InternalError, UnsupportedError

_UNPACK = """
import os, sys, tarfile
os.makedirs(sys.argv[1], exist_ok=True)
with tarfile.open(fileobj=sys.stdin.buffer, mode="r|") as archive:
    archive.extractall(sys.argv[1])
"""


def put(sandbox: Sandbox, python: str, local: Path, path: str) -> None:
    """Copies a file or directory of this machine to a path inside, whose directories are made.

    Containers do not offer their files; there, the interpreter that has to be inside unpacks them.
    """
    try:
        sandbox.files.upload(local, path)
    except UnsupportedError:
        _send(sandbox, python, local, PurePosixPath(path))


def _send(sandbox: Sandbox, python: str, local: Path, path: PurePosixPath) -> None:
    words = [python, "-W", "ignore", "-c", _UNPACK, str(path.parent)]
    packed = _archive.pack_as(local, path.name)
    with packed, sandbox.program(words, stdin=True) as program:
        for piece in iter(lambda: packed.read(_http.PIECE_BYTES), b""):
            program.write(piece)
        program.end_input()
        done = program.communicate()
    if done.exit_code != 0:
        said = done.stderr.decode(errors="replace").strip()[-500:]
        raise InternalError(f"`{local}` could not be copied to `{path}` inside: {said}")
