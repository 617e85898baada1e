"""Files that engines wrote, opened once and read in pieces: logs grow to gigabytes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rooflinekit.errors import AcceptanceError

BLOCK = 1 << 20
"""Bytes of a log that are looked at together."""
LARGEST_DOCUMENT = 1 << 30
"""Bytes of a JSON document (it is held in memory whole, other than lines)."""
LARGEST_YAML = 1 << 22
SPECIAL = {
    b"\xff\xfe": "is UTF-16 text (PowerShell's `>` writes it); save it as UTF-8",
    b"\xfe\xff": "is UTF-16 text; save it as UTF-8",
    b"\x1f\x8b": "is compressed; unpack it first (gunzip)",
    b"PK\x03\x04": "is a zip archive; unpack it first",
    b"(\xb5/\xfd": "is compressed; unpack it first (unzstd)",
}
_JSON = re.compile(rb'\s*(\{\s*["}]|\[\s*[{\]])')
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A file whose kind is known.

    Attributes
    ----------
    path
        Where it is.
    first
        First JSON (or the YAML) document; ``None`` for text.
    many
        Whether each line is a JSON document.
    damage
        Why a file that begins like JSON cannot be read as JSON.
    """

    path: Path
    first: Any = None
    many: bool = False
    damage: str = ""

    def documents(self) -> Iterator[Any]:
        """JSON documents: the lines, the members of a list, or the one there is. A line that is cut is left out."""
        if not self.many:
            yield from self.first if isinstance(self.first, list) else [self.first]
            return
        with self.path.open("rb") as stream:
            for line in stream:
                text = _without_prefix(line)
                if not text.startswith(b"{"):
                    continue
                try:
                    yield json.loads(text)
                except (ValueError, RecursionError):
                    continue

    def lines(self, *markers: bytes) -> Iterator[str]:
        """Lines that contain one of the markers, without colours."""
        for block in _blocks(self.path):
            for line in _lines_of(block, markers):
                yield _COLOUR.sub("", line.decode("utf-8", "replace")).strip("\r\ufeff")

    def first_marker(self, markers: tuple[bytes, ...]) -> bytes | None:
        """The marker that comes first in the file."""
        for block in _blocks(self.path):
            places = {marker: block.find(marker) for marker in markers}
            found = [marker for marker, place in places.items() if place >= 0]
            if found:
                return min(found, key=places.__getitem__)
        return None


def _lines_of(block: bytes, markers: tuple[bytes, ...]) -> Iterator[bytes]:
    """Lines of a block with a marker in them: searched for, since splitting takes ten times as long."""
    ends: dict[int, int] = {}
    for marker in markers:
        place = block.find(marker)
        while place >= 0:
            end = block.find(b"\n", place)
            end = len(block) if end < 0 else end
            ends[block.rfind(b"\n", 0, place) + 1] = end
            place = block.find(marker, end)
    for start in sorted(ends):
        yield block[start : ends[start]]


def _without_prefix(line: bytes) -> bytes:
    """A line of JSON, also of an event stream (``data: {...}``)."""
    return line.strip().removeprefix(b"data:").strip()


def _blocks(path: Path) -> Iterator[bytes]:
    """Blocks that end at the end of a line; a line longer than two blocks is cut."""
    rest = b""
    with path.open("rb") as stream:
        while chunk := stream.read(BLOCK):
            whole, end, new = chunk.rpartition(b"\n")
            if end or len(rest) > BLOCK:
                yield rest + whole
                rest = new
            else:
                rest += chunk
    if rest:
        yield rest


def open_output(path: Path) -> Opened:
    """Open a file and find out whether it is JSON, JSON Lines, YAML or text.

    Raises
    ------
    AcceptanceError
        It cannot be read, is empty, compressed, or not in UTF-8.
    """
    try:
        size = path.stat().st_size
        with path.open("rb") as stream:
            head = stream.read(4096)
    except OSError as error:
        raise AcceptanceError(
            f"{path} cannot be read ({error.strerror}); give a file that an engine wrote"
        ) from error
    for start, why in SPECIAL.items():
        if head.startswith(start):
            raise AcceptanceError(f"{path} {why}")
    if not head.strip():
        raise AcceptanceError(f"{path} is empty; give a file that an engine wrote")
    if path.suffix.lower() in (".yaml", ".yml") and size <= LARGEST_YAML:
        return Opened(path=path, first=_yaml(path))
    head = head.removeprefix(b"\xef\xbb\xbf")
    if head.lstrip().startswith(b"data:") or _JSON.match(head):
        return _json(path, size)
    return Opened(path=path)


def _yaml(path: Path) -> Any:
    import yaml  # noqa: PLC0415 - few files are YAML

    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, ValueError, RecursionError):
        return None


def _json(path: Path, size: int) -> Opened:
    with path.open("rb") as stream:
        try:
            first = json.loads(_without_prefix(stream.readline().removeprefix(b"\xef\xbb\xbf")))
            rest = stream.read(4096).strip()
        except (ValueError, RecursionError):
            first, rest = None, b""
    if first is not None:
        return Opened(path=path, first=first, many=isinstance(first, dict) and bool(rest))
    if size > LARGEST_DOCUMENT:
        return Opened(path=path, damage="is too large for one JSON document; save it without its raw samples")
    try:
        return Opened(path=path, first=json.loads(path.read_text(encoding="utf-8-sig")))
    except json.JSONDecodeError as error:
        return Opened(
            path=path, damage=f"is cut off or damaged: no JSON at line {error.lineno} ({error.msg})"
        )
    except (ValueError, RecursionError):
        return Opened(path=path, damage="begins like JSON but cannot be read as JSON")
