"""Several acceptances at once: sequences of a batch, or requests of several kinds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rooflinekit.acceptance.base import Acceptance, Floats, positions, ratio, scalar_or_array
from rooflinekit.errors import AcceptanceError
from rooflinekit.work import Real


@dataclass(frozen=True, slots=True)
class Mixture:
    """Members by their share of the rounds; A and every S_i are the weighted means of theirs.

    In a batch each sequence takes part in every round, so a batch has equal weights. A share of *tokens*
    is another thing: members that emit more per round need fewer of them; divide such shares by each
    member's A first.

    A grows faster than linearly in alpha, so the mean of rates is not the rate of the mean: a half at 0.9
    and a half at 0.5 emit more than all at 0.7. And the conditional rates of a mixture rise along the
    draft, since the rounds that come far are mostly those of the best member.

    Attributes
    ----------
    weights
        Shares of the rounds; positive, scaled to a sum of 1.
    members
        One acceptance for each weight.
    source
        Where it came from, for the label.
    notes
        Warnings that its maker has.
    """

    weights: tuple[float, ...]
    members: tuple[Acceptance, ...]
    source: str = ""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse weights that are no shares, and scale the others."""
        if not self.members or len(self.weights) != len(self.members):
            raise AcceptanceError(
                f"a mixture needs one weight for each member, and at least one; {len(self.weights)} weights and "
                f"{len(self.members)} members were given"
            )
        for weight in self.weights:
            if not 0.0 < weight < 1e15:
                raise AcceptanceError(
                    f"weight {weight:g} of a mixture is no share of the rounds; give positive numbers"
                )
        total = sum(self.weights)
        object.__setattr__(self, "weights", tuple(weight / total for weight in self.weights))

    @property
    def max_k(self) -> int | None:
        """Smallest limit of the members."""
        return min((one.max_k for one in self.members if one.max_k is not None), default=None)

    @property
    def rounds(self) -> int | None:
        """Rounds of the members that were counted."""
        found = [one.rounds for one in self.members if one.rounds is not None]
        return sum(found) if found else None

    @property
    def label(self) -> str:
        """The members in short."""
        shown = ", ".join(
            f"{weight:.0%} {one.label}"
            for weight, one in zip(self.weights[:3], self.members[:3], strict=True)
        )
        return self.source or f"mixture: {shown}" + (", ..." if len(self.members) > 3 else "")

    @property
    def warnings(self) -> tuple[str, ...]:
        """Those of the members, and which of them were not counted where others were."""
        found = [*self.notes, *(warning for one in self.members for warning in one.warnings)]
        uncounted = [one.label for one in self.members if one.rounds is None]
        if uncounted and len(uncounted) < len(self.members):
            found.append(f"not counted, so its spread is missing from intervals: {', '.join(uncounted)}")
        return tuple(dict.fromkeys(found))

    def expected(self, k: Real) -> Real:
        """Weighted mean of the members' lengths."""
        return scalar_or_array(self._mean([np.asarray(one.expected(k), dtype=float) for one in self.members]))

    def survival_at(self, position: Real) -> Real:
        """Weighted mean of the members' survivals."""
        place = positions(position, self.max_k).astype(np.float64)
        return scalar_or_array(
            self._mean([np.asarray(one.survival_at(place), dtype=float) for one in self.members])
        )

    def conditional_at(self, position: Real) -> Real:
        """``S_i / S_(i-1)`` of the mixture."""
        place = positions(position, self.max_k).astype(np.float64)
        here = np.asarray(self.survival_at(place))
        earlier = np.asarray(self.survival_at(np.maximum(place - 1, 1)))
        return ratio(here, np.where(place > 1, earlier, 1.0))

    def expected_draws(self, k: Real, count: int, seed: int = 0) -> Floats | None:
        """Weighted mean of the members' draws; members that were not counted stay where they are."""
        seeds = np.random.SeedSequence(seed).generate_state(len(self.members))
        drawn = [one.expected_draws(k, count, int(own)) for one, own in zip(self.members, seeds, strict=True)]
        if all(one is None for one in drawn):
            return None
        shape = (count, *np.shape(k))
        return self._mean(
            [
                np.broadcast_to(np.asarray(member.expected(k), dtype=float) if one is None else one, shape)
                for one, member in zip(drawn, self.members, strict=True)
            ]
        )

    def _mean(self, values: list[Floats]) -> Floats:
        return np.asarray(sum(weight * value for weight, value in zip(self.weights, values, strict=True)))
