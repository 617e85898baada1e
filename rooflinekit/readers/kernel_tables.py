"""Where the measured kernel tables of ``aiconfigurator-core`` are, and which of them are read.

The package (Apache-2.0, NVIDIA) carries measured times under
``systems/data/<system>/<kind>/<framework>/<version>/<table>.parquet``. Only one version of it is read, because
tables change between versions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path
from typing import Any

from rooflinekit.errors import DeviceError

PACKAGE = "aiconfigurator-core"
VERSION = "0.12.0"

DEVICES = {
    "a100_sxm": "a100-sxm4-80gb",
    "h100_sxm": "h100-sxm5-80gb",
    "h200_sxm": "h200-sxm-141gb",
    "b200_sxm": "b200-hgx-180gb",
    "b300_sxm": "b300-hgx-270gb",
    "gb200": "gb200-per-gpu",
    "gb300": "gb300-per-gpu",
    "l40s": "l40s",
    "rtx_pro_6000_server": "rtx-pro-6000-blackwell-server",
}
"""Hardware profile of each system of the package."""

SHIPPED = ("a100_sxm", "h100_sxm", "h200_sxm", "b200_sxm", "l40s", "rtx_pro_6000_server")
"""Systems whose calibrations come with the package."""

STACKS = {"trtllm": "TensorRT-LLM", "vllm": "vLLM", "sglang": "SGLang", "nccl": "NCCL"}
"""Software whose kernels were timed, by the name of its folder."""

FOLDERS = {
    "gemm": ("gemm", "gemm_perf"),
    "generation_attention": ("attention", "generation_attention_perf"),
    "context_attention": ("attention", "context_attention_perf"),
    "generation_mla": ("mla", "generation_mla_perf"),
    "moe": ("moe", "moe_perf"),
    "custom_allreduce": ("comm", "custom_allreduce_perf"),
    "nccl": ("comm", "nccl_perf"),
}
"""Folder and file of each table."""

COLUMNS = {
    "gemm": ("gemm_dtype", "m", "n", "k"),
    "generation_attention": (
        "attn_dtype",
        "kv_cache_dtype",
        "batch_size",
        "step",
        "num_heads",
        "num_key_value_heads",
        "head_dim",
        "window_size",
    ),
    "context_attention": (
        "attn_dtype",
        "kv_cache_dtype",
        "batch_size",
        "isl",
        "num_heads",
        "num_key_value_heads",
        "head_dim",
        "window_size",
    ),
    "generation_mla": ("mla_dtype", "kv_cache_dtype", "batch_size", "step", "num_heads"),
    "moe": (
        "moe_dtype",
        "num_tokens",
        "hidden_size",
        "inter_size",
        "topk",
        "num_experts",
        "moe_tp_size",
        "moe_ep_size",
        "distribution",
    ),
    "custom_allreduce": ("num_gpus", "message_size"),
    "nccl": ("op_name", "nccl_dtype", "num_gpus", "message_size"),
}
"""Columns that define a case, beside the kernel and the latency (ms)."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of one table of one system and stack: a record per row, in the package's own words."""

    name: str
    system: str
    stack: str
    version: str
    records: tuple[dict[str, Any], ...]


def data_folder() -> Path:
    """Folder of the tables.

    Raises
    ------
    DeviceError
        The package is not installed, or in another version.
    """
    spec = util.find_spec("aiconfigurator_core")
    if spec is None or not spec.submodule_search_locations:
        raise DeviceError(
            f"the measured kernel tables are in the package {PACKAGE}, which is not installed; install the "
            f"extra: pip install 'rooflinekit[data]' (or pip install {PACKAGE}=={VERSION} pyarrow)"
        )
    found = metadata.version(PACKAGE)
    if found != VERSION:
        raise DeviceError(
            f"{PACKAGE} {found} is installed, but calibrations are made from {VERSION}; "
            f"pip install {PACKAGE}=={VERSION}"
        )
    return Path(next(iter(spec.submodule_search_locations))) / "systems" / "data"


def tables_of(system: str, stack: str) -> list[Table]:
    """All tables of a stack on a system that are read."""
    if stack == "nccl":
        names: tuple[str, ...] = ("nccl",)
    else:
        names = tuple(name for name in FOLDERS if name != "nccl")
    found = (read_table(system, name, stack) for name in names)
    return [table for table in found if table is not None]


def installed() -> bool:
    """Whether the tables can be read."""
    try:
        data_folder()
    except DeviceError:
        return False
    return util.find_spec("pyarrow") is not None


def newest(system: str, table: str, stack: str) -> str | None:
    """Newest version of a stack that has the table in full, or None.

    Some versions hold only what was added to the one before: those with less than half of the rows of the
    largest are passed over.
    """
    folder, file = FOLDERS[table]
    base = data_folder() / system / folder / stack
    rows = {
        path.parent.name: _parquet().read_metadata(path).num_rows for path in base.glob(f"*/{file}.parquet")
    }
    return max((v for v in rows if 2 * rows[v] >= max(rows.values())), key=_version_key, default=None)


def _parquet() -> Any:
    try:
        from pyarrow import parquet  # noqa: PLC0415 - an optional extra
    except ImportError as error:
        raise DeviceError(
            "reading the kernel tables needs pyarrow; install the extra: pip install 'rooflinekit[data]'"
        ) from error
    return parquet


def _version_key(version: str) -> list[int]:
    # A release candidate comes before its release: rc20 of 1.3.0 sorts as 1, 3, 0, 20.
    return [int(number) for number in re.findall(r"\d+", version)]


def read_table(system: str, table: str, stack: str) -> Table | None:
    """Rows of the newest version of a table, or None where the stack has none.

    Raises
    ------
    DeviceError
        The package or pyarrow is missing.
    """
    version = newest(system, table, stack)
    if version is None:
        return None
    folder, file = FOLDERS[table]
    path = data_folder() / system / folder / stack / version / f"{file}.parquet"
    content = _parquet().read_table(path)
    wanted = [*COLUMNS[table], "kernel_source", "latency"]
    columns = {name: content.column(name).to_pylist() for name in wanted if name in content.column_names}
    # Early tables have no sliding windows and say nothing about them.
    missing = [0] * content.num_rows
    rows = zip(*(columns.get(name, missing) for name in wanted), strict=True)
    return Table(table, system, stack, version, tuple(dict(zip(wanted, row, strict=True)) for row in rows))
