"""Strict YAML: a tree of nodes that know their line, and one error with every problem.

A loader is a function over nodes::

    root = read_document(path)
    fields = root.mapping(required=("name",), optional=("notes",))
    name = fields["name"].text()
    notes = [note.text() for note in fields["notes"].items()] if "notes" in fields else []
    root.problems.finish()  # raises ProfileError with all problems, one line each
    return Thing(name, notes)

No reader raises. A value that is not what was asked for is reported (``file:line: field.path: message``)
and a harmless stand-in comes back (``""``, ``{}``, ``[]``), so that the loader goes on and finds the
other problems; a required field that is missing is reported once and stands in the mapping as a node whose
readers return stand-ins silently. Call ``problems.finish()`` before the result is used. A loader adds its
own findings with ``node.problem(message)``.

Stricter than YAML: repeated keys, aliases, anchors, tags, several documents, empty documents and nesting
deeper than a profile needs are problems. Numbers are left to the loader as the text that was written
(``node.scalar()``), because PyYAML reads ``3.35e12`` as text and ``1_0:30`` as a number; see
:mod:`rooflinekit.profiles.quantity`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from rooflinekit.errors import ProfileError
from rooflinekit.profiles.node import Node, Problems, short

MAX_BYTES = 4_000_000
MAX_DEPTH = 20

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_document(path: str | Path) -> Node:
    """Read one YAML file whose top level is a mapping.

    Parameters
    ----------
    path
        The file; it stands in messages as given.

    Raises
    ------
    ProfileError
        The file cannot be read, is not YAML, is empty or is not a mapping. Smaller problems wait in
        ``root.problems`` for :meth:`Problems.finish`.
    """
    return parse_document(_read_text(Path(path)), str(path))


def parse_document(text: str, file: str) -> Node:
    r"""Read the text of a YAML file; see :func:`read_document`.

    Parameters
    ----------
    text
        The YAML.
    file
        Name for messages.

    Examples
    --------
    >>> root = parse_document("name: a100\npeak: {bf16: 312 TFLOP/s}", "a.yaml")
    >>> root.entries()["peak"].entries()["bf16"].path
    'peak.bf16'
    >>> root.mapping(required=["nane"])["nane"].text()
    ''
    >>> root.problems.finish()
    Traceback (most recent call last):
        ...
    rooflinekit.errors.ProfileError: a.yaml:1: name: is not a field here; did you mean nane?
    a.yaml:1: nane: is missing; add it
    a.yaml:2: peak: is not a field here; known: nane
    """
    problems = Problems(file)
    builder = _Builder(problems)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            builder.feed(event)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        problems.fail(line, "", _syntax(text, line, error.problem or "unknown syntax"))
    except (yaml.YAMLError, ValueError, RecursionError, OverflowError) as error:
        reason = " ".join(str(getattr(error, "reason", None) or error).split())
        problems.fail(1, "", f"is not YAML ({reason}); save it as plain UTF-8 text")
    root = builder.root
    if root is None or (root.is_missing() and not problems.found) or root.content == "":
        problems.fail(1, "", "is empty; write a mapping of fields that starts with 'schema: 1'")
    if not root.is_mapping():
        problems.fail(
            root.line, "", "is not a mapping; write 'field: value' lines that start with 'schema: 1'"
        )
    return root


def require_schema(root: Node, version: int) -> None:
    """Refuse a file written for another version of its schema, before anything else is said about it.

    Parameters
    ----------
    root
        Root of a document; without a ``schema`` field nothing happens here (it is then a missing field).
    version
        The version that this program reads.

    Raises
    ------
    ProfileError
        The version is another one.
    """
    node = root.entries().get("schema")
    if node is None:
        return
    written = node.scalar()
    if written == str(version):
        return
    newer = written.isascii() and written.isdigit() and len(written) < 9 and int(written) > version
    step = "upgrade rooflinekit" if newer else f"bring the fields up to date and write 'schema: {version}'"
    said = f"{short(written)} is not a version this program reads ({version}); {step}"
    root.problems.fail(node.line, "schema", said)


def _read_text(path: Path) -> str:
    try:
        if path.is_dir():
            raise ProfileError(f"{path} is a folder; name a YAML file in it")
        if not path.is_file():
            raise ProfileError(f"{path} does not exist or is not a file; check the path")
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ProfileError(f"{str(path)!r} cannot be read ({reason}); check path and permissions") from None
    if len(raw) > MAX_BYTES:
        raise ProfileError(f"{path} is larger than {MAX_BYTES // 1_000_000} MB; is it a profile?")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ProfileError(f"{path}:{line}: is not UTF-8 text; save it as UTF-8") from None


def _syntax(text: str, line: int, problem: str) -> str:
    lines = text.splitlines()
    written = lines[line - 1] if line <= len(lines) else ""
    if "\t" in written[: len(written) - len(written.lstrip())]:
        return "is indented with a tab; YAML wants spaces"
    return f"is not YAML ({problem}); check colons, quotes, brackets and indentation here"


def _yaml_type(value: str) -> str:
    """Name what YAML 1.1 makes of a plain scalar: ``str``, ``int``, ``float``, ``timestamp`` ..."""
    for tag, pattern in yaml.SafeLoader.yaml_implicit_resolvers.get(value[:1], []):
        if pattern.match(value):
            return str(tag).rsplit(":", 1)[-1]
    return "str"


class _Frame:
    """An open mapping or list; ``key`` waits for its value, ``dropped`` takes values nobody wants."""

    __slots__ = ("dropped", "key", "node")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.key: Node | None = None
        self.dropped = False


class _Builder:
    """Make nodes from parser events: iterative, so that deep nesting cannot exhaust the stack."""

    def __init__(self, problems: Problems) -> None:
        self.problems = problems
        self.root: Node | None = None
        self._stack: list[_Frame] = []
        self._documents = 0

    def feed(self, event: Any) -> None:
        line = event.start_mark.line + 1
        if isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                self.problems.fail(line, "", "starts a second document; keep one document in a file")
        elif isinstance(event, yaml.CollectionEndEvent):
            self._stack.pop()
        elif isinstance(event, yaml.NodeEvent):
            node = self._node(event, line)
            self._attach(node)
            self._refuse_extras(event, node)
            if isinstance(event, yaml.CollectionStartEvent):
                self._open(node)

    def _node(self, event: Any, line: int) -> Node:
        if isinstance(event, yaml.MappingStartEvent):
            return Node({}, line, "", self.problems)
        if isinstance(event, yaml.SequenceStartEvent):
            return Node([], line, "", self.problems)
        if isinstance(event, yaml.ScalarEvent):
            plain = event.implicit[0] and not event.style
            return Node(event.value, line, "", self.problems, _yaml_type(event.value) if plain else "str")
        return Node(None, line, "", self.problems)

    def _open(self, node: Node) -> None:
        if len(self._stack) >= MAX_DEPTH:
            self.problems.fail(node.line, "", "is nested too deeply for a profile; check the brackets")
        self._stack.append(_Frame(node))

    def _attach(self, node: Node) -> None:
        if not self._stack:
            self.root = node
            return
        frame = self._stack[-1]
        parent = frame.node
        content = parent.content
        if isinstance(content, list):
            node.path = f"{parent.path}[{len(content)}]"
            content.append(node)
        elif frame.dropped:
            frame.dropped = False
            node.path = parent.path
        elif frame.key is None:
            self._take_key(frame, node)
        elif isinstance(content, dict):
            # The line of the field name: a value may start further down.
            node.path, node.line = frame.key.path, frame.key.line
            content[frame.key.scalar()] = node
            frame.key = None

    def _take_key(self, frame: _Frame, key: Node) -> None:
        parent, name = frame.node, key.content
        key.path = parent.path
        content = parent.content
        if not isinstance(name, str) or not name:
            key.problem("has a field name that is not plain text; write 'field: value'")
            frame.dropped = True
            return
        shown = name if len(name) <= 60 and name.isprintable() else short(name)
        key.path = f"{parent.path}.{shown}" if parent.path else shown
        if isinstance(content, dict) and name in content:
            key.problem(f"is written twice (first in line {content[name].line}); keep one")
            frame.dropped = True
            return
        frame.key = key

    def _refuse_extras(self, event: Any, node: Node) -> None:
        if isinstance(event, yaml.AliasEvent):
            node.problem(f"is an alias (*{event.anchor}); write the value out")
            return
        if event.anchor is not None:
            node.problem(f"has an anchor (&{event.anchor}); remove it")
        if event.tag is not None:
            node.problem(f"has a tag ({short(event.tag)}); remove it")
