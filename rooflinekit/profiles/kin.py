"""A profile against the shipped one of the same part: numbers of another SKU, and numbers that are off.

"H100" alone is three parts whose bandwidths differ by a factor of two; a file whose title says SXM and whose
bandwidth is the PCIe card's is formally right and wrong by 64 %.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rooflinekit import units
from rooflinekit.evidence import Cited
from rooflinekit.hardware import Hardware

SAME = 0.02
"""Tables of one part differ by rounding (3.35 against 3.352 TB/s)."""
OFF = 0.05
"""Beyond this two tables of one part cannot both be right; B200 is printed with 7.67 and with 8 TB/s."""
EXACT = 0.005
MEASURED = ("measured", "fitted")
"""Numbers of one's own device, which need not be what the vendor prints."""
BINARY_SLIPS = (2.0**10 / 1e3, 2.0**20 / 1e6, 2.0**30 / 1e9, 2.0**40 / 1e12)


def base_format(hardware: Hardware) -> str | None:
    """Return the 16-bit format that other rates are compared with: bf16, else fp16."""
    return next((name for name in ("bf16", "fp16") if name in hardware.peak), None)


def compare(hardware: Hardware, shipped: Sequence[Hardware]) -> Iterator[str]:
    """Compare a profile with the shipped one that its title or name says it is.

    Parameters
    ----------
    hardware
        The profile to check.
    shipped
        All profiles it may be one of.

    Yields
    ------
    str
        One sentence a finding, as :func:`rooflinekit.profiles.checks.check_hardware` returns them.
    """
    home, sure = find_home(hardware, shipped)
    if home is None:
        return
    others = _related(home, shipped)
    for field, unit in _fields(home):
        mine, right = _value(hardware, field), _value(home, field)
        # Rates of one's own device may be measured; its memory is what the part has.
        if mine is None or right is None or (mine.kind in MEASURED and field != "capacity"):
            continue
        label = field == "capacity" and 1.02 <= right.value / mine.value <= 1.08
        if abs(mine.value / right.value - 1) <= SAME or label:
            continue
        same = " or ".join([one.name for one in others if _equal(_value(one, field), mine)][:3])
        yield from _finding(field, unit, mine.value, right.value, home.name, same, sure=sure)
    yield from _capacity(hardware, home)


def find_home(hardware: Hardware, shipped: Sequence[Hardware]) -> tuple[Hardware | None, bool]:
    """Return the shipped profile of the same part, and whether the title leaves no doubt.

    The name, an alias or a driver's name must be contained in the words of the title and the name; the one
    with the most words wins. It is sure when all words of the profile's own name or title are there.
    """
    words = _words(f"{hardware.title} {hardware.name}")
    best: tuple[int, Hardware | None, bool] = (0, None, False)
    for one in shipped:
        for label in (one.name, one.title, *one.aliases, *one.driver_names):
            wanted = _words(label)
            if wanted and wanted <= words and len(wanted) > best[0]:
                best = (len(wanted), one, label in (one.name, one.title))
    return best[1], best[2]


def _words(text: str) -> frozenset[str]:
    found = re.findall(r"[a-z0-9]+", text.lower())
    makers = {"nvidia", "amd", "intel", "google", "apple", "tesla"}
    return frozenset(re.sub(r"^sxm\d$", "sxm", word) for word in found if word not in makers)


def _related(home: Hardware, shipped: Sequence[Hardware]) -> list[Hardware]:
    """Return the parts that are confused with one: those of its model number, then those of its die."""
    numbers = {word for word in _words(home.name) if re.search(r"[a-z]\d|\d{4}", word)}
    named = [one for one in shipped if one is not home and numbers & _words(one.name)]
    return named + [
        one for one in shipped if one not in (home, *named) and one.architecture == home.architecture
    ]


def _fields(home: Hardware) -> list[tuple[str, str]]:
    peaks = [(f"peak.{name}", "FLOP/s") for name in home.peak]
    return [("bandwidth", "B/s"), *peaks, ("link", "B/s"), ("units", ""), ("capacity", "B")]


def _value(hardware: Hardware, field: str) -> Cited | None:
    group, _, name = field.partition(".")
    found = hardware.peak.get(name) if name else getattr(hardware, group)
    return found if isinstance(found, Cited) else None


def _equal(one: Cited | None, other: Cited) -> bool:
    return one is not None and abs(one.value / other.value - 1) <= EXACT


def _finding(
    field: str, unit: str, mine: float, right: float, home: str, same: str, *, sure: bool
) -> Iterator[str]:
    ratio, shown = mine / right, f"{field} {units.render(mine, unit)}".rstrip()
    theirs = f"{home} ({units.render(right, unit)})"
    if same:
        yield f"{shown} is that of {same}, not of {theirs}; is it the number of another SKU?"
    elif field == "link" and abs(ratio / 2 - 1) <= SAME:
        yield f"{shown} is twice that of {theirs}; is it both directions together? Write one"
    elif field.startswith("peak.") and abs(ratio / 2 - 1) <= SAME:
        yield f"{shown} is twice that of {theirs}; is it the rate with sparsity? Write dense rates only"
    elif any(abs(ratio / slip - 1) <= EXACT for slip in BINARY_SLIPS):
        yield f"{shown} is {ratio:.3g} times that of {theirs}; is it in GiB or TiB? Vendors mean decimal units"
    elif abs(ratio - 1) > OFF:
        yield (
            "" if sure else "note: "
        ) + f"{shown} is far from {theirs}; check it against the vendor's table"


def _capacity(hardware: Hardware, home: Hardware) -> Iterator[str]:
    mine, right = hardware.capacity.value, home.capacity.value
    if mine % 1e9 == 0 and 1.02 <= right / mine <= 1.08:
        yield (
            f"capacity {units.render(mine, 'B')} is the label; {home.name} has {right:.0f} B, because the GB of "
            "the label are GiB"
        )
