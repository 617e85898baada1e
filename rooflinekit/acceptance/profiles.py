"""Acceptance that others published, shipped as reference profiles: a name, numbers, and where they are from.

The tables are ``data/acceptance/*.csv``; each row names its source, target model, drafter, data set,
temperature and verification rule.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from rooflinekit.acceptance.base import Acceptance
from rooflinekit.acceptance.described import from_fields
from rooflinekit.errors import AcceptanceError, nearest

FOLDER = Path(__file__).resolve().parent.parent / "data" / "acceptance"
FILE_ENDINGS = (".csv", ".json", ".jsonl", ".log", ".prom", ".txt", ".yaml", ".yml")
"""A name that ends so was meant as a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptanceProfile:
    """Published acceptance of one drafter with one target on one data set.

    Attributes
    ----------
    name
        Kebab-case: drafter, target, data set and what else tells it apart.
    form, values, measured_k
        How the numbers were printed (``conditional``, ``survival``, ``lengths``, ``acceptance_length``), the
        numbers, and the K of a single length.
    target, drafter
        Model that verified; what drafted.
    dataset, temperature, verification
        What was generated, and how drafts were accepted; ``not stated`` where the source does not say.
    notes
        What to know before using it.
    source
        Document and place.
    """

    name: str
    form: str
    values: str
    measured_k: str
    target: str
    drafter: str
    dataset: str
    temperature: str
    verification: str
    notes: str
    source: str

    @property
    def acceptance(self) -> Acceptance:
        """The numbers as acceptance; its label is the name, its warnings hold the notes."""
        made: Any = from_fields(self._fields(), f"profile {self.name}", find_profile)
        notes = ((self.notes,) if self.notes else ()) + made.notes
        k = int(self.measured_k or made.max_k)
        label = f"{self.name} (A {float(made.expected(k)):.2f} at K {k})"
        found: Acceptance = replace(made, source=label, notes=notes)
        return found

    @property
    def largest_k(self) -> int:
        """K of the last number that was printed."""
        return int(self.measured_k) if self.measured_k else int(self.acceptance.max_k or 0)

    def facts(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {
            **asdict(self),
            "measured_k": self.largest_k,
            "acceptance_length": float(self.acceptance.expected(self.largest_k)),
        }

    def _fields(self) -> dict[str, Any]:
        parts = self.values.split()
        if self.form == "lengths":
            pairs = (part.split(":") for part in parts)
            return {self.form: {k: float(length) for k, length in pairs}}
        if self.form == "acceptance_length":
            return {self.form: float(parts[0]), "measured_k": int(self.measured_k)}
        return {self.form: [float(part) for part in parts]}


@cache
def acceptance_profiles() -> Mapping[str, AcceptanceProfile]:
    """Shipped profiles by name, read on first use."""
    found: dict[str, AcceptanceProfile] = {}
    for path in sorted(FOLDER.glob("*.csv")):
        with path.open(encoding="utf-8", newline="") as stream:
            for row in csv.DictReader(line for line in stream if not line.startswith("#")):
                found[row["name"]] = AcceptanceProfile(**row)
    return found


def find_profile(name: str) -> Acceptance:
    """Acceptance of a shipped profile.

    Raises
    ------
    AcceptanceError
        No profile has this name.
    """
    return profile_named(name).acceptance


def profile_named(name: str) -> AcceptanceProfile:
    """Shipped profile with its provenance.

    Raises
    ------
    AcceptanceError
        No profile has this name; the nearest are listed.
    """
    known = acceptance_profiles()
    if name not in known:
        if name.endswith(FILE_ENDINGS):
            raise AcceptanceError(
                f"acceptance file {name!r:.80} does not exist; check the path, or take a name of "
                "`rooflinekit acceptance list`"
            )
        raise AcceptanceError(
            f"acceptance {name!r:.60} is neither a file nor a shipped profile; {nearest(name[:60], known)} "
            "(`rooflinekit acceptance list` shows all)"
        )
    return known[name]
