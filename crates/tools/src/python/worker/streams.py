"""Hosts functions that agents call; see python.rs for the other side.

The parts are joined into one text and run by `python -c`, inside a sandbox, with nothing but the
standard library of Python 3.8. This part comes first: it takes the protocol away from descriptors
0 and 1 before anything else can print there, and gives every call streams of its own.
"""

import os
import sys

# A module of the workspace must not stand in for one that the worker itself needs.
sys.path[:] = [path for path in sys.path if path not in ("", os.getcwd())]

REQUESTS = os.fdopen(os.dup(0), "rb")
REPLIES = os.fdopen(os.dup(1), "wb", buffering=0)
# What child processes print cannot be told apart by call; it goes where complaints go.
with open(os.devnull, "rb") as nothing:
    os.dup2(nothing.fileno(), 0)
os.dup2(2, 1)

import contextvars  # noqa: E402
import io  # noqa: E402
import json  # noqa: E402
import threading  # noqa: E402

CURRENT = contextvars.ContextVar("call", default=None)


class Captured:
    """The beginning of what a call prints on one stream."""

    def __init__(self, limit):
        self.parts = []
        self.room = limit
        self.truncated = False

    def write(self, text):
        # A character has at most four bytes; this is a bound, not an account.
        kept = text if len(text) <= self.room else text[: self.room]
        self.truncated = self.truncated or len(kept) < len(text)
        self.room -= len(kept)
        if kept:
            self.parts.append(kept)

    def text(self):
        return "".join(self.parts)


class Stream(io.TextIOBase):
    """Stands in for sys.stdout or sys.stderr: what a call prints goes to that call alone."""

    encoding = "utf-8"
    errors = "replace"

    def __init__(self, which, descriptor):
        self._which = which
        self._descriptor = descriptor
        self.buffer = Bytes(self)

    def write(self, text):
        if not isinstance(text, str):
            raise TypeError("write() argument must be str, not " + type(text).__name__)
        call = CURRENT.get()
        if call is None:
            os.write(self._descriptor, text.encode("utf-8", "replace"))
        else:
            getattr(call, self._which).write(text)
        return len(text)

    def writable(self):
        return True

    def isatty(self):
        return False

    def fileno(self):
        return self._descriptor

    def flush(self):
        pass

    def close(self):
        pass


class Bytes(io.RawIOBase):
    """The binary side of a stream, for those who write to sys.stdout.buffer."""

    def __init__(self, stream):
        self._stream = stream

    def writable(self):
        return True

    def write(self, data):
        data = bytes(data)
        self._stream.write(data.decode("utf-8", "replace"))
        return len(data)

    def fileno(self):
        return self._stream.fileno()


sys.stdout = sys.__stdout__ = Stream("stdout", 1)
sys.stderr = sys.__stderr__ = Stream("stderr", 2)
sys.stdin = sys.__stdin__ = io.TextIOWrapper(os.fdopen(0, "rb", closefd=False))

