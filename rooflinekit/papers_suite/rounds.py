"""Sources that judge the round: draft, verify and acceptance were measured in the runs that were timed."""

from __future__ import annotations

from rooflinekit.papers_suite.source import Row, Source, read
from rooflinekit.speculation import Round

CAST = "https://github.com/js-lee-AI/CAST"
SPECBUNDLE = "https://github.com/sgl-project/SpecForge"
MLX = "https://github.com/apple/ml-recurrent-drafter"


def cast() -> list[Row]:
    """Speedup from measured T_draft, T_verify and acceptance; the plain guess is T_verify = T_p."""
    found = []
    for row in read("cast.csv"):
        length, draft = float(row["acceptance_length"]), float(row["draft_cost"])
        k = float(row["width"]) - 1.0
        ours, plain = (
            Round(k=k, acceptance_length=length, draft_s=draft, verify_s=verify, decode_s=1.0)
            for verify in (float(row["verify_ratio"]), 1.0)
        )
        where = f"{row['device']}, {row['model']}, {row['task']}, T {row['temperature']}"
        case = f"{where}, {row['shape']} of {k:g}"
        measured = float(row["plain_ms"]) / float(row["ms"])
        found.append(Row(case, float(ours.speedup), measured, plain=float(plain.speedup)))
    return found


def cast_one_setting() -> list[Row]:
    """The device and model whose probes and runs fit together best."""
    return [row for row in cast() if row.case.startswith("Blackwell RTX PRO 6000, Qwen3-8B,")]


def redrafter() -> list[Row]:
    """Speedup at K = 5 from round times at K = 3 and 4: drafts and verify together are linear in K.

    The plain guess is a round that costs one plain step.
    """
    by_device: dict[str, dict[int, dict[str, str]]] = {}
    for row in read("redrafter_mlx.csv"):
        by_device.setdefault(row["device"], {})[int(row["k"])] = row
    found = []
    for device, rows in by_device.items():
        three, four = (_round_ms(rows[k]) for k in (3, 4))
        last = rows[5]
        length = float(last["tokens"]) / float(last["rounds"])
        plain_ms = float(last["plain_ms"])
        step = plain_ms / float(last["tokens"])
        slope = four - three
        one = Round(
            k=5.0, acceptance_length=length, draft_s=5.0 * slope, verify_s=three - 3.0 * slope, decode_s=step
        )
        measured = plain_ms / (float(last["total_ms"]) - float(last["prefill_ms"]))
        found.append(Row(device, float(one.speedup), measured, plain=length))
    return found


def _round_ms(row: dict[str, str]) -> float:
    return (float(row["total_ms"]) - float(row["prefill_ms"])) / float(row["rounds"])


def two_drafters() -> list[Row]:
    """Speedup of one drafter from its acceptance and the round cost of another of the same shape.

    The plain guess is the other one's speedup.
    """
    pairs: dict[tuple[str, str], dict[str, dict[str, str]]] = {}
    for row in read("specbundle.csv"):
        pairs.setdefault((row["benchmark"], row["k"]), {})[row["draft"]] = row
    found = []
    for (benchmark, k), drafts in pairs.items():
        known, other = drafts["original"], drafts["specforge"]
        cost = float(known["acceptance_length"]) / _speedup(known)
        one = Round(
            k=float(k),
            acceptance_length=float(other["acceptance_length"]),
            draft_s=0.0,
            verify_s=cost,
            decode_s=1.0,
        )
        case = f"{benchmark}, K {k}"
        found.append(Row(case, float(one.speedup), _speedup(other), plain=_speedup(known)))
    return found


def _speedup(row: dict[str, str]) -> float:
    return float(row["tokens_per_s"]) / float(row["plain_tokens_per_s"])


SOURCES = (
    Source(
        name="CAST, RTX PRO 6000",
        quantity="speedup, Qwen3-8B",
        url=CAST,
        formula="Round.speedup, measured T_q, T_v",
        judged="worst",
        tolerance=0.05,
        limits="T_q and T_v are measured, not predicted",
        rows=cast_one_setting,
    ),
    Source(
        name="CAST, all settings",
        quantity="speedup",
        url=CAST,
        formula="Round.speedup, measured T_q, T_v",
        judged="mean",
        tolerance=0.15,
        limits="too high where an eager host loop (sampling, cache, tree) adds time outside the two passes; on the "
        "H100 with MT-Bench acceptance is averaged differently",
        rows=cast,
    ),
    Source(
        name="ReDrafter on MLX",
        quantity="speedup at K = 5",
        url=MLX,
        formula="Round.speedup, T linear in K",
        judged="worst",
        tolerance=0.03,
        limits="three GPUs without much compute, where every further row costs 0.04 to 0.09 steps; what a row costs "
        "is taken from K = 3 and 4, not predicted",
        rows=redrafter,
    ),
    Source(
        name="SpecBundle, 8B",
        quantity="second drafter",
        url=SPECBUNDLE,
        formula="Round.speedup, round cost of the first",
        judged="median",
        tolerance=0.02,
        limits="that the round cost does not depend on acceptance, not how large it is; throughput includes prefill",
        rows=two_drafters,
    ),
)
