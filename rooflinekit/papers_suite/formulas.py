"""Sources that judge formulas: everything that goes in was printed or measured by others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rooflinekit import acceptance, arithmetic, speculation
from rooflinekit.papers_suite.source import Row, Source, read

LEVIATHAN = "https://arxiv.org/abs/2211.17192"
ABOVE_CEILING = "measured above the ceiling of a free drafter (c = 0)"


def tokens() -> list[Row]:
    """Table 1: tokens per round, rounded as printed."""
    return [
        Row(
            f"alpha {row['alpha']}, K {row['k']}",
            round(float(acceptance.expected_tokens(float(row["alpha"]), int(row["k"]))), 2),
            float(row["tokens"]),
        )
        for row in read("leviathan_table1.csv")
    ]


def operations() -> list[Row]:
    """Table 1: factor of operations at c_hat = 0, rounded as printed."""
    return [
        Row(
            f"alpha {row['alpha']}, K {row['k']}",
            round(float(arithmetic.operations_factor(float(row["alpha"]), int(row["k"]), 0.0)), 2),
            float(row["operations"]),
        )
        for row in read("leviathan_table1.csv")
    ]


def expected_by_the_authors() -> list[Row]:
    """Table 4, column Exp: by eta, and once more as S_up."""
    found = []
    for row in read("leviathan_table4.csv"):
        alpha, k, c, printed = float(row["alpha"]), int(row["k"]), float(row["c"]), float(row["expected"])
        case = f"{row['task']}, {row['draft']}, T {row['temperature']}"
        accepted = acceptance.expected_tokens(alpha, k) - 1.0
        found.append(Row(f"{case}, eta", float(speculation.eta(alpha, k, c)), printed))
        found.append(Row(f"{case}, S_up", float(speculation.s_up(accepted, k, c, 1.0)), printed))
    return found


def measured_by_the_authors() -> list[Row]:
    """Table 4, column Emp; rows that no draft cost can explain are flagged."""
    found = []
    for row in read("leviathan_table4.csv"):
        alpha, k, measured = float(row["alpha"]), int(row["k"]), float(row["measured"])
        above = measured > float(speculation.eta(alpha, k, 0.0))
        flags = [ABOVE_CEILING] * above + [row["note"]] * bool(row["note"])
        case = f"{row['task']}, {row['draft']}, T {row['temperature']}"
        predicted = float(speculation.eta(alpha, k, float(row["c"])))
        found.append(Row(case, predicted, measured, flag="; ".join(flags)))
    return found


def chen() -> list[Row]:
    """Figure 1 at K = 7: accepted tokens off the plot, step times off the text."""
    found = []
    for row in read("chen_fig1.csv"):
        k, draft, step = int(row["k"]), float(row["draft_ms"]), float(row["step_ms"])
        accepted = float(row["accepted_share"]) * (k + 1) - 1.0
        measured = 128 * step / float(row["ms_128"])
        found.append(Row(row["task"], float(speculation.s_up(accepted, k, draft, step)), measured))
    return found


def medusa() -> list[Row]:
    """Table 1: acceleration rate over overhead."""
    found = []
    for row in read("medusa_table1.csv"):
        length = float(row["acceptance_length"])
        # What drafts and what verifies is not told apart: the overhead is that of the whole round.
        one = speculation.Round(
            k=1.0, acceptance_length=length, draft_s=0.0, verify_s=float(row["round_cost"]), decode_s=1.0
        )
        found.append(Row(row["model"], float(one.speedup), float(row["speedup"]), plain=length))
    return found


def _chains(name: str, columns: Sequence[str], label: Sequence[str]) -> list[Row]:
    found = []
    for row in read(name):
        rates = [float(row[column]) for column in columns]
        predicted = float(acceptance.from_conditional(rates).expected(len(rates)))
        found.append(Row(", ".join(row[part] for part in label), predicted, float(row["acceptance_length"])))
    return found


def eagle_chain() -> list[Row]:
    """Table 2, n-alpha of a chain, against the length of a chain in Table 5."""
    return _chains("eagle_chain.csv", [f"alpha_{i}" for i in range(1, 6)], ["model"])


def dspark() -> list[Row]:
    """Figure 2, conditional acceptance, against the mean lengths of Table 1."""
    return _chains("dspark_fig2.csv", [f"p_{i}" for i in range(1, 8)], ["draft", "domain"])


EAGLE_ALPHA = 0.65
"""Acceptance rate up to which the paper's N/A holds by the formula; the paper gives none."""


def eagle_small_lm() -> list[Row]:
    """Figure 1: a 7B model drafts, best K of 2..10 (1.0 stands for no gain)."""
    ks = np.arange(2.0, 11.0)
    return [
        Row(
            row["target"],
            float(
                np.max(
                    speculation.eta(
                        EAGLE_ALPHA, ks, float(row["draft_params_b"]) / float(row["target_params_b"])
                    )
                )
            ),
            float(row["speedup"]),
        )
        for row in read("eagle_small_lm.csv")
    ]


def deepseek_mtp() -> list[Row]:
    """1.8 times the tokens per second with one MTP module: (1 + alpha) / (1 + c)."""
    return [
        Row(
            f"alpha {row['alpha']}, c {row['draft_cost']}",
            float(speculation.eta(float(row["alpha"]), 1, float(row["draft_cost"]))),
            float(row["speedup"]),
        )
        for row in read("deepseek_mtp.csv")
    ]


SOURCES = (
    Source(
        name="Leviathan, Table 1",
        quantity="tokens per round",
        url=LEVIATHAN,
        formula="acceptance.expected_tokens",
        judged="worst",
        tolerance=0.0,
        limits="algebra only: nothing was measured",
        rows=tokens,
    ),
    Source(
        name="Leviathan, Table 1",
        quantity="operations factor",
        url=LEVIATHAN,
        formula="arithmetic.operations_factor",
        judged="worst",
        tolerance=0.0,
        limits="algebra only, at c_hat = 0",
        rows=operations,
    ),
    Source(
        name="Leviathan, Table 4",
        quantity="authors' prediction",
        url=LEVIATHAN,
        formula="speculation.eta and s_up",
        judged="worst",
        tolerance=0.04,
        limits="their formula against ours; alpha and c are printed to two digits",
        rows=expected_by_the_authors,
    ),
    Source(
        name="Leviathan, Table 4",
        quantity="measured speedup",
        url=LEVIATHAN,
        formula="speculation.eta",
        judged="mean",
        tolerance=0.25,
        limits="a verify is taken as a plain step and acceptance as independent; four measurements lie above what "
        "a free drafter could reach, the two T5-large rows on EnDe far below",
        rows=measured_by_the_authors,
    ),
    Source(
        name="Chen, Fig. 1",
        quantity="speedup at K = 7",
        url="https://arxiv.org/abs/2302.01318",
        formula="speculation.s_up",
        judged="worst",
        tolerance=0.12,
        limits="two points read off a plot; its loop takes 28.6 ms, 7 % more than drafts and verify add up to",
        rows=chen,
    ),
    Source(
        name="Medusa, Table 1",
        quantity="speedup",
        url="https://arxiv.org/abs/2401.10774",
        formula="Round.speedup, measured round cost",
        judged="worst",
        tolerance=0.01,
        limits="the round cost is the authors' own: no cost of heads or tree is predicted",
        rows=medusa,
    ),
    Source(
        name="EAGLE, Table 5",
        quantity="acceptance length",
        url="https://arxiv.org/abs/2401.15077",
        formula="acceptance.from_conditional",
        judged="worst",
        tolerance=0.06,
        limits="the depth of the chain is not printed (5 is inferred); no times",
        rows=eagle_chain,
    ),
    Source(
        name="DSpark, Fig. 2",
        quantity="acceptance length",
        url="https://github.com/deepseek-ai/DeepSpec",
        formula="acceptance.from_conditional",
        judged="worst",
        tolerance=0.01,
        limits="acceptance only: the paper's hardware and step times are not stated",
        rows=dspark,
    ),
    Source(
        name="EAGLE, Fig. 1",
        quantity="sign, 7B drafts",
        url="https://arxiv.org/abs/2401.15077",
        formula="speculation.eta, best of K = 2..10",
        judged="sign",
        tolerance=1.0,
        limits="alpha is not published: 0.65 is assumed (the N/A of the 13B targets needs at most that); c is the "
        "ratio of parameters; the size of the gain is off by a third",
        rows=eagle_small_lm,
    ),
    Source(
        name="DeepSeek-V3, 5.4.3",
        quantity="speedup of MTP",
        url="https://arxiv.org/abs/2412.19437",
        formula="speculation.eta at K = 1",
        judged="worst",
        tolerance=0.05,
        limits="one printed speedup over the ends of alpha and of two guesses of c; batch and hardware unknown, "
        "growth of the experts' cost left out",
        rows=deepseek_mtp,
    ),
)
