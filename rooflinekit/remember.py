"""Read a file once as long as it does not change: sweeps ask for the same profile thousands of times."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from pathlib import Path
from typing import TypeVar

Read = TypeVar("Read")


def remembered(read: Callable[[Path], Read]) -> Callable[[str | Path], Read]:
    """Wrap a reader of files: the same path, size and time of change give the same (immutable) object.

    What cannot be read is not remembered: the reader itself says why, every time.
    """

    @lru_cache(maxsize=64)
    def kept(path: Path, size: int, changed_ns: int) -> Read:  # noqa: ARG001 - parts of the key
        return read(path)

    @wraps(read)
    def reader(path: str | Path) -> Read:
        path = Path(path)
        try:
            found = path.stat()
        except (OSError, ValueError):
            return read(path)
        return kept(path.absolute(), found.st_size, found.st_mtime_ns)

    return reader
