"""Draft trees on a device: the best one, and a round with a given one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from rooflinekit.curve import Case, Floats
from rooflinekit.load import Load
from rooflinekit.speculation import Drafting, Round, round_of
from rooflinekit.tree import EngineShape, RankAcceptance, Tree
from rooflinekit.tree_choice import TreeChoice, choose_tree
from rooflinekit.work import host_launches, plan_time_s


@dataclass(frozen=True, slots=True)
class DraftTimes:
    """Drafting of a case at a load: what a round pays once, and for each level drafted.

    Attributes
    ----------
    case, load
        Device, target, drafter; batch and context.
    refresh
        Tokens per sequence whose cache entries the first pass fills.
    """

    case: Case
    load: Load
    refresh: float

    @property
    def plain_s(self) -> float:
        """A plain step, host included (s)."""
        machine, load = self.case.machine, self.load
        decode_s = self.case.target.step_s(machine, load.batch, load.context, 1.0)
        return float(decode_s + machine.host_s(load.batch))

    def _all_s(self, k: float, rows: Any) -> Any:
        """Drafting of k levels, host included (s)."""
        case, load = self.case, self.load
        if case.drafting.given:
            return case.drafting.given_s(k, self.plain_s) + 0.0 * rows
        plan = case.drafter.plan(
            k=k,
            batch=load.batch,
            context=load.context,
            refresh=self.refresh,
            rows=rows,
            tp=case.target.tp,
        )
        own_s = case.drafter.host_s(k=k, batch=load.batch, context=load.context)
        host_s = host_launches(plan) * case.machine.pass_host_s + own_s
        return plan_time_s(plan, case.machine) + host_s

    def level_s(self, rows: Floats) -> Floats:
        """One level more, drafted by a pass of so many rows per sequence (s)."""
        return np.maximum(np.asarray(self._all_s(2.0, rows) - self._all_s(1.0, 1.0)) + 0.0 * rows, 0.0)

    @property
    def once_s(self) -> float:
        """What the first level costs beyond a later level of one row (s)."""
        return float(self._all_s(1.0, 1.0) - self.level_s(np.ones(1))[0])


def best_tree(
    case: Case, load: Load, rates: RankAcceptance, *, max_nodes: int = 64, max_depth: int = 8
) -> TreeChoice:
    """Find the tree with the highest speedup on the device (see :func:`~rooflinekit.tree_choice.choose_tree`).

    Parameters
    ----------
    case
        Machine, target, drafter, and how rounds are run (a given time per token is that of a level, whatever its
        rows); its acceptance is not used.
    load
        Batch and context.
    rates
        Rank acceptance.
    max_nodes, max_depth
        Largest tree to try; a drafter's trained block limits the depth.
    """
    depth = min(max_depth, case.drafter.max_k or max_depth)
    refresh = 1.0
    # The first pass runs over the tokens that the last round accepted, which depends on the tree: twice settles it.
    for _ in range(2):
        choice = _choose(DraftTimes(case, load, refresh), rates, max_nodes, depth)
        refresh = choice.acceptance_length
    return choice


def _choose(times: DraftTimes, rates: RankAcceptance, max_nodes: int, max_depth: int) -> TreeChoice:
    machine, target, load = times.case.machine, times.case.target, times.load
    batch = float(load.batch)
    return choose_tree(
        rates,
        verify_s=lambda rows: np.asarray(target.step_s(machine, batch, load.context, rows)),
        plain_s=times.plain_s,
        draft_pass_s=times.level_s,
        draft_once_s=times.once_s,
        host_s=lambda rows: np.asarray(machine.host_s(batch * rows) + machine.round_host_s),
        overlap=times.case.drafting.overlap,
        max_nodes=max_nodes,
        max_depth=max_depth,
    )


def tree_round(case: Case, load: Load, shape: Tree | EngineShape, acceptance_length: float) -> Round:
    """A round with a given tree: its levels drafted one after the other, all its nodes verified at once."""
    times = DraftTimes(case, load, acceptance_length)
    rows = np.array(shape.draft_rows, dtype=float)
    draft_s = times.once_s + float(times.level_s(rows).sum())
    round_ = round_of(
        case.machine,
        case.target,
        case.drafter,
        load,
        acceptance_length,
        k=float(shape.depth),
        drafting=Drafting(width=float(shape.width), round_s=draft_s),
    )
    return replace(round_, overlap=case.drafting.overlap)


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenTree:
    """A tree that was asked about, beside the best one."""

    name: str
    nodes: int
    width: int
    depth: int
    acceptance_length: float
    speedup: float
    round_cost: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeAnswer:
    """The best tree, and those asked about beside it.

    Attributes
    ----------
    model, hardware, drafter, acceptance, calibration, dtype
        What was asked about.
    batch, context
        Sequences; tokens in the cache.
    fits, remedy
        Whether weights, caches and drafter fit into memory, and what would where they do not.
    choice
        The best tree, and the best chain under the same times.
    given
        Trees that were named.
    rates
        Rank acceptance that they were judged by, for :func:`rooflinekit.plot.tree.draw_tree`.
    flags
        Options by engine for the best tree; an engine that builds its own keeps only size and depth.
    serial_passes
        Passes of a round that follow one another, as in ``compare``; where none grows with K, the rows of later
        draft passes mean nothing.
    """

    model: str
    hardware: str
    drafter: str
    acceptance: str
    calibration: str
    dtype: str
    batch: float
    context: float
    fits: bool
    remedy: str
    choice: TreeChoice
    given: tuple[GivenTree, ...]
    rates: RankAcceptance
    flags: Mapping[str, str]
    serial_passes: str

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        plain = {
            name: getattr(self, name) for name in self.__slots__ if name not in ("choice", "given", "rates")
        }
        return plain | self.choice.as_dict() | {"given": [asdict(one) for one in self.given]}


def given_tree(
    case: Case, load: Load, name: str, tree: Tree, rates: RankAcceptance, engine: EngineShape | None = None
) -> GivenTree:
    """Judge a tree; ``engine`` gives the cost where an engine drafts more rows than the tree keeps."""
    length = rates.expected(tree)
    found = tree_round(case, load, engine or tree, length)
    return GivenTree(
        name=name,
        nodes=tree.nodes,
        width=tree.width,
        depth=tree.depth,
        acceptance_length=length,
        speedup=float(found.speedup),
        round_cost=float(found.round_cost),
    )
