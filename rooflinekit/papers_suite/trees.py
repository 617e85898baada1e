"""Sources that judge draft trees: drafted level by level, all nodes verified at once, under an engine's host time.

The plain guess leaves the host out, or takes a tree for a chain of its depth, as the function says; vLLM's host
time stands in for SGLang's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from rooflinekit.acceptance import Constant
from rooflinekit.curve import Case
from rooflinekit.drafters import Drafter
from rooflinekit.forms import Floats
from rooflinekit.load import Load
from rooflinekit.papers_suite.devices import B200, CONTEXT, H100, H200, drafter_of, target_of
from rooflinekit.papers_suite.serving import BATCHES, CONTEXTS, USUAL_LENGTH, grown_rows, hosted, sign_rows
from rooflinekit.papers_suite.source import Row, read
from rooflinekit.speculation import Round
from rooflinekit.target import Target
from rooflinekit.tree import EngineShape, eagle2_shape
from rooflinekit.tree_round import tree_round
from rooflinekit.work import Machine

SHAPES = ("chain 3", "tree 6", "tree 21")
LIKE_64 = "measured hardly above batch 64"
MOE_BATCH = 8.0
NO_ACCEPTANCE = Constant(0.0)
"""A case holds one, but these rounds take their acceptance length as a number."""


def shape_of(row: Mapping[str, str]) -> EngineShape:
    """Shape of a row, in SGLang's three options."""
    return eagle2_shape(int(row["steps"]), int(row["topk"]), int(row["width"]))


def _round(
    on: Machine, target: Target, drafter: Drafter, load: Load, row: Mapping[str, str], length: float
) -> Round:
    return tree_round(Case(on, target, drafter, NO_ACCEPTANCE), load, shape_of(row), length)


def _growth(on: Machine, row: Mapping[str, str]) -> Floats:
    """Round cost over :data:`BATCHES`, over that at batch 1."""
    target, context = target_of(row["model"], tp=int(row["tp"])), CONTEXTS[row["dataset"]]
    drafter = drafter_of(row["draft"], target)
    loads = [Load(float(batch), context) for batch in BATCHES]
    costs: Floats = np.array(
        [float(_round(on, target, drafter, load, row, USUAL_LENGTH).round_cost) for load in loads]
    )
    grown: Floats = costs / costs[0]
    return grown


def _as_chain(row: dict[str, str]) -> dict[str, str]:
    """The row with a chain of the tree's depth."""
    return row | {"topk": "1", "width": str(int(row["steps"]) + 1)}


def _series(model: str) -> list[tuple[str, dict[str, str], Floats, Floats]]:
    """Name, row and growth of every series of a target in SGLang; last the guess that a tree costs its chain."""
    on, _ = hosted(H100, "sglang")
    found = []
    for row in read("sglang_trees.csv"):
        if row["model"] == model:
            ours, chain = _growth(on, row), _growth(on, _as_chain(row))
            found.append((f"{model}, {row['shape']}, {row['dataset']}", row, ours, chain))
    return found


def sglang_growth(model: str) -> list[Row]:
    """rho(B) / rho(1) of chains and trees; the plain guess is the chain's."""
    return [_flagged(one) for series in _series(model) for one in grown_rows(*series)]


def _flagged(row: Row) -> Row:
    return replace(row, flag=LIKE_64) if row.case.endswith("batch 128") else row


def sglang_signs() -> list[Row]:
    """Speedup of chains and trees by batch, from that at batch 1; the plain guess is by the chain's growth."""
    models = dict.fromkeys(row["model"] for row in read("sglang_trees.csv"))
    return [one for model in models for series in _series(model) for one in sign_rows(*series)]


def sglang_lengths() -> list[Row]:
    """Speedup where the acceptance length is printed: a chain of 3 and a tree of 21 on GSM8K."""
    machines = hosted(H100, "sglang")
    found = []
    for row in read("sglang_trees.csv"):
        if not row["acceptance_length"]:
            continue
        target, length = target_of(row["model"], tp=int(row["tp"])), float(row["acceptance_length"])
        drafter, context = drafter_of(row["draft"], target), CONTEXTS[row["dataset"]]
        for batch in BATCHES:
            load = Load(float(batch), context)
            ours, plain = (float(_round(on, target, drafter, load, row, length).speedup) for on in machines)
            measured = float(row[f"speedup_{batch}"])
            found.append(Row(f"{row['shape']}, batch {batch}", ours, measured, plain))
    return found


def dflash_trees() -> list[Row]:
    """Speedup of EAGLE-3 trees of 60 and of 10 by concurrency, acceptance as printed."""
    machines = hosted(B200, "sglang")
    target = target_of("llama-3.1-8b")
    drafter = drafter_of("eagle3", target)
    found = []
    for row in read("dflash_trees.csv"):
        load = Load(float(row["batch"]), CONTEXT)
        ours, plain = (
            float(_round(on, target, drafter, load, row, float(row["acceptance_length"])).speedup)
            for on in machines
        )
        case = f"{row['task']}, tree {row['width']}, batch {row['batch']}"
        found.append(Row(case, ours, float(row["speedup"]), plain))
    return found


def dflash_tree_choice() -> list[Row]:
    """Speedup of the tree of 60 over that of the tree of 10: which of the two to run."""
    rows = {row.case: row for row in dflash_trees()}
    found = []
    for case, large in rows.items():
        if "tree 60" not in case:
            continue
        small = rows[case.replace("tree 60", "tree 10")]
        ours, measured, plain = (
            float(getattr(large, name)) / float(getattr(small, name))
            for name in ("predicted", "measured", "plain")
        )
        found.append(Row(case.replace("tree 60", "60 over 10"), ours, measured, plain))
    return found


def moe_costs() -> list[Row]:
    """Round cost of EAGLE-3 chains and trees on Qwen3-30B-A3B at batch 8."""
    machines = hosted(H200, "sglang")
    target, load = target_of("qwen3-30b-a3b"), Load(MOE_BATCH, CONTEXT)
    drafter = drafter_of("eagle3", target)
    found = []
    for row in read("specbundle_moe.csv"):
        length = float(row["acceptance_length"])
        ours, plain = (float(_round(on, target, drafter, load, row, length).round_cost) for on in machines)
        measured = length * float(row["plain_tokens_per_s"]) / float(row["tokens_per_s"])
        case = f"{row['benchmark']}, {row['steps']} steps, top-{row['topk']}, {row['width']} rows"
        found.append(Row(case, ours, measured, plain))
    return found


def moe_growth() -> list[Row]:
    """Round cost of 6 and 8 rows over that of 4 (a chain of 3), same benchmark."""
    found, first = [], None
    for row in moe_costs():
        if row.case.endswith(" 4 rows"):
            first = row
        elif first is not None:
            ours, measured, plain = (
                float(getattr(row, name)) / float(getattr(first, name))
                for name in ("predicted", "measured", "plain")
            )
            found.append(Row(row.case, ours, measured, plain))
    return found
