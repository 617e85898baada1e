"""From the options of a call to a case: acceptance, how drafting is run, the device."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rooflinekit.errors import RooflineError
from rooflinekit.hardware import Hardware
from rooflinekit.llm import Llm
from rooflinekit.resolve import Setup, number, setup

# `rooflinekit predict` is the command run most: what only other calls need is imported by them.
if TYPE_CHECKING:
    from rooflinekit.acceptance import Acceptance
    from rooflinekit.curve import Case
    from rooflinekit.drafters import Drafter
    from rooflinekit.speculation import Drafting


def with_acceptance(name: str | Drafter) -> tuple[str | Drafter, Acceptance | None]:
    """A drafter, and its own acceptance where it is written ``DRAFTER@ACCEPTANCE``."""
    if not isinstance(name, str) or "@" not in name:
        return name, None
    from rooflinekit.acceptance import Constant
    from rooflinekit.acceptance_options import find_acceptance

    drafter, _, own = name.rpartition("@")
    try:
        rate = float(own)
    except ValueError:
        return drafter, find_acceptance(own)
    return drafter, Constant(rate)


class Asked(NamedTuple):
    """What was asked about, and the device and target that it was resolved to."""

    case: Case
    ready: Setup


ACCEPTANCE = ("alpha", "decay", "acceptance_length", "measured_k", "survival", "acceptance")
DRAFTING = ("draft_cost", "draft_step_s", "draft_round_s", "overlap")


def asked_case(
    model: str | Path | Llm,
    hardware: str | Path | Hardware,
    drafter: str | Drafter,
    *,
    max_k: int,
    k: int | None,
    options: dict[str, Any],
) -> Asked:
    """Sort options into acceptance, drafting and device, and check the numbers."""
    from rooflinekit.acceptance_options import make_acceptance
    from rooflinekit.curve import Case
    from rooflinekit.drafting_options import make_drafter

    accepted = {name: options.pop(name) for name in ACCEPTANCE if name in options}
    run = {name: options.pop(name) for name in DRAFTING if name in options}
    dtype = options.pop("draft_dtype", "auto")
    ready = setup(model, hardware, **options)
    number(max_k, "--max-k", 1, 1024)
    if k is not None:
        number(k, "--k", 1, 1024)
    built = make_drafter(drafter, ready.target, dtype, ready.hardware)
    return Asked(
        Case(ready.machine, ready.target, built, make_acceptance(**accepted), _drafting(**run)), ready
    )


def make_case(
    model: str | Path | Llm, hardware: str | Path | Hardware, drafter: str | Drafter, **options: Any
) -> Case:
    """Device, target, drafter and acceptance as one object, for grids of your own.

    ``case.rounds(batch=, context=, k=)`` takes arrays that broadcast; :func:`rooflinekit.limits.schedule` and
    :func:`rooflinekit.limits.best_k_table` take the case itself.

    Parameters
    ----------
    model, hardware, drafter
        As in :func:`recommend`; so are the options that describe acceptance, drafting and device.

    Examples
    --------
    >>> case = make_case("llama-3.1-8b", "h100-sxm", "eagle3", alpha=0.8, calibration="datasheet")
    >>> case.rounds(batch=1.0, context=4096.0, k=4.0).speedup > 2.5
    True
    """
    return asked_case(model, hardware, drafter, max_k=1, k=None, options=options).case


def _drafting(
    draft_cost: float | None = None,
    draft_step_s: float | None = None,
    draft_round_s: float | None = None,
    overlap: float = 0.0,
) -> Drafting:
    from rooflinekit.speculation import CHAIN, Drafting

    given = {"--draft-cost": draft_cost, "--draft-step": draft_step_s, "--draft-round": draft_round_s}
    said = [name for name, value in given.items() if value is not None]
    if len(said) > 1:
        raise RooflineError(f"{' and '.join(said)} say the same thing twice; give one of them")
    for name in said:
        number(given[name] or 0.0, name, 0, 1e3, whole=False)
    number(overlap, "--overlap", 0, 1, whole=False)
    if not said and not overlap:
        return CHAIN
    return Drafting(cost=draft_cost, step_s=draft_step_s, round_s=draft_round_s, overlap=overlap)
