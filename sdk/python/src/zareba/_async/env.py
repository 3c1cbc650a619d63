"""The variables of a sandbox."""

from __future__ import annotations

from typing import Dict, Mapping, Optional

from .. import _calls, _checks, models
from .._shell_words import checked_name, read_variables, show_variables
from .client import AsyncClient
from .shell import AsyncShell


class AsyncEnv:
    """The variables of a sandbox: of its shells, and of programs, terminals and tools that start.

    A shell gets what is set here with its next command. The log has the names and not the values;
    output that shows a value is not masked, so that a secret belongs into the `secrets` of
    :meth:`zareba.AsyncSandbox.create`.
    """

    def __init__(self, client: AsyncClient, session: str, shell: AsyncShell) -> None:
        self._client = client
        self._session = session
        self._shell = shell

    async def all(self) -> Dict[str, str]:
        """Every variable that programs of the default shell get. Secrets are masked here, too."""
        result = await self._shell._run_whole(show_variables())
        return read_variables(result.check().output)

    async def get(self, name: str, default: Optional[str] = None) -> Optional[str]:
        """The value of a variable."""
        return (await self.all()).get(checked_name(name), default)

    async def set(self, variables: Optional[Mapping[str, str]] = None, /, **more: str) -> None:
        """Sets variables."""
        wanted = {**_checks.texts(variables, "variables"), **_checks.texts(more)}
        if wanted:
            names = {checked_name(name): value for name, value in wanted.items()}
            await self._change(models.SetVariables(set=names))

    async def unset(self, *names: str) -> None:
        """Removes variables."""
        if names:
            await self._change(models.SetVariables(unset=[checked_name(name) for name in names]))

    async def _change(self, changes: models.SetVariables) -> None:
        call = _calls.call("set_variables", session=self._session).carrying(changes)
        await self._client.send(call.repeated().within(_calls.LONG))
