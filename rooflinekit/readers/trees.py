"""Draft trees from files (Medusa's and EAGLE's lists of choices) and those that come with the package."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from rooflinekit.errors import AcceptanceError, ModelError, nearest
from rooflinekit.tree import Tree, from_children, from_paths

FILE = Path(__file__).resolve().parent.parent / "data" / "trees.yaml"
KEYS = ("tree_choices", "medusa_choices", "choices")
"""Fields under which a file may hold its list of paths."""

_LARGEST = 4 * 1024**2
_MOST = 4096


@dataclass(frozen=True, slots=True)
class KnownTree:
    """A tree that comes with the package.

    Attributes
    ----------
    name
        Kebab-case.
    drafter
        Drafter it was made for.
    source
        Repository and file it stands in.
    tree
        The tree.
    """

    name: str
    drafter: str
    source: str
    tree: Tree


@cache
def known_trees() -> Mapping[str, KnownTree]:
    """All trees that come with the package, by name."""
    entries: dict[str, dict[str, Any]] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return {
        name: KnownTree(name, entry["drafter"], entry["source"], from_children(entry["children"]))
        for name, entry in entries.items()
    }


def find_tree(name_or_path: str | Path) -> Tree:
    """Tree by name, or from a file.

    Raises
    ------
    ModelError
        No such name or file, or a file that holds no tree.
    """
    known = known_trees()
    if str(name_or_path) in known:
        return known[str(name_or_path)].tree
    path = Path(name_or_path)
    if path.suffix or os.path.exists(path):  # noqa: PTH110 - False for names too long
        return read_tree(path)
    raise ModelError(
        f"tree {str(name_or_path)!r:.60} is unknown; {nearest(str(name_or_path), known)}, or give a JSON file"
    )


def read_tree(path: Path) -> Tree:
    """Read a JSON file with one list of ranks per node, bare or under one of :data:`KEYS`.

    Parameters
    ----------
    path
        For example Medusa's ``medusa_choices`` or EAGLE's ``tree_choices``; ranks count from 0.

    Raises
    ------
    ModelError
        The file cannot be read, holds no list of paths, or its paths are no tree.
    """
    try:
        if path.stat().st_size > _LARGEST:
            raise ModelError(
                f"tree file {path} has {path.stat().st_size / 1e6:.0f} MB; give a list of paths as JSON"
            )
        data = json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError as error:
        raise ModelError(
            f"tree file {path} does not exist; check the path, or give one of {', '.join(known_trees())}"
        ) from error
    except OSError as error:
        raise ModelError(f"tree file {path} cannot be read ({error.strerror}); check the file") from error
    except (ValueError, RecursionError) as error:
        raise ModelError(
            f"tree file {path} is not valid JSON ({type(error).__name__}); give a list of paths such as "
            "[[0], [0, 0], [1]]"
        ) from error
    return tree_from_choices(data, f"tree file {path}")


def tree_from_choices(data: object, where: str = "the tree") -> Tree:
    """Tree from parsed JSON: a list of paths, or an object that holds one.

    Parameters
    ----------
    data
        ``[[0], [0, 0], ...]`` or ``{"tree_choices": [...]}``.
    where
        What to call it in an error.

    Examples
    --------
    >>> tree_from_choices({"medusa_choices": [[0], [1], [0, 0]]}).nodes
    3
    """
    if isinstance(data, dict):
        held = [key for key in KEYS if key in data]
        if not held:
            raise ModelError(
                f"{where} holds none of {', '.join(KEYS)}; give a list of paths, bare or under one of these"
            )
        data = data[held[0]]
    if not isinstance(data, list) or not data:
        raise ModelError(
            f"{where} holds {data!r:.40}, not a list of paths; give one such as [[0], [0, 0], [1]]"
        )
    if len(data) > _MOST:
        raise ModelError(
            f"{where} lists {len(data)} paths; a tree of more than {_MOST} nodes is not verified at once"
        )
    for path in data:
        if not isinstance(path, list) or not all(type(rank) is int for rank in path):
            raise ModelError(f"{where} holds {path!r:.40}, not a list of ranks; give whole numbers from 0")
    try:
        return from_paths(data)
    except AcceptanceError as error:
        raise ModelError(f"{where}: {error}") from error
