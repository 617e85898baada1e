"""Where hardware files are, what they are called, and how one is found by name.

The shipped files are in the folder ``hardware`` (inside the package as ``_hardware``). The environment
variable ``ROOFLINEKIT_HARDWARE`` names one more folder, which is searched first.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from rooflinekit.errors import ProfileError, nearest
from rooflinekit.hardware import Hardware
from rooflinekit.profiles.hardware_file import load_hardware
from rooflinekit.profiles.node import short
from rooflinekit.remember import remembered

FOLDER_VARIABLE = "ROOFLINEKIT_HARDWARE"

# Both ways of writing a list: aliases: [a, b] and one "- a" a line.
_FLOW = re.compile(r"^aliases:[ \t]*\[([^\]]*)\]", re.MULTILINE)
_BLOCK = re.compile(r"^aliases:[ \t]*(?:#[^\n]*)?\n((?:[ \t]*(?:-[^\n]*|#[^\n]*)?\n?)+)", re.MULTILINE)
_ITEM = re.compile(r"[a-z0-9][a-z0-9-]*")


def hardware_folder() -> Path:
    """Return the folder of the shipped hardware files.

    Raises
    ------
    ProfileError
        The folder is not there: a checkout without links, or a broken installation.
    """
    folder = Path(__file__).resolve().parent.parent / "_hardware"
    if folder.is_dir():
        return folder
    if folder.is_file():
        raise ProfileError(
            f"{folder} is a text file where a link to the hardware folder should be: this checkout lost its "
            "links; run `git config core.symlinks true` and `git checkout -- .`, or install with pip"
        )
    raise ProfileError(f"{folder} is missing; install rooflinekit again")


def hardware_names() -> list[str]:
    """Return the ids of all hardware files, sorted."""
    return sorted({path.stem for path in _files()})


def hardware_aliases() -> dict[str, str]:
    """Return ``alias -> id`` over all hardware files, without parsing them in full."""
    found: dict[str, str] = {}
    for path in _files():
        for alias in _aliases(path):
            found.setdefault(alias, path.stem)
    return found


def shipped_hardware() -> list[Hardware]:
    """Load every shipped hardware file that has no faults, sorted by name."""
    return load_all(sorted(hardware_folder().glob("*.yaml")))[0]


def known_hardware() -> tuple[list[Hardware], list[str]]:
    """Load every file that is found; of those with faults, such as one still being filled in, say which."""
    return load_all(sorted(_files(), key=lambda path: path.stem))


def load_all(paths: Iterable[Path]) -> tuple[list[Hardware], list[str]]:
    """Load files; those that cannot be are named, so that one of them does not take the others along."""
    found, faulty = [], []
    for path in paths:
        try:
            found.append(load_hardware(path, named_as_file=True))
        except ProfileError:
            faulty.append(f"{path.name} is left out: see `rooflinekit hardware check {path}`")
    return found, faulty


@remembered
def _given(path: Path) -> Hardware:
    return load_hardware(path)


@remembered
def _named(path: Path) -> Hardware:
    return load_hardware(path, named_as_file=True)


def find_hardware(name_or_path: str | Path) -> Hardware:
    """Return a device by id, alias or path.

    Parameters
    ----------
    name_or_path
        A path ends in ``.yaml`` or ``.yml`` or has a separator; anything else is an id or an alias.

    Raises
    ------
    ProfileError
        No such device, or a file with faults.

    Examples
    --------
    >>> find_hardware("h100-sxm").bandwidth.value
    3352000000000.0
    """
    text = str(name_or_path)
    separators = [mark for mark in (os.sep, os.altsep) if mark]
    if text.lower().endswith((".yaml", ".yml")) or any(mark in text for mark in separators):
        return _given(Path(name_or_path))
    name = text.strip().lower().replace("_", "-")
    for folder in _folders():
        path = folder / f"{name}.yaml"
        if len(name) < 100 and re.fullmatch(r"[a-z0-9-]+", name) and path.is_file():
            return _named(path)
    for path in _files():
        if name in _aliases(path):
            return _named(path)
    known = nearest(name, {*hardware_names(), *hardware_aliases()})
    known = known if known.endswith("?") else f"{known}."
    raise ProfileError(f"hardware {short(text)} is unknown; {known} See `rooflinekit hardware list`")


def _folders() -> list[Path]:
    extra = os.environ.get(FOLDER_VARIABLE)
    if not extra:
        return [hardware_folder()]
    folder = Path(extra).expanduser()
    if not folder.is_dir():
        raise ProfileError(f"{FOLDER_VARIABLE}={extra} is not a folder; correct it or unset it")
    return [folder, hardware_folder()]


def _files() -> list[Path]:
    """All files in search order; a file hides one of the same name further back."""
    found: dict[str, Path] = {}
    for folder in _folders():
        for path in sorted(folder.glob("*.yaml")):
            found.setdefault(path.stem, path)
    return list(found.values())


def _aliases(path: Path) -> list[str]:
    """Read the aliases only; a file that cannot be read has none (loading it says why)."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return []
    match = _FLOW.search(text) or _BLOCK.search(text)
    return _ITEM.findall(re.sub(r"#[^\n]*", "", match[1])) if match else []
