"""Nodes of a YAML file that know their line, and the collector of everything wrong with the file.

No reader of a node raises. A value that is not what was asked for is reported
(``file:line: field.path: message``) and a harmless stand-in comes back (``""``, ``{}``, ``[]``), so that a
loader goes on and finds the other problems.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

from rooflinekit.errors import ProfileError, nearest

MAX_SHOWN = 40
TODO = "TODO"
"""What a skeleton has where something is to be filled in; refused wherever it is read."""
_YAML_TYPES = {
    "int": "a number",
    "float": "a number",
    "timestamp": "a date",
    "bool": "true or false",
    "null": "nothing",
    "merge": "a merge key",
    "value": "a value key",
}


def short(text: str) -> str:
    """Quote a value for a message, cut when it is long."""
    return repr(text if len(text) <= 60 else text[:57] + "...")


class Problems:
    """All problems of one file.

    Parameters
    ----------
    file
        The file as the user wrote it.
    """

    __slots__ = ("file", "found")

    def __init__(self, file: str) -> None:
        self.file = file
        self.found: list[tuple[int, str]] = []

    def add(self, line: int, path: str, message: str) -> None:
        """Note one problem; ``path`` is the dotted field, empty for the whole document."""
        found = (line, f"{self.file}:{line}: {path}: {message}" if path else f"{self.file}:{line}: {message}")
        if found not in self.found:
            self.found.append(found)

    def finish(self) -> None:
        """Raise what was noted.

        Raises
        ------
        ProfileError
            At least one problem; the text is one problem a line, in the order of the file.
        """
        if not self.found:
            return
        lines = [text for _, text in sorted(self.found, key=lambda found: found[0])]
        if len(lines) > MAX_SHOWN:
            lines = [*lines[:MAX_SHOWN], f"{self.file}: and {len(lines) - MAX_SHOWN} more problems"]
        raise ProfileError("\n".join(lines))

    def fail(self, line: int, path: str, message: str) -> NoReturn:
        """Note one problem after which reading on makes no sense, and raise."""
        self.add(line, path, message)
        self.finish()
        raise AssertionError  # pragma: no cover - finish raises


class Node:
    """One value of a document.

    Attributes
    ----------
    path
        Dotted field, for example ``peak.bf16.value`` or ``aliases[0]``; empty for the root.
    line
        Line in the file, from 1.
    problems
        The collector of the document.
    content
        What the node holds: text of a scalar, list, dict, or None for a stand-in.
    yaml_type
        What YAML 1.1 makes of a plain scalar: ``str``, ``int``, ``float``, ``timestamp`` ...
    """

    __slots__ = ("content", "line", "path", "problems", "yaml_type")

    def __init__(
        self, content: Any, line: int, path: str, problems: Problems, yaml_type: str = "str"
    ) -> None:
        self.content: str | list[Node] | dict[str, Node] | None = content
        self.yaml_type = yaml_type
        self.line = line
        self.path = path
        self.problems = problems

    def problem(self, message: str) -> None:
        """Report a problem with this value."""
        self.problems.add(self.line, self.path, message)

    def is_mapping(self) -> bool:
        """Tell whether this is a mapping, without reporting anything."""
        return isinstance(self.content, dict)

    def is_missing(self) -> bool:
        """Tell whether this stands for a required field that is not there (already reported)."""
        return self.content is None

    def entries(self) -> dict[str, Node]:
        """Return an open mapping: any field name, each once."""
        if isinstance(self.content, dict):
            return self.content
        self._expected("a mapping of fields")
        return {}

    def mapping(self, required: Iterable[str] = (), optional: Iterable[str] = ()) -> dict[str, Node]:
        """Return a closed mapping; report unknown and missing fields.

        Returns
        -------
        dict
            The known fields that are there, and a silent stand-in for each required one that is not.
        """
        required = tuple(required)
        known = (*required, *optional)
        if not isinstance(self.content, dict):
            self._expected("a mapping of fields")
            return {name: self._standin(name) for name in required}
        for name, node in self.content.items():
            if name not in known:
                node.problem(f"is not a field here; {nearest(name, known)}")
        found = {name: node for name, node in self.content.items() if name in known}
        for name in required:
            if name not in found:
                found[name] = self._standin(name)
                found[name].problem("is missing; add it")
        return found

    def items(self) -> list[Node]:
        """Return the elements of a list."""
        if isinstance(self.content, list):
            return self.content
        self._expected("a list")
        return []

    def scalar(self) -> str:
        """Return the text of a single value as it was written, whatever YAML would make of it."""
        if isinstance(self.content, str):
            return self.content
        self._expected("a single value")
        return ""

    def text(self) -> str:
        """Return non-empty text; numbers, dates, true and false want quotes."""
        if not isinstance(self.content, str):
            self._expected("text")
            return ""
        if self.yaml_type != "str" and self.content:
            shown = short(self.content)
            self.problem(f"{shown} is read by YAML as {_YAML_TYPES[self.yaml_type]}; write it in quotes")
            return ""
        if not self.content.strip():
            self.problem("is empty; write some text")
            return ""
        if self.content.strip() == TODO:
            self.problem("is still to be filled in")
            return ""
        return self.content

    def choice(self, names: Iterable[str], what: str) -> str:
        """Return one of a few words.

        Parameters
        ----------
        names
            The words.
        what
            What they are, for the message, for example ``a kind of evidence``.
        """
        word, known = self.scalar(), list(names)
        if word not in known and isinstance(self.content, str):
            self.problem(f"{short(word)} is not {what}; use {', '.join(known[:-1])} or {known[-1]}")
        return word

    def _standin(self, name: str) -> Node:
        return Node(None, self.line, f"{self.path}.{name}" if self.path else name, self.problems)

    def _expected(self, wanted: str) -> None:
        if isinstance(self.content, str):
            found = short(self.content) if self.content else "nothing"
        elif isinstance(self.content, dict):
            found = "a mapping"
        elif isinstance(self.content, list):
            found = "a list"
        else:
            return
        self.problem(f"is {found}; write {wanted}")
