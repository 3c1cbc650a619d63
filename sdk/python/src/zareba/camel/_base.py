"""The class that every runtime is one of: CAMEL's own where it is installed, else one like it."""

from __future__ import annotations

import importlib
import logging
from abc import ABC, abstractmethod
from types import TracebackType
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Type

from ._tool import Tool

if TYPE_CHECKING:
    from typing_extensions import Self

_log = logging.getLogger("zareba.camel")


class _Base(ABC):
    """What a runtime is: it has tools, and lets them run somewhere else."""

    def __init__(self) -> None:
        super().__init__()
        self.tools_map: Dict[str, Tool] = {}
        """The tools by their names, in the order in which they were added."""

    @abstractmethod
    def add(self, funcs: Any, *args: Any, **kwargs: Any) -> Self:
        """Adds one tool or several."""

    @abstractmethod
    def reset(self, *args: Any, **kwargs: Any) -> Any:
        """Begins anew."""

    @abstractmethod
    def cleanup(self) -> None:
        """Gives back everything."""

    def stop(self) -> Self:
        """Gives back everything."""
        self.cleanup()
        return self

    def get_tools(self) -> List[Any]:
        """The tools, in the order in which they were added."""
        return list(self.tools_map.values())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.cleanup()


def _found() -> Any:
    """CAMEL's class, or ours where there is none."""
    try:
        return importlib.import_module("camel.runtimes").BaseRuntime
    except ModuleNotFoundError as error:
        if error.name != "camel":
            # It is there and lacks something itself, which is worth a word.
            _log.warning("camel is installed but cannot be used: %s", error)
    except ImportError as error:
        _log.warning("camel is installed but cannot be used: %s", error)
    return _Base


if TYPE_CHECKING:
    BaseRuntime = _Base
else:
    BaseRuntime = _found()
