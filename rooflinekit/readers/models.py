"""Models by name: presets shipped with the package, or a ``config.json`` of the user's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rooflinekit.errors import ModelError, nearest
from rooflinekit.readers.config_file import CONFIG, read_config
from rooflinekit.readers.hf_config import llm_from_config, load_llm
from rooflinekit.readers.sanity import warnings
from rooflinekit.remember import remembered

if TYPE_CHECKING:
    from rooflinekit.llm import Llm

_PRESETS = Path(__file__).parent.parent / "presets" / "models"


def model_names() -> tuple[str, ...]:
    """Return the names of the presets, sorted; no file is read."""
    return tuple(sorted(path.stem for path in _PRESETS.glob("*.json")))


def _is_path(name: str) -> bool:
    return "/" in name or "\\" in name or name.lower().endswith(".json") or name in {".", ".."}


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _locate(name_or_path: str) -> tuple[Path, bool]:
    """File of a model, and whether it is a preset's."""
    path = Path(name_or_path)
    exists = name_or_path.strip() != "" and _exists(path)
    known = name_or_path.lower() in model_names()
    if exists and (not known or not path.is_dir() or _exists(path / CONFIG)):
        return path, False
    if known:
        return _PRESETS / f"{name_or_path.lower()}.json", True
    if _is_path(name_or_path):
        last = name_or_path.rstrip("/").rpartition("/")[2]
        raise ModelError(
            f"model config {name_or_path} does not exist ({nearest(last, model_names())}); nothing is"
            " downloaded, so give a config.json on this machine or a name of `rooflinekit models list`"
        )
    raise ModelError(
        f"model {name_or_path!r} is unknown ({nearest(name_or_path, model_names())}); see `rooflinekit models"
        " list`, or give a config.json"
    )


@remembered
def _preset(path: Path) -> Llm:
    return llm_from_config(read_config(path), path.stem, str(path))


def find_llm(name_or_path: str) -> Llm:
    """Return a model by preset name or by path.

    Parameters
    ----------
    name_or_path
        A config.json, a folder that holds one, or a name of :func:`model_names`. An existing file or
        model folder goes before a preset of the same name.

    Returns
    -------
    Llm
        The model.

    Raises
    ------
    ModelError
        If there is neither, or the config cannot be used.

    Examples
    --------
    >>> find_llm("llama-3.1-8b").layers
    32
    """
    path, preset = _locate(name_or_path)
    return _preset(path) if preset else load_llm(path)


def find_warnings(name_or_path: str) -> tuple[str, ...]:
    """Return what is doubtful about a model that can be read (see ``readers.sanity``).

    Examples
    --------
    >>> find_warnings("llama-3.1-8b")
    ()
    """
    llm, (path, _) = find_llm(name_or_path), _locate(name_or_path)
    return warnings(read_config(path), llm, llm.name)
