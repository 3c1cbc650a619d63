"""Makes the client that blocks from the one that does not: `python scripts/unasync.py [--check]`.

The two differ in a handful of words, which are replaced here. Both are committed, so that an
installed package has readable sources; a test fails when they have come apart.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "zareba"
HEADER = "# Made by scripts/unasync.py from ../_async/{name}; change that one.\n"
WORDS = [
    (r"\basync (def|with|for)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\b__a(enter|exit|iter|next)__\b", r"__\1__"),
    (r"\bStopAsyncIteration\b", "StopIteration"),
    (r"\bAsyncIterator\b", "Iterator"),
    (r"\bhttpx\.AsyncHTTPTransport\b", "httpx.HTTPTransport"),
    (r"\bhttpcore\.AnyIOBackend\b", "httpcore.SyncBackend"),
    (r"\bAsync(?=[A-Z])", ""),
    (r"\basync_(?=[a-z])", ""),
    (r"\ba(close|read|iter_bytes)\(", r"\1("),
]


def made_from(source: Path) -> str:
    """The text of the file that blocks."""
    if source.name == "__init__.py":
        return '"""The client that blocks, made from :mod:`zareba._async`."""\n'
    text = source.read_text()
    for pattern, replacement in WORDS:
        text = re.sub(pattern, replacement, text)
    return HEADER.format(name=source.name) + _sorted_imports(text)


def _sorted_imports(text: str) -> str:
    """Names in an import, in their order after the replacement."""

    def sort(match: re.Match[str]) -> str:
        names = (name.strip() for name in match.group(2).split(","))
        return match.group(1) + ", ".join(sorted(names, key=_import_order))

    return re.sub(r"^(from \S+ import )([^(\n]+)$", sort, text, flags=re.MULTILINE)


def _import_order(name: str) -> tuple[int, str]:
    rank = 0 if name.isupper() else 1 if name[:1].isupper() else 2
    return rank, name


def main(arguments: list[str]) -> int:
    stale = []
    for source in sorted((PACKAGE / "_async").glob("*.py")):
        target = PACKAGE / "_sync" / source.name
        text = made_from(source)
        if target.exists() and target.read_text() == text:
            continue
        stale.append(source.name)
        if "--check" not in arguments:
            target.write_text(text)
    for name in stale:
        print(f"{'differs' if '--check' in arguments else 'made'}: {name}")
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
