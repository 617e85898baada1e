"""A ``config.json`` from disk as a plain dictionary: no network, no ``transformers``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NoReturn

from rooflinekit.errors import ModelError

CONFIG = "config.json"
MODELOPT_CONFIG = "hf_quant_config.json"
_LARGEST = 16 * 1024**2
_WEIGHTS = frozenset(
    {".safetensors", ".bin", ".gguf", ".ggml", ".pt", ".pth", ".ckpt", ".onnx", ".h5", ".npz", ".engine"}
)


def _is_weights(path: Path) -> bool:
    return path.suffix.lower() in _WEIGHTS


def _refuse_weights(path: Path, what: str) -> NoReturn:
    raise ModelError(
        f"{path} is {what}, not a model's config; give the {CONFIG} that belongs to it or its folder"
    )


def config_path(path: Path) -> Path:
    """Return the file to read: the path itself, or ``config.json`` of a folder.

    Parameters
    ----------
    path
        A file or a folder.

    Returns
    -------
    Path
        An existing regular file.

    Raises
    ------
    ModelError
        If there is no such file.
    """
    try:
        if path.is_dir():
            if not (path / CONFIG).exists():
                raise ModelError(
                    f"folder {path} holds no {CONFIG}; give the folder of one model or the file itself"
                )
            path = path / CONFIG
        if path.is_file():
            return path
        exists = path.exists()
    except (OSError, ValueError) as error:
        raise ModelError(f"model config {str(path)!r} cannot be opened ({error}); check the path") from error
    if exists:
        raise ModelError(f"{path} is not a regular file; give a {CONFIG} or the folder that holds it")
    raise ModelError(
        f"model config {path} does not exist; check the path, or give a name of `rooflinekit models list`"
    )


def _read_text(path: Path) -> str:
    if _is_weights(path):
        _refuse_weights(path, "a weights file")
    try:
        size = path.stat().st_size
        if size > _LARGEST:
            _refuse_weights(path, f"a file of {size / 1e6:.0f} MB")
        data = path.read_bytes()
    except OSError as error:
        raise ModelError(
            f"model config {path} cannot be read ({error.strerror}); check the file and its permissions"
        ) from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        _refuse_weights(path, "a binary file")
    if "\0" in text:
        _refuse_weights(path, "a binary file")
    if not text.strip():
        raise ModelError(f"model config {path} is empty; download it again")
    if text.startswith("version https://git-lfs"):
        raise ModelError(f"{path} is a Git LFS pointer, not the file itself; fetch it with `git lfs pull`")
    return text


def read_config(path: Path) -> dict[str, Any]:
    """Read a ``config.json`` as plain JSON.

    Parameters
    ----------
    path
        The file, or a folder that holds a ``config.json``.

    Returns
    -------
    dict
        The object in the file, unknown fields kept.

    Raises
    ------
    ModelError
        If there is no such file or it is not one JSON object.
    """
    path = config_path(Path(path))
    text = _read_text(path)
    try:
        config = json.loads(text)
    except json.JSONDecodeError as error:
        cut = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string")
        what = "ends too early" if cut else "is not valid JSON"
        raise ModelError(
            f"model config {path} {what} (line {error.lineno}, column {error.colno}: {error.msg});"
            " correct it or download it again"
        ) from error
    except (ValueError, RecursionError) as error:
        raise ModelError(
            f"model config {path} cannot be read as JSON ({type(error).__name__}: too long a number or too"
            " deep a nesting); download it again"
        ) from error
    if not isinstance(config, dict):
        raise ModelError(
            f"model config {path} holds a JSON {type(config).__name__}, not an object;"
            f" give a model's {CONFIG}"
        )
    return config


def modelopt_section(path: Path) -> dict[str, Any] | None:
    """Return ``quantization`` of a ``hf_quant_config.json`` next to a config, where there is one.

    Parameters
    ----------
    path
        The config.json or its folder.

    Returns
    -------
    dict or None
        ``quant_algo`` (for example ``FP8`` or ``NVFP4``), ``kv_cache_quant_algo``, ``exclude_modules``.
    """
    beside = config_path(path).with_name(MODELOPT_CONFIG)
    if not beside.is_file():
        return None
    section = read_config(beside).get("quantization")
    if section is not None and not isinstance(section, dict):
        raise ModelError(
            f"{beside}: quantization is {section!r:.60}, but must be an object; correct the file"
        )
    return section
