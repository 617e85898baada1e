"""Readers of what inference engines print: acceptance and times, with each engine's definitions and their traps.

One file for each kind of output, with a :class:`~rooflinekit.readers.engine_outputs.output.Reader` named
``READER``; :data:`READERS` lists them. ``read_output`` finds the one whose file it is.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

from rooflinekit.errors import AcceptanceError
from rooflinekit.readers.engine_outputs import (
    aiperf,
    golden,
    guidellm,
    llama_cpp_log,
    llama_cpp_timings,
    request_records,
    sglang_log,
    sglang_metrics,
    sglang_requests,
    sglang_serving,
    sglang_speculative,
    trtllm_bench,
    trtllm_stats,
    vllm_bench,
    vllm_log,
    vllm_metrics,
    vllm_offline,
)
from rooflinekit.readers.engine_outputs.files import Opened, open_output
from rooflinekit.readers.engine_outputs.output import Asked, EngineOutput, Reader, Run

__all__ = [
    "READ",
    "READERS",
    "EngineOutput",
    "Reader",
    "Run",
    "detect",
    "is_output",
    "names_files",
    "read_output",
]

READERS: tuple[Reader, ...] = (
    vllm_metrics.READER,
    vllm_log.READER,
    vllm_offline.READER,
    request_records.READER,
    sglang_requests.READER,
    sglang_speculative.READER,
    sglang_serving.READER,
    sglang_log.READER,
    sglang_metrics.READER,
    trtllm_stats.READER,
    trtllm_bench.READER,
    aiperf.READER,
    llama_cpp_timings.READER,
    llama_cpp_log.READER,
    golden.READER,
    guidellm.READER,
    vllm_bench.READER,
)
"""All readers; of two that recognise a JSON document the first has it."""


READ = (
    "read are metrics, logs and benchmark results of vLLM, SGLang, TensorRT-LLM and llama.cpp, aiperf and "
    "guidellm reports, and InferenceX golden curves (docs/engine-outputs.md)"
)
"""What is read, in one clause."""


def detect(path: str | Path) -> Reader:
    """The reader of a file.

    Raises
    ------
    AcceptanceError
        The file cannot be read, or no reader recognises it.
    """
    return _recognised(open_output(Path(path)))


def is_output(path: str | Path) -> bool:
    """Whether a readable file is an engine's output."""
    return _reader(open_output(Path(path))) is not None


def _reader(file: Opened) -> Reader | None:
    if file.first is not None:
        found = next((one for one in READERS if one.recognises(file.first)), None)
        if found is not None or not file.many:
            return found
    marker = file.first_marker(tuple(mark for one in READERS for mark in one.markers))
    return next((one for one in READERS if marker in one.markers), None)


def _recognised(file: Opened) -> Reader:
    found = _reader(file)
    if found is None:
        said = file.damage or "is no engine output that is recognised"
        raise AcceptanceError(f"{file.path} {said}; {READ}")
    return found


def _paths(text: str) -> tuple[tuple[Path, ...], str]:
    """Files and part of ``A,B#part``; a name that exists as it is written stays whole."""
    name, part = text, ""
    if not os.path.exists(text) and "#" in text:  # noqa: PTH110 - False for names too long
        name, _, part = text.rpartition("#")
    several = not os.path.exists(name) and "," in name  # noqa: PTH110
    return tuple(Path(one.strip()) for one in (name.split(",") if several else [name]) if one.strip()), part


def names_files(text: str) -> bool:
    """Whether a text names existing files, alone, with commas, or with a part."""
    paths, _ = _paths(text)
    return bool(paths) and any(os.path.exists(one) for one in paths)  # noqa: PTH110


def read_output(name: str | Path, k: int | None = None, batch: float | None = None) -> EngineOutput:
    r"""Read what an engine wrote.

    Parameters
    ----------
    name
        A file; two scrapes of counters as ``BEFORE,AFTER``; one of several things in a file as ``FILE#part``.
    k
        K, where the file does not have it.
    batch
        Concurrency, where the file holds several.

    Raises
    ------
    AcceptanceError
        The file cannot be read, is not recognised, is cut off or contradicts itself; or it leaves K open.

    Examples
    --------
    >>> import tempfile
    >>> text = 'vllm:spec_decode_num_drafts_total 10\nvllm:spec_decode_num_draft_tokens_total 20\n'
    >>> text += 'vllm:spec_decode_num_accepted_tokens_total 15\n'
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "a.prom").write_text(text)
    ...     found = read_output(Path(folder) / "a.prom")
    >>> found.engine, found.k, found.acceptance_length
    ('vLLM', 2, 2.5)
    """
    paths, part = _paths(str(name))
    stamps = []
    for path in paths:
        try:
            found = path.stat()
            stamps.append((found.st_size, found.st_mtime_ns))
        except (OSError, ValueError):
            stamps.append((-1, -1))
    return _read(paths, tuple(stamps), part, k, batch)


@lru_cache(maxsize=32)
def _read(
    paths: tuple[Path, ...],
    stamps: tuple[tuple[int, int], ...],  # noqa: ARG001 - a changed file is read again
    part: str,
    k: int | None,
    batch: float | None,
) -> EngineOutput:
    files = tuple(open_output(path) for path in paths)
    readers = [_recognised(file) for file in files]
    if len({one.name for one in readers}) != 1:
        kinds = " and ".join(dict.fromkeys(one.name for one in readers)) or "nothing"
        raise AcceptanceError(
            f"{','.join(map(str, paths))}: {kinds} do not belong together; give one kind of file"
        )
    return readers[0].read(files, Asked(part=part, k=k, batch=batch))
