"""Where the server is: named, running already on this machine, or to be started."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import Mapping, NamedTuple, Optional
from urllib.parse import SplitResult, urlsplit

from .errors import InvalidError

UNIX = "unix:"
"""In front of the path of a socket, where other servers have a URL."""
_CONNECT_TIMEOUT = 2.0


class Address(NamedTuple):
    """Where to connect to when nothing is on the way, and what to ask for there."""

    name: str
    """What the server is called in a request."""
    host: str
    port: int
    socket: Optional[str] = None
    """A path, instead of the host and the port."""
    prefix: str = ""
    """What all paths begin with."""


@dataclass(frozen=True)
class Place:
    """A server's address and the key to it."""

    url: str
    key: Optional[str] = field(default=None, repr=False)

    @property
    def socket(self) -> Optional[str]:
        """The path of the socket, of a server that has one instead of a port."""
        return self.url[len(UNIX) :] if self.url.startswith(UNIX) else None

    @property
    def base_url(self) -> str:
        """What requests begin with."""
        return "http://localhost" if self.socket else self.url.rstrip("/")

    @property
    def is_local(self) -> bool:
        """Whether it is on this machine, so that no proxy is on the way."""
        host = urlsplit(self.base_url).hostname or ""
        return host in ("localhost", "127.0.0.1", "::1")

    @property
    def address(self) -> Optional[Address]:
        """Where to connect to, if it can be reached without encryption, a proxy or a password."""
        parts = urlsplit(self.base_url)
        if not self.is_local or parts.scheme != "http" or "@" in parts.netloc:
            return None
        port = _port(parts)
        return Address(parts.netloc, parts.hostname or "", port, self.socket, parts.path)


def checked(url: str, key: Optional[str]) -> Place:
    """A place that somebody has named."""
    for name, value in (("url", url), ("key", key)):
        if value is not None and not isinstance(value, str):
            raise InvalidError(f"`{name}` is a text", code="invalid")
    if not url.startswith((UNIX, "http://", "https://")) or not _is_sound(url):
        raise InvalidError(
            f"`{url}` is no address of a server",
            code="invalid",
            hint="use `http://…`, `https://…` or `unix:` and a path",
        )
    return Place(url, key or None)


def named(environment: Mapping[str, str]) -> Optional[Place]:
    """The server that `ZAREBA_URL` names, if it does."""
    url = environment.get("ZAREBA_URL")
    if not url:
        return None
    place = checked(url, environment.get("ZAREBA_API_KEY"))
    return place if place.key else Place(place.url, _own_key(place, environment))


def running(environment: Mapping[str, str]) -> Optional[Place]:
    """The server of this user's state directory, if one answers there."""
    place = _noted(environment)
    return place if place is not None and _listens(place) else None


def _noted(environment: Mapping[str, str]) -> Optional[Place]:
    """The server that has this user's state directory, or had it last."""
    directory = state_directory(environment)
    try:
        told = json.loads((directory / "server.json").read_text())
        key = (directory / "admin.key").read_text().strip()
        return checked(str(told["url"]), key)
    except (OSError, ValueError, KeyError, TypeError, InvalidError):
        # None was started, it was another user's, or it did not end in order.
        return None


def _own_key(place: Place, environment: Mapping[str, str]) -> Optional[str]:
    """This user's own key, for this user's own server; nobody else is sent it."""
    noted = _noted(environment)
    is_own = noted is not None and noted.url.rstrip("/") == place.url.rstrip("/")
    return noted.key if noted is not None and is_own else None


def state_directory(environment: Mapping[str, str]) -> Path:
    """Where a server of this user keeps its state, by the same rules as the program."""
    given = environment.get("ZAREBA_STATE_DIRECTORY")
    if given:
        return Path(given)
    if os.geteuid() == 0:
        return Path("/var/lib/zareba")
    state_home, home = environment.get("XDG_STATE_HOME", ""), environment.get("HOME")
    if os.path.isabs(state_home):
        return Path(state_home) / "zareba"
    return Path(home) / ".local/state/zareba" if home else Path(f"/tmp/zareba-{os.geteuid()}")


def _listens(place: Place) -> bool:
    try:
        if place.socket is not None:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(_CONNECT_TIMEOUT)
                connection.connect(place.socket)
            return True
        parts = urlsplit(place.base_url)
        with socket.create_connection((parts.hostname or "", _port(parts)), _CONNECT_TIMEOUT):
            return True
    except OSError:
        return False


def _port(parts: SplitResult) -> int:
    return parts.port or (443 if parts.scheme == "https" else 80)


def _is_sound(url: str) -> bool:
    """Whether its port, if it has one, is a number."""
    try:
        return urlsplit(url).port != 0
    except ValueError:
        return False
