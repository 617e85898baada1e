"""Measured numbers in, break-even and causes out: identities, contradictions, and the command line."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflinekit.acceptance import Survival, expected_tokens
from rooflinekit.cli import run
from rooflinekit.errors import AcceptanceError, RooflineError
from rooflinekit.implied import (
    Measured,
    RoundLine,
    bandwidth_use,
    best_k,
    diagnose,
    fit_rounds,
    imply,
    last_paying_k,
    needed_alpha,
    rounds_over,
    sweep_of,
    verify_at,
    verify_growth,
    verify_line,
)
from rooflinekit.readers.sweep_csv import read_sweep
from rooflinekit.report.diagnosis import diagnosis_text
from rooflinekit.speculation import eta

TIMES = st.floats(1e-4, 1.0)
ALPHAS = st.floats(0.02, 0.98)
KS = st.integers(1, 16)


# --- identities ---


@given(
    plain=TIMES,
    alpha=ALPHAS,
    k=KS,
    c=st.floats(0.01, 0.9),
    growth=st.floats(0.0, 0.5),
    rest=st.floats(0.0, 2.0),
)
def test_a_made_up_round_is_taken_apart_again(plain, alpha, k, c, growth, rest):
    """From the times and tokens of a round that was put together, every piece comes back."""
    verify = plain * (1 + growth * k)
    whole = k * c * plain + verify + rest * plain
    length = expected_tokens(alpha, float(k))
    found = imply(
        Measured(
            plain_s=plain,
            k=k,
            token_s=whole / length,
            acceptance_length=length,
            draft_s=k * c * plain,
            verify_s={k + 1: verify},
        )
    )
    assert found.round_s == pytest.approx(whole)
    assert found.alpha == pytest.approx(alpha, abs=1e-6)
    assert found.draft_cost == pytest.approx(c)
    assert found.row_growth == pytest.approx(growth, abs=1e-9)
    assert found.rest_s == pytest.approx(rest * plain, abs=1e-9 + 1e-9 * whole)
    assert found.speedup == pytest.approx(length / found.round_cost)
    assert found.largest_speedup >= found.speedup
    # The budget is what is left to everything beside the verify: spent exactly, speculation breaks even.
    assert (found.budget_s >= found.outside_verify_s) == (
        found.speedup >= 1
    ) or found.speedup == pytest.approx(1)


@given(plain=TIMES, alpha=ALPHAS, k=KS, c=st.floats(0.01, 0.9))
def test_an_ideal_verify_gives_leviathans_speedup(plain, alpha, k, c):
    """Verify of a plain step, nothing beside: eta of Theorem 3.8."""
    length = expected_tokens(alpha, float(k))
    found = imply(
        Measured(
            plain_s=plain,
            k=k,
            acceptance_length=length,
            draft_s=k * c * plain,
            verify_s={k + 1: plain},
        )
    )
    assert found.speedup == pytest.approx(eta(alpha, float(k), c))


@given(cost=st.floats(1.0, 5.9), k=st.just(5))
def test_the_break_even_rate_breaks_even(cost, k):
    found = imply(Measured(plain_s=1.0, k=k, acceptance_length=2.0, token_s=cost / 2.0))
    assert expected_tokens(found.break_even_alpha, 5.0) == pytest.approx(cost, rel=1e-6)


def test_no_rate_breaks_even_past_k_plus_1():
    found = imply(Measured(plain_s=1.0, k=2, acceptance_length=2.0, token_s=2.0))
    assert found.round_cost == 4.0
    assert found.break_even_alpha is None
    assert needed_alpha(found, 0.5) == pytest.approx((math.sqrt(5) - 1) / 2)  # 1 + a + a^2 = 2


@given(
    fixed=TIMES,
    step=st.floats(1e-4, 0.3),
    ks=st.lists(st.integers(1, 20), min_size=2, max_size=8, unique=True),
)
def test_a_line_through_rounds_comes_back(fixed, step, ks):
    line = fit_rounds([float(k) for k in ks], [fixed + k * step for k in ks])
    assert line.fixed_s == pytest.approx(fixed, rel=1e-6, abs=1e-9)
    assert line.slope_s == pytest.approx(step, rel=1e-6)
    assert line.misfit < 1e-6


@given(alpha=ALPHAS, c=st.floats(0.01, 0.5), growth=st.floats(0.0, 0.3))
def test_the_marginal_rule_finds_the_best_k(alpha, c, growth):
    """On a straight line of cost and falling survival the last position that pays is the best K (brute force)."""
    ks = np.arange(1.0, 25.0)
    lengths = expected_tokens(alpha, ks)
    line = RoundLine(1.0 + 0.0 * growth, c + growth)
    rounds = line.rounds(ks, lengths, 1.0)
    best = int(ks[np.argmax(lengths / (1.0 + ks * (c + growth)))])
    last = last_paying_k([int(k) for k in ks], list(lengths), line)
    gains = np.asarray(rounds.speedup)
    assert best_k(rounds)[0] == best
    assert gains[last - 1] == pytest.approx(gains.max(), rel=1e-9)


@given(ratio=st.floats(1.0, 20.0), width=st.integers(2, 40))
def test_the_growth_of_a_verify_goes_through_its_point(ratio, width):
    growth = verify_growth(ratio, width)
    assert verify_line(growth, 1.0) == 1.0
    assert verify_line(growth, width) == pytest.approx(ratio)


def test_a_verify_between_timed_widths_lies_on_the_chord():
    times = {1: 1.0, 3: 2.0, 5: 2.2}
    assert verify_at(times, 2.0) == pytest.approx(1.5)
    assert list(verify_at(times, np.array([3.0, 4.0]))) == pytest.approx([2.0, 2.1])
    with pytest.raises(AcceptanceError, match="not for 6 rows"):
        verify_at(times, 6.0)


def test_a_free_drafter_is_the_curve_without_drafting():
    one = rounds_over(3.0, 2.5, 1.0, 1.2)
    assert float(one.speedup) == pytest.approx(2.5 / 1.2)


# --- contradictions and causes ---


def codes(**fields):
    return set(diagnose(Measured(**fields)).codes())


@given(plain=TIMES, alpha=st.floats(0.3, 0.95), k=KS, c=st.floats(0.01, 0.2), growth=st.floats(0.0, 0.3))
def test_a_healthy_round_is_blamed_for_nothing(plain, alpha, k, c, growth):
    """Consistent numbers of a sound engine: a verdict, at most that it cannot pay."""
    length = expected_tokens(alpha, float(k))
    verify, draft = plain * (1 + growth * k), k * c * plain
    found = codes(
        plain_s=plain,
        k=k,
        acceptance_length=length,
        token_s=(draft + verify) / length,
        draft_s=draft,
        verify_s={k + 1: verify},
    )
    assert not found & {"inconsistent", "missing_kernel", "implementation_overhead", "draft_too_dear"}


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        # A ratio that does not follow; a round shorter than its parts; more tokens than K allows.
        ({"token_s": 0.5, "acceptance_length": 3.0, "printed_speedup": 2.1}, "inconsistent"),
        ({"token_s": 0.5, "acceptance_length": 3.0, "draft_s": 0.4, "verify_s": {5: 1.4}}, "inconsistent"),
        ({"token_s": 0.2, "verify_s": {5: 1.4}}, "inconsistent"),
        ({"token_s": 0.5, "acceptance_length": 3.0, "draft_s": 2.0}, "inconsistent"),
        # A verify of 5 rows for 4.4 plain steps; drafts dearer than steps; a third of the round in nothing.
        ({"acceptance_length": 3.0, "verify_s": {5: 4.4}}, "missing_kernel"),
        ({"acceptance_length": 4.9, "draft_s": 5.0, "verify_s": {5: 1.0}}, "draft_too_dear"),
        (
            {"token_s": 0.7, "acceptance_length": 3.0, "draft_s": 0.2, "verify_s": {5: 1.1}},
            "implementation_overhead",
        ),
        ({"token_s": 4.0, "acceptance_length": 3.0}, "implementation_overhead"),
        ({"token_s": 4.0, "acceptance_length": 3.0, "weight_only": True}, "missing_kernel"),
    ],
)
def test_causes_are_named(fields, code):
    assert code in codes(plain_s=1.0, k=4, **fields)


def test_statements_of_one_acceptance_must_agree():
    measured = Measured(plain_s=1.0, k=3, token_s=0.5, acceptance_length=2.5)
    assert diagnose(measured, statements={"a": 2.5, "b": 2.52}).findings == ()
    assert diagnose(measured, statements={"a": 2.5, "b": 3.5}).codes() == ("pays", "inconsistent")


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"plain_s": 0.0, "k": 2}, "plain step"),
        ({"plain_s": 1.0, "k": 2, "acceptance_length": 3.5}, "impossible"),
        ({"plain_s": 1.0, "k": 2, "verify_s": {3: -1.0}}, "verify of 3 rows"),
        ({"plain_s": 1.0, "k": 2, "token_s": math.inf}, "time per token"),
    ],
)
def test_what_no_round_can_be_is_refused(fields, word):
    with pytest.raises(AcceptanceError, match=word):
        Measured(**fields)


def test_a_sweep_needs_two_k_and_complete_rows():
    row = {"plain_s": 1.0, "token_s": 0.5, "acceptance_length": 2.0}
    with pytest.raises(AcceptanceError, match="two different K"):
        sweep_of([Measured(k=2, **row)])
    with pytest.raises(AcceptanceError, match="twice"):
        sweep_of([Measured(k=2, **row), Measured(k=2, **row)])
    with pytest.raises(AcceptanceError, match="K = 3"):
        sweep_of([Measured(k=2, **row), Measured(k=3, plain_s=1.0, token_s=0.5)])


def test_survival_speaks_about_every_smaller_k():
    line = RoundLine(1.0, 0.1)
    rounds = line.over(Survival((0.8, 0.5, 0.2)), 1.0)
    assert list(rounds.acceptance_length) == pytest.approx([1.8, 2.3, 2.5])
    assert list(rounds.speedup) == pytest.approx([1.8 / 1.1, 2.3 / 1.2, 2.5 / 1.3])


def test_a_bandwidth_without_its_threads_is_refused():
    with pytest.raises(RooflineError, match="8 threads"):
        bandwidth_use(1e9, {"read": {4: 2e9}}, 8)


@given(
    plain=st.one_of(TIMES, st.just(math.nan)),
    k=KS,
    width=st.one_of(st.none(), st.integers(2, 64)),
    token_s=st.one_of(st.none(), TIMES),
    printed_speedup=st.one_of(st.none(), st.floats(0.1, 5.0)),
    share=st.one_of(st.none(), st.floats(0.0, 1.0)),
    draft_s=st.one_of(st.none(), TIMES),
    verify_s=st.dictionaries(st.integers(1, 20), TIMES, max_size=4),
    deep=st.booleans(),
)
def test_any_numbers_have_an_answer(plain, k, share, deep, **fields):
    """Whatever was measured: an answer that prints, in finite numbers."""
    measured = Measured(
        plain_s=plain,
        k=k,
        acceptance_length=None if share is None else 1.0 + share * k,
        **fields,
    )
    found = diagnose(measured, deep=replace(measured, plain_s=plain * 1.1) if deep else None)
    assert found.verdict in {"pays", "does_not_pay", "unknown"}
    assert math.isnan(plain) <= (found.verdict == "unknown")
    assert all(math.isfinite(fact.value) for fact in found.facts)
    assert diagnosis_text(found)


# --- the command line ---


def ask(capsys, *arguments):
    code = run(["diagnose", *arguments, "--json"])
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    return json.loads(out, parse_constant=pytest.fail)


ALWAYS = {
    "verdict",
    "k",
    "break_even_acceptance_length",
    "best_k",
    "near_best",
    "findings",
    "curve",
    "curve_source",
    "predicted_by",
    "why",
}
ONE = ("--plain-tok-s", "100", "--spec-tok-s", "150", "--acceptance-length", "2.4", "--k", "4")


def test_the_answer_explains_each_number(capsys):
    found = ask(capsys, *ONE, "--draft-ms", "4", "--verify-ms", "1=10,5=11.5")
    assert set(found) >= ALWAYS
    assert set(found["why"]) == set(found) - ALWAYS
    assert all(found["why"].values())
    assert found["verdict"] == "pays"
    assert found["round_s"] == pytest.approx(0.016)
    assert found["break_even_acceptance_length"] == found["round_cost"] == pytest.approx(1.6)
    assert found["rest_s"] == pytest.approx(0.0005)
    assert {row["k"] for row in found["curve"]} == {1, 2, 3, 4}


def test_tokens_per_second_are_of_all_sequences(capsys):
    one, eight = ask(capsys, *ONE), ask(capsys, *ONE, "--batch", "8")
    assert eight["plain_s"] == pytest.approx(8 * one["plain_s"])
    assert eight["speedup"] == pytest.approx(one["speedup"])


def test_counters_length_and_survival_say_the_same(capsys):
    base = ("--plain-ms", "10", "--tpot-ms", "6", "--k", "2")
    ways = (
        ("--acceptance-length", "2.5"),
        ("--accepted", "150", "--rounds", "100"),
        ("--accepted", "150", "--generated", "250"),
        ("--accepted", "150", "--drafted", "200"),
        ("--survival", "0.9,0.6"),
    )
    found = [ask(capsys, *base, *way) for way in ways]
    assert [one["round_s"] for one in found] == pytest.approx([0.015] * len(ways))
    both = ask(capsys, *base, "--acceptance-length", "2.5", "--accepted", "80", "--rounds", "100")
    assert [one["code"] for one in both["findings"]] == ["inconsistent"]


def test_the_models_own_numbers_lie_beside(capsys):
    where = ("--model", "llama-3.1-8b", "--hardware", "h100-sxm", "--drafter", "eagle3")
    found = ask(capsys, *ONE, *where, "--calibration", "datasheet")
    assert found["predicted_plain_s"] == pytest.approx(
        15.55e9 / 3.352e12, rel=0.01
    )  # weights and 4096 of cache
    assert 1.0 < found["predicted_round_cost"] < found["round_cost"]
    assert found["excess_s"] == pytest.approx(
        found["round_s"] - found["predicted_round_cost"] * found["plain_s"]
    )
    assert "eagle3" in found["predicted_by"]
    alone = ask(capsys, *ONE, *where[:4])
    assert "predicted_round_cost" not in alone
    assert alone["predicted_verify_ratio"] > 1


def test_a_drafter_deeper_than_its_target_is_pointed_out(capsys):
    """Qwen3-0.6B has 28 layers, as many as Qwen3-1.7B."""
    where = ("--model", "qwen3-1.7b", "--hardware", "h100-sxm", "--drafter", "small-lm:qwen3-0.6b")
    found = ask(capsys, *ONE, *where)
    assert found["launch_draft_cost"] == pytest.approx(1.0, rel=0.01)
    # It is a cause where speculation loses; where it pays anyway the number alone is shown.
    assert found["findings"] == []
    losing = ("--plain-tok-s", "100", "--spec-tok-s", "80", "--acceptance-length", "2.4", "--k", "4")
    assert [one["code"] for one in ask(capsys, *losing, *where)["findings"]] == ["draft_too_deep"]


def test_a_sweep_file_gives_the_best_k(capsys, tmp_path):
    path = tmp_path / "sweep.csv"
    path.write_text("\ufeffK, acceptance_length ,tok_s\n0,1,100\n1,1.8,150\n2,2.3,160\n4,2.6,140\n")
    found = ask(capsys, "--sweep", str(path))
    assert (found["best_k"], found["verdict"]) == (2, "pays")
    assert found["speedup"] == pytest.approx(1.6)
    bare = tmp_path / "bare.csv"
    bare.write_text("k,acceptance_length,tpot_ms\n1,1.8,6\n2,2.3,6.1\n")
    assert ask(capsys, "--sweep", str(bare))["verdict"] == "unknown"
    assert ask(capsys, "--sweep", str(bare), "--plain-ms", "10")["verdict"] == "pays"


def test_the_text_has_verdict_causes_and_reasons(capsys):
    assert run(["diagnose", *ONE, "--speedup", "1.7", "--draft-ms", "4"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Speculation pays: 1.50x at K = 4   break-even acceptance length 1.60")
    for word in ("inconsistent", "R(5)", "recomputed", "these rounds", "best K ="):
        assert word in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), ["--plain-ms"]),
        (("--plain-ms", "10"), ["--k"]),
        (("--plain-ms", "10", "--k", "3"), ["--tpot-ms"]),
        (("--plain-ms", "nan", "--k", "3"), ["--plain-ms", "positive"]),
        (("--plain-ms", "10", "--plain-tok-s", "100"), ["--plain-tok-s"]),
        (("--plain-ms", "10", "--tpot-ms", "8", "--k", "3", "--acceptance-length", "5"), ["--k", "between 1 and 4"]),
        (("--plain-ms", "10", "--tpot-ms", "8", "--k", "3", "--verify-ms", "4:12"), ["4:12"]),
        (("--plain-ms", "10", "--tpot-ms", "8", "--k", "3", "--verify-ms", "2=12,3=14"), ["4 rows"]),
        (("--plain-ms", "10", "--tpot-ms", "8", "--k", "3", "--verify-ms", "2=12,2=14"), ["2=14"]),
        (("--plain-ms", "10", "--tpot-ms", "8", "--k", "3", "--accepted", "7"), ["--rounds"]),
        (("--plain-ms", "10", "--tpot-ms", "8", "--k", "3", "--rounds", "7"), ["--accepted"]),
        (("--plain-ms", "10", "--tpot-ms", "8", "--k", "3", "--tp", "2"), ["--tp", "--model"]),
        (("--plain-ms", "10", "--tpot-ms", "8", "--k", "3", "--model", "llama-3.1-8b"), ["--hardware"]),
        (("--plain-ms", "10", "--tpot-ms", "8", "--k", "3", "--deep-plain-tok-s", "8"), ["--deep-spec-tok-s"]),
        (("--sweep", "missing.csv"), ["missing.csv", "columns"]),
        (("--sweep", "missing.csv", "--k", "3"), ["--k", "--sweep"]),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_one_sentence(capsys, arguments, words):
    code = run(["diagnose", *arguments])
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert all(word in err for word in words)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "columns none"),
        ("k,tok_s\n1,2\n", "columns k, tok_s"),
        ("k,acceptance_length,tok_s\n1,x,3\n", "'x'"),
        ("k,acceptance_length,tok_s\n1,2,0\n2,2.1,5\n", "tok_s is 0"),
        ("k,acceptance_length,tok_s\n1.5,2,3\n", "1.5"),
        ("k,acceptance_length,tok_s\n1,1.5,nan\n", "out of range"),
        ("k,acceptance_length,tok_s\n1,1.5\n", "tpot_ms is ''"),
    ],
)
def test_a_faulty_sweep_is_refused_with_its_line(tmp_path, text, word):
    path = tmp_path / "s.csv"
    path.write_text(text)
    with pytest.raises(AcceptanceError, match=r"s\.csv") as refusal:
        read_sweep(path, 0.01)
    assert word in str(refusal.value)


def test_host_time_is_in_the_models_own_numbers(capsys):
    """vLLM's 1.207 ms a step and 8 us a row: the plain step is that much longer, and the round of 4 rows too."""
    words = ["--k", "3", "--plain-ms", "10", "--tpot-ms", "6", "--alpha", "0.8"]
    words += ["--model", "llama-3.1-8b", "--hardware", "h100-sxm"]
    bare, hosted = ask(capsys, *words), ask(capsys, *words, "--host", "vllm")
    assert hosted["predicted_plain_s"] - bare["predicted_plain_s"] == pytest.approx(1.207e-3 + 8e-6)
    drafted = ask(capsys, *words, "--drafter", "eagle3", "--host", "vllm")
    assert drafted["predicted_plain_s"] == pytest.approx(hosted["predicted_plain_s"])
    assert run(["diagnose", "--k", "3", "--plain-ms", "10", "--tpot-ms", "6", "--host", "vllm"]) == 2
    assert "--host is for the model's own numbers" in capsys.readouterr().err
