"""How a module of cases lists its cases."""

from collections.abc import Callable
from dataclasses import dataclass, field

from .sandbox import Sandbox, Server

Check = Callable[[Sandbox], None]


@dataclass(frozen=True)
class Case:
    """One expectation, named in words, and the kind of server it needs."""

    name: str
    check: Check
    server: Server
    # Why the original does not do this; such a case is left out when it is the one driven.
    better: str


@dataclass
class Cases:
    """Collects the cases of one module, in the order they are written."""

    server: Server = field(default_factory=Server)
    listed: list[Case] = field(default_factory=list)

    def case(self, *, server: Server | None = None, better: str = '') -> Callable[[Check], Check]:
        def register(check: Check) -> Check:
            self.listed.append(Case(check.__name__, check, server or self.server, better))
            return check

        return register
