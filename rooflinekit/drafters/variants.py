"""The same drafter with fewer bits, a smaller vocabulary or one layer less: what a cheaper draft would cost.

Each is a drafter that could be made, not one that exists: its acceptance is another, to be measured.
"""

from __future__ import annotations

from dataclasses import replace

from rooflinekit.drafters.base import Drafter
from rooflinekit.drafters.dflash import DFlash
from rooflinekit.drafters.domino import Domino
from rooflinekit.drafters.dspark import DSpark
from rooflinekit.drafters.eagle1 import Eagle
from rooflinekit.drafters.eagle3 import DRAFT_VOCAB, Eagle3
from rooflinekit.drafters.medusa import Medusa
from rooflinekit.drafters.mtp import MtpDrafter
from rooflinekit.drafters.peagle import PEagle
from rooflinekit.drafters.small_lm import SmallLm
from rooflinekit.llm import Llm
from rooflinekit.precision import CLASSES, UNQUANTISED, Precision, find_format

QUANTISED = (("8-bit weights of the drafter", "w8a16"), ("4-bit weights of the drafter", "w4a16"))
"""Weight-only formats: fewer bytes on any device, the same FLOPs."""

Labelled = tuple[str, Drafter]


def variants(drafter: Drafter, target: Llm) -> list[Labelled]:
    """Cheaper versions of a drafter, each with what was changed.

    Parameters
    ----------
    drafter
        Any; those without weights of their own have no cheaper version.
    target
        The model it drafts for, whose vocabulary is the full one.

    Returns
    -------
    list of (label, drafter)
        Weights in 8 and in 4 bits, where they have half as many again or more; a draft vocabulary of 32,000 where
        it is larger (a copy of those rows where the head was the target's; not for modules of a target); one
        layer less for drafters of a block. A model as DSpark's head is left as it is.
    """
    return [*_quantised(drafter), *_narrow(drafter, min(DRAFT_VOCAB, target.vocab)), *_shallow(drafter)]


def _quantised(drafter: Drafter) -> list[Labelled]:
    found: list[Labelled] = []
    inner = _backbone(drafter)
    for label, name in QUANTISED:
        old, new = drafter.precision, find_format(name)
        if old.compute == "fp32" or old.main.bits < 1.5 * new.bits:
            continue
        if isinstance(inner, SmallLm | Eagle | Eagle3 | PEagle | DFlash | Medusa | MtpDrafter):
            less = replace(inner, precision=_with_weights(old, name))
            found.append((label, _around(drafter, less)))
    return found


def _with_weights(old: Precision, name: str) -> Precision:
    """The same formats with the matrices in another; tables, router and vectors stay, as in checkpoints."""
    new = find_format(name)
    if old.compute == "fp16":
        new = new._replace(compute="fp16")
    kept = {one: old.of(one) for one in CLASSES if one in UNQUANTISED or old.of(one).bits <= new.bits}
    return replace(old, name=name, main=new, classes=kept)


def _narrow(drafter: Drafter, vocab: int) -> list[Labelled]:
    less: Drafter | None = None
    inner = _backbone(drafter)
    if isinstance(inner, Medusa) and inner.vocab > vocab:
        less = replace(inner, vocab=vocab)
    elif isinstance(inner, Eagle | DFlash) and inner.llm.vocab > vocab:
        less = replace(inner, llm=replace(inner.llm, vocab=vocab), own_head=True)
    elif isinstance(inner, Eagle3 | PEagle) and inner.llm.vocab > vocab:
        less = replace(inner, llm=replace(inner.llm, vocab=vocab))
    return [(f"draft vocabulary of {vocab:,}", _around(drafter, less))] if less is not None else []


def _shallow(drafter: Drafter) -> list[Labelled]:
    inner = _backbone(drafter)
    if not isinstance(inner, DFlash | PEagle) or inner.llm.layers < 2:
        return []
    *before, last = inner.llm.blocks
    blocks = (*before, replace(last, count=last.count - 1)) if last.count > 1 else tuple(before)
    less = replace(inner, llm=replace(inner.llm, blocks=blocks))
    return [(f"{less.llm.layers} layers instead of {inner.llm.layers}", _around(drafter, less))]


def _backbone(drafter: Drafter) -> Drafter:
    """The part with the layers."""
    return drafter.backbone if isinstance(drafter, DSpark | Domino) else drafter


def _around(drafter: Drafter, less: Drafter) -> Drafter:
    """A drafter with another part with the layers."""
    if isinstance(drafter, DSpark | Domino) and isinstance(less, DFlash):
        return replace(drafter, backbone=less)
    return less
