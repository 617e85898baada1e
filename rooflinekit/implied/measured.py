"""One measured setting, and the numbers it implies."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from rooflinekit.acceptance import solve_alpha
from rooflinekit.errors import AcceptanceError
from rooflinekit.implied.rounds import verify_at, verify_growth


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What was measured of plain decoding and of speculation; None where it was not.

    Attributes
    ----------
    plain_s
        One plain step: what a token of one sequence takes without speculation (s); nan where there was no
        plain run (then K can be compared, but no speedup given).
    k
        Drafted tokens in a round; the depth of a tree.
    width
        Rows per sequence of the verify; None for K + 1.
    token_s
        Time per token of one sequence with speculation (s), TPOT.
    printed_speedup
        The ratio that was reported.
    acceptance_length
        Tokens per round, bonus token included.
    draft_s
        All drafting of a round (s).
    drafted
        Drafts of a round where fewer than K are made at times; None for K.
    verify_s
        Verify time (s) by rows per sequence.
    weight_only
        Whether the weights are stored in fewer bits than they are computed in.
    """

    plain_s: float
    k: int
    width: int | None = None
    token_s: float | None = None
    printed_speedup: float | None = None
    acceptance_length: float | None = None
    draft_s: float | None = None
    drafted: float | None = None
    verify_s: Mapping[int, float] = field(default_factory=dict)
    weight_only: bool = False

    def __post_init__(self) -> None:
        """Refuse what no round can be."""
        times = {"plain step": self.plain_s, "time per token": self.token_s, "drafting": self.draft_s}
        times |= {f"verify of {width} rows": value for width, value in self.verify_s.items()}
        for name, value in times.items():
            if value is not None and not (
                0.0 < value < math.inf or (name == "plain step" and math.isnan(value))
            ):
                raise AcceptanceError(f"{name} takes {value:g} s; give a positive time")
        if self.acceptance_length is not None:
            solve_alpha(self.acceptance_length, self.k)

    @property
    def rows(self) -> int:
        """Rows per sequence of the verify."""
        return self.width or self.k + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Implied:
    """What a measured setting implies; None where the measurements do not say.

    Attributes
    ----------
    measured
        Where it comes from.
    acceptance_length, token_s
        As measured, else what the other numbers imply.
    round_s, round_cost
        A round (s), and in plain steps: the break-even acceptance length.
    speedup
        Time of a plain step over the time per token, from its parts.
    alpha
        Constant acceptance rate that gives the acceptance length.
    verify_s, verify_ratio, row_growth
        The verify at the width of a round (s); R(W); its growth per further row if that is a straight line.
    verify_measured
        Whether the verify was timed; else it is what drafting leaves of the round, the engine's time included.
    draft_cost
        c: drafting of one token in plain steps.
    outside_verify_s
        Everything of a round that is not verify (s).
    rest_s
        What is neither draft nor verify (s).
    least_round_cost
        A round in plain steps if no draft were accepted, where the acceptance length is unknown.
    last_tokens_per_s
        Rate of the last position alone: tokens it adds, ``alpha^K``, over the time it adds, ``c`` and a row.
    budget_s
        What everything besides the verify may take at break-even (s); negative where the verify alone is too long.
    largest_speedup
        With every draft accepted: ``(K + 1) / rho``.
    round_from_parts
        Whether the round is the sum of drafting and verify rather than tokens times time per token.
    """

    measured: Measured
    acceptance_length: float | None
    token_s: float | None
    round_s: float | None
    round_cost: float | None
    speedup: float | None
    alpha: float | None
    verify_s: float | None
    verify_ratio: float | None
    row_growth: float | None
    verify_measured: bool
    draft_cost: float | None
    outside_verify_s: float | None
    rest_s: float | None
    budget_s: float | None
    least_round_cost: float | None
    last_tokens_per_s: float | None
    largest_speedup: float | None
    round_from_parts: bool

    @property
    def break_even_alpha(self) -> float | None:
        """Constant acceptance rate at which the round breaks even; None past K + 1."""
        return needed_alpha(self, 1.0)


def needed_alpha(implied: Implied, speedup: float) -> float | None:
    """Constant acceptance rate that a speedup asks for at this round cost; None where even 1 is too little."""
    if implied.round_cost is None:
        return None
    length = max(needed_length(implied.round_cost, speedup), 1.0)
    return solve_alpha(length, implied.measured.k) if length <= implied.measured.k + 1.0 else None


def needed_length(round_cost: float, speedup: float) -> float:
    """Acceptance length that a speedup asks for: ``A = S rho``; the inverse of ``S = A / rho``.

    >>> round(needed_length(35 / 28, 1.065), 2)
    1.33
    """
    return round_cost * speedup


def budget_s(acceptance_length: float, plain_s: float, verify_s: float) -> float:
    """Time (s) that everything besides the verify may take at break-even: ``A T_plain - T_v``.

    >>> round(budget_s(3.38, 8.47e-3, 20.67e-3) * 1e3, 1)
    8.0
    """
    return acceptance_length * plain_s - verify_s


def verify_alone(measured: Measured) -> float | None:
    """Timed verify at the width of a round (s), between measured widths on a straight line; None without one."""
    known = measured.verify_s
    if not known or not min(known) <= measured.rows <= max(known):
        return None
    return float(verify_at(known, measured.rows))


def imply(measured: Measured) -> Implied:
    """Work out everything that the measurements imply.

    A round is ``A`` times the time per token where both are known, else drafting plus verify with nothing
    beside them. The acceptance length is taken as given, else from that round and the speed.
    """
    m = measured
    verify = verify_alone(m)
    timed = verify is not None
    token = m.token_s
    if token is None and m.printed_speedup is not None:
        token = m.plain_s / m.printed_speedup
    length = m.acceptance_length
    whole = length * token if length is not None and token is not None else None
    from_parts = whole is None and verify is not None
    if whole is None and verify is not None:
        whole = (m.draft_s or 0.0) + verify
        length = whole / token if length is None and token is not None else length
        token = whole / length if length is not None else token
    if whole is None:
        return _implied(m, token, length, verify, None, from_parts=False, timed=timed)
    if verify is None and m.draft_s is not None and whole > m.draft_s:
        verify = whole - m.draft_s
    return _implied(m, token, length, verify, whole, from_parts=from_parts, timed=timed)


def _implied(
    m: Measured,
    token: float | None,
    length: float | None,
    verify: float | None,
    whole: float | None,
    *,
    from_parts: bool,
    timed: bool,
) -> Implied:
    plain = None if math.isnan(m.plain_s) else m.plain_s
    cost = _over(whole, plain)
    ratio = _over(verify, plain)
    growth = None if ratio is None or m.rows <= 1 else verify_growth(ratio, m.rows)
    c = None if m.draft_s is None else _over(m.draft_s / (m.drafted or m.k), plain)
    possible = length is not None and 1.0 <= length <= m.k + 1.0
    alpha = solve_alpha(length, m.k) if length is not None and possible else None
    # Without drafting time the sum of the parts is the verify alone, and nothing is beside it.
    apart = timed and not (from_parts and m.draft_s is None)
    outside = whole - verify if whole is not None and verify is not None and apart else None
    known = None not in (alpha, growth, c, plain)
    return Implied(
        measured=m,
        acceptance_length=length,
        token_s=token,
        round_s=whole,
        round_cost=cost,
        speedup=_over(plain, token),
        alpha=alpha,
        verify_s=verify,
        verify_ratio=ratio,
        row_growth=growth,
        verify_measured=timed,
        draft_cost=c,
        outside_verify_s=outside,
        rest_s=None if outside is None or m.draft_s is None or from_parts else outside - m.draft_s,
        budget_s=budget_s(length, plain, verify) if length and plain and verify and timed else None,
        least_round_cost=_over(token, plain) if whole is None else None,
        last_tokens_per_s=_last_rate(m, alpha or 0.0, growth or 0.0, c or 0.0) if known else None,
        largest_speedup=_over(m.k + 1.0, cost),
        round_from_parts=from_parts,
    )


def _over(value: float | None, by: float | None) -> float | None:
    return None if value is None or by is None else value / by


def _last_rate(m: Measured, alpha: float, growth: float, c: float) -> float | None:
    """Rate of the last position (tokens/s); None where it takes no time."""
    return alpha**m.k / ((c + growth) * m.plain_s) if c + growth > 0 else None
