"""Which profile fits a GPU that the driver describes, and in what it differs.

Pure functions over facts; asking the driver is in :mod:`rooflinekit.microbench.inventory`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from rooflinekit.hardware import Hardware
from rooflinekit.units import render

MEMORY_TOLERANCE = 0.02
"""Context and reserved memory take about 1 % between what a driver and what CUDA reports."""
POWER_TOLERANCE = 0.01


@dataclass(frozen=True, slots=True)
class Facts:
    """What a driver says about one GPU; None where it does not.

    Attributes
    ----------
    name
        As nvidia-smi or torch prints it.
    memory_bytes
        Total or visible memory (B).
    units
        Streaming multiprocessors or compute units.
    power_limit_w
        Enforced limit of the board (W).
    """

    name: str
    memory_bytes: float | None = None
    units: float | None = None
    power_limit_w: float | None = None


@dataclass(frozen=True, slots=True)
class Match:
    """The profile of a GPU.

    Attributes
    ----------
    profile
        The profile that fits; None when there is none.
    differences
        What is not as in the profile, one sentence each.
    similar
        Names of profiles of GPUs that are called nearly the same, when none fits.
    """

    profile: Hardware | None
    differences: tuple[str, ...] = ()
    similar: tuple[str, ...] = ()


def match(facts: Facts, known: Sequence[Hardware]) -> Match:
    """Find the profile of a GPU by the name its driver gives it.

    A name that only resembles a known one (a laptop part, a Ti, another memory size) is another part: it
    gets no profile, but the similar ones are named. Of several profiles with one name the nearest in
    memory is taken.

    Parameters
    ----------
    facts
        What the driver says.
    known
        The profiles to choose from.
    """
    wanted = _plain(facts.name)
    fitting = [one for one in known if wanted in _names(one)]
    if not fitting:
        return Match(None, similar=_similar(wanted, known))
    best = min(fitting, key=lambda one: abs(_memory_gap(facts, one)))
    return Match(best, differences(facts, best))


def differences(facts: Facts, profile: Hardware) -> tuple[str, ...]:
    """Say in what a GPU differs from a profile; what the driver did not tell is not compared."""
    found: list[str] = []
    if facts.memory_bytes is not None and abs(_memory_gap(facts, profile)) > MEMORY_TOLERANCE:
        more = (
            f"{abs(_memory_gap(facts, profile)):.0%} {'more' if _memory_gap(facts, profile) > 0 else 'less'}"
        )
        there = render(_nearest_capacity(facts, profile), "B")
        found.append(f"memory is {render(facts.memory_bytes, 'B')}, {more} than the profile's {there}")
    if facts.units is not None and profile.units is not None and facts.units != profile.units.value:
        found.append(f"it shows {facts.units:g} units, the profile has {profile.units.value:g}")
    limit, tdp = facts.power_limit_w, profile.tdp
    if limit is not None and tdp is not None and abs(limit / tdp.value - 1) > POWER_TOLERANCE:
        slower = ": matrix products may run slower" if limit < tdp.value else ""
        found.append(f"the power limit is {limit:g} W, the profile has {tdp.value:g} W{slower}")
    return tuple(found)


def _names(one: Hardware) -> set[str]:
    return {_plain(name) for name in (*one.driver_names, one.title)}


def _plain(name: str) -> str:
    """Driver name without maker, MIG slice and odd spaces.

    >>> _plain("NVIDIA A100-SXM4-80GB MIG 3g.40gb"), _plain("Tesla T4")
    ('a100-sxm4-80gb', 't4')
    """
    text = re.sub(r"\s+mig\s.*$", "", " ".join(name.lower().split()))
    return re.sub(r"^(nvidia |tesla |amd )+", "", text)


def _similar(wanted: str, known: Sequence[Hardware]) -> tuple[str, ...]:
    by_name = {name: one.name for one in known for name in _names(one)}
    close = difflib.get_close_matches(wanted, by_name, n=3, cutoff=0.7)
    return tuple(dict.fromkeys(by_name[name] for name in close))


def _nearest_capacity(facts: Facts, profile: Hardware) -> float:
    known = [cited.value for cited in (profile.capacity, profile.visible_capacity) if cited is not None]
    here = facts.memory_bytes or 0.0
    return min(known, key=lambda value: abs(here - value))


def _memory_gap(facts: Facts, profile: Hardware) -> float:
    if facts.memory_bytes is None:
        return 0.0
    return facts.memory_bytes / _nearest_capacity(facts, profile) - 1
