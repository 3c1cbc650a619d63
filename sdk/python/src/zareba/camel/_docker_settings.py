"""What docker-py calls the options of a container, as settings of a server of ours."""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, List, Mapping

from ..errors import InvalidError, UnsupportedError
from ._tasks import variables

Settings = Dict[str, str]
_NETWORKS = {"bridge": "internet", "default": "internet"}
"""Docker's words for what we call otherwise."""


def settings_of(image: str, options: Mapping[str, Any], mounts: List[str]) -> Settings:
    """The settings of a server that has this kind of sandbox and no other."""
    made: Settings = {
        "ZAREBA_RUNTIME_KIND": "docker",
        "ZAREBA_SESSIONS_RUNTIMES": json.dumps(["docker"]),
        "ZAREBA_DOCKER_IMAGE": image,
        "ZAREBA_DOCKER_PULL": "missing",
    }
    rest: Dict[str, Any] = {}
    volumes = list(mounts)
    for name, value in options.items():
        if name in ("volumes", "mounts"):
            volumes += _volumes(value)
        elif name in _KNOWN:
            made.update(_KNOWN[name](value))
        else:
            rest[name] = value
    if volumes:
        made["ZAREBA_DOCKER_VOLUMES"] = json.dumps(volumes)
    if rest:
        made["ZAREBA_DOCKER_OPTIONS"] = _rest(rest)
    return made


def environment_of(options: Mapping[str, Any]) -> Dict[str, str]:
    """The variables, however they were given."""
    return variables(options.get("environment"))


def _rest(options: Mapping[str, Any]) -> str:
    """What the server knows by the same names, or refuses with a reason."""
    try:
        return json.dumps(options)
    except TypeError as error:
        raise InvalidError(f"an option of the container is no JSON: {error}") from error


def _user(value: Any) -> Settings:
    user, _, group = str(value).partition(":")
    numbers = ["0" if each == "root" else each for each in (user, group) if each]
    if not numbers or not all(each.isdigit() for each in numbers):
        raise UnsupportedError(
            f"the container cannot have the user `{value}`",
            code="unsupported",
            hint="name the user by a number, such as `1000` or `1000:1000`",
        )
    made = {"ZAREBA_DOCKER_USER_ID": numbers[0]}
    if group:
        made["ZAREBA_DOCKER_GROUP_ID"] = numbers[1]
    return made


def _network(value: Any) -> Settings:
    return {"ZAREBA_DOCKER_NETWORK": _NETWORKS.get(str(value), str(value))}


def _ports(value: Any) -> Settings:
    """A dictionary from the port inside to the one outside.

    CAMEL puts one of its own in the place of whatever is given; its examples give a number, which
    has no effect here: the runtime has warned of it.
    """
    if value is None or isinstance(value, int):
        return {}
    if not isinstance(value, Mapping):
        raise InvalidError(
            f"`ports` is a dictionary from ports inside to ports outside, and not {value!r}",
            code="invalid",
        )
    made = []
    for inside, outside in value.items():
        number = str(inside).partition("/")[0]
        made.append(f"{outside}:{number}" if outside else number)
    return {"ZAREBA_DOCKER_PORTS": json.dumps(made)}


def _volumes(value: Any) -> List[str]:
    """A list of texts, or a dictionary from the path outside to `bind` and `mode`."""
    if isinstance(value, Mapping):
        return [f"{path}:{each['bind']}:{each.get('mode', 'rw')}" for path, each in value.items()]
    if isinstance(value, (list, tuple)) and all(isinstance(each, str) for each in value):
        return list(value)
    raise UnsupportedError(
        "volumes are given as a list of `host:container:mode` or as a dictionary",
        code="unsupported",
        hint="use mount()",
    )


def _text(name: str) -> Callable[[Any], Settings]:
    return lambda value: {name: str(value)}


def _list(name: str) -> Callable[[Any], Settings]:
    return lambda value: {name: json.dumps([str(each) for each in value])}


def _hosts(value: Any) -> Settings:
    pairs = [f"{n}:{a}" for n, a in value.items()] if isinstance(value, Mapping) else list(value)
    return {"ZAREBA_DOCKER_EXTRA_HOSTS": json.dumps(pairs)}


_KNOWN: Dict[str, Callable[[Any], Settings]] = {
    "environment": lambda value: {},
    # A container is found by its sandbox, and never waited for in another way.
    "detach": lambda value: {},
    "user": _user,
    "network": _network,
    "network_mode": _network,
    "ports": _ports,
    "platform": _text("ZAREBA_DOCKER_PLATFORM"),
    "working_dir": _text("ZAREBA_RUNTIME_WORKSPACE_IN_SANDBOX"),
    "read_only": lambda value: {"ZAREBA_DOCKER_WRITABLE_ROOT": json.dumps(not value)},
    "cap_add": _list("ZAREBA_DOCKER_CAPABILITIES"),
    "extra_hosts": _hosts,
}
