"""Draft trees: names and options in, the best tree out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rooflinekit.app.asking import ACCEPTANCE, asked_case
from rooflinekit.errors import AcceptanceError
from rooflinekit.hardware import Hardware
from rooflinekit.llm import Llm
from rooflinekit.resolve import load_of, number

if TYPE_CHECKING:
    from rooflinekit.acceptance import Acceptance
    from rooflinekit.curve import Case
    from rooflinekit.drafters import Drafter
    from rooflinekit.load import Load
    from rooflinekit.tree import RankAcceptance
    from rooflinekit.tree_round import GivenTree, TreeAnswer

RANK_DECAY = 0.55
"""Factor from a candidate to the next best; reproduces EAGLE's 25-node tree for six models at temperature 0."""


def best_tree(
    model: str | Path | Llm,
    hardware: str | Path | Hardware,
    drafter: str | Drafter,
    *,
    batch: float = 1,
    context: float = 4096,
    rank_decay: float = RANK_DECAY,
    rank_accuracies: str | None = None,
    trees: Sequence[str] = (),
    max_nodes: int = 64,
    max_depth: int = 8,
    **options: Any,
) -> TreeAnswer:
    """Find the draft tree with the highest speedup, and judge named ones beside it.

    Parameters
    ----------
    model, hardware, drafter, batch, context
        As in :func:`recommend`; so are the remaining options. The description of acceptance is that of a chain.
    rank_decay
        Acceptance of the next best candidate over that of the better one, given that it was refused (0..1).
    rank_accuracies
        Measured accuracies of heads by rank (``medusa-vicuna-7b`` ..., or a CSV) in place of chain and decay.
    trees
        Known trees, files, or ``STEPS,TOPK,TOKENS`` as SGLang takes them.
    max_nodes, max_depth
        Largest tree to try; it is no deeper than acceptance was measured.
    """
    from rooflinekit.capacity import drafting_bytes, remedy
    from rooflinekit.engines import flags
    from rooflinekit.tree_round import TreeAnswer
    from rooflinekit.tree_round import best_tree as best_on_device

    number(max_nodes, "--max-nodes", 1, 512)
    number(max_depth, "--max-depth", 1, 32)
    number(rank_decay, "--rank-decay", 0, 1, whole=False)
    load = load_of(batch, context)
    if rank_accuracies is not None:
        options = _without_chain(options)
    elif all(options.get(name) is None for name in ACCEPTANCE):
        raise AcceptanceError(
            "a tree needs the acceptance of a chain (--alpha, --acceptance-length with --measured-k, --survival, "
            "--decay or --acceptance), or accuracies of heads (--rank-accuracies); none was given"
        )
    asked = asked_case(model, hardware, drafter, max_k=max_depth, k=None, options=options)
    case, ready = asked.case, asked.ready
    max_depth = min(max_depth, case.acceptance.max_k or max_depth)
    rates = _rates(case.acceptance, rank_decay, rank_accuracies, max_depth)
    choice = best_on_device(case, load, rates, max_nodes=max_nodes, max_depth=max_depth)
    tree = choice.tree
    extra = drafting_bytes(case.drafter, ready.target, load, tree.nodes)
    missing = remedy(ready.target, ready.hardware, float(batch), float(context) + tree.width, extra)
    return TreeAnswer(
        model=ready.target.llm.name,
        hardware=ready.hardware.name,
        drafter=case.drafter.name,
        acceptance=rates.label,
        calibration=ready.calibration.name if ready.calibration else "datasheet",
        dtype=ready.target.precision.label,
        batch=batch,
        context=context,
        fits=not missing,
        remedy=missing,
        choice=choice,
        given=tuple(_given(case, load, name, rates) for name in trees),
        rates=rates,
        flags=flags(case.drafter.name, tree.depth, topk=tree.branching, nodes=tree.width)
        if tree.nodes
        else {},
        serial_passes=case.drafter.serial_passes,
    )


def _without_chain(options: dict[str, Any]) -> dict[str, Any]:
    """Options with a chain's acceptance that is not looked at; refuses one that would be ignored."""
    given = [name for name in ACCEPTANCE if options.get(name) is not None]
    if given:
        said = " and ".join("--" + name.replace("_", "-") for name in given)
        raise AcceptanceError(f"--rank-accuracies stands in place of {said}; give one of them")
    return options | {"alpha": 0.0}


def _rates(acceptance: Acceptance, decay: float, accuracies: str | None, depth: int) -> RankAcceptance:
    from rooflinekit.readers.head_accuracies import known_head_accuracies, read_head_accuracies
    from rooflinekit.tree import from_conditional

    if accuracies is not None:
        known = known_head_accuracies()
        if accuracies in known:
            return known[accuracies]
        found = read_head_accuracies(Path(accuracies))
        if len(found) > 1:
            raise AcceptanceError(
                f"{accuracies} holds several runs ({', '.join(found)}); keep the one that is meant"
            )
        return next(iter(found.values()))
    conditional = np.asarray(acceptance.conditional_at(np.arange(1.0, depth + 1.0)))
    source = f"{acceptance.label}, rank decay {decay:g} (assumed)"
    return from_conditional([min(float(rate), 1.0) for rate in conditional], decay, source=source)


def _given(case: Case, load: Load, name: str, rates: RankAcceptance) -> GivenTree:
    from rooflinekit.readers.trees import find_tree
    from rooflinekit.tree import eagle2_shape, eagle2_tree
    from rooflinekit.tree_round import given_tree

    engine = None
    if re.fullmatch(r"\d{1,9},\d{1,9},\d{1,9}", name):
        sizes = [int(part) for part in name.split(",")]
        for size, what, largest in zip(sizes, ("STEPS", "TOPK", "TOKENS"), (32, 64, 513), strict=True):
            number(size, f"{what} of --tree {name}", 0, largest)
        engine = eagle2_shape(*sizes)
        tree, depth = eagle2_tree(rates, engine), engine.steps
        name = f"steps,topk,tokens {name}"
    else:
        tree = find_tree(name)
        depth = tree.depth
    for limit, what in (
        (case.drafter.max_k, f"{case.drafter.name} drafts {case.drafter.max_k} tokens"),
        (case.acceptance.max_k, f"acceptance was measured at {case.acceptance.max_k} positions"),
    ):
        if limit is not None and depth > limit:
            raise AcceptanceError(
                f"tree {name} is {depth} deep, {what}; choose a tree of at most {limit} levels"
            )
    return given_tree(case, load, name, tree, rates, engine)
