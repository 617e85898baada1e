"""Acceptance: every description gives the same length for the same rounds, and impossible ones are refused."""

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tests.strategies  # noqa: F401 - loads the profile of the property tests
from rooflinekit.acceptance import (
    Constant,
    Survival,
    expected_tokens,
    from_conditional,
    from_histogram,
    from_length,
    solve_alpha,
)
from rooflinekit.errors import AcceptanceError, RooflineError

TABLE = Path(__file__).parent / "reference" / "acceptance_by_position.csv"
with TABLE.open(encoding="utf-8") as _file:
    PUBLISHED = list(csv.DictReader(line for line in _file if not line.startswith("#")))

rates = st.one_of(
    st.floats(0.0, 1.0),
    st.sampled_from([0.0, 1.0, 0.5, 1e-300]),
    st.floats(1e-16, 1e-3).map(lambda gap: 1.0 - gap),
)
chains = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=16)
histograms = st.lists(st.integers(0, 10**6), min_size=2, max_size=17).filter(any)


# --- the closed form


@given(rates, st.integers(0, 64))
def test_the_closed_form_is_the_sum_of_powers(alpha, k):
    """1 + alpha + alpha^2 + ... + alpha^K, also where alpha is almost 1 and the quotient loses digits."""
    assert expected_tokens(alpha, k) == pytest.approx(sum(alpha**i for i in range(k + 1)), rel=1e-12)


@given(st.lists(rates, min_size=1, max_size=6), st.lists(st.integers(0, 40), min_size=1, max_size=6))
def test_the_closed_form_takes_arrays(alphas, ks):
    """A grid in one call; endpoints 0 and 1 need no special case and warn of nothing."""
    grid = expected_tokens(np.array(alphas)[:, None], np.array(ks)[None, :])
    assert grid.shape == (len(alphas), len(ks))
    assert grid == pytest.approx(np.array([[expected_tokens(a, k) for k in ks] for a in alphas]), rel=1e-13)


def test_the_ends_of_the_closed_form():
    """Nothing accepted: the bonus token alone. All accepted: K + 1. No drafts: one token."""
    assert expected_tokens(0.0, 7) == 1.0
    assert expected_tokens(1.0, 7) == 8.0
    assert expected_tokens(0.3, 0) == pytest.approx(1.0)
    assert expected_tokens(0.8, 4) == pytest.approx(3.3616)
    assert isinstance(expected_tokens(0.8, 4), float)


@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.integers(1, 40))
def test_more_acceptance_and_more_drafts_never_emit_fewer_tokens(alpha, other, k):
    """The length grows with alpha and with K, and stays between 1 and K + 1."""
    low, high = sorted((alpha, other))
    assert 1.0 <= expected_tokens(low, k) <= expected_tokens(high, k) * (1 + 1e-12)
    assert expected_tokens(high, k) <= min(expected_tokens(high, k + 1), k + 1.0) * (1 + 1e-12)


# --- its inverse


@given(st.floats(0.0, 1.0), st.integers(1, 40))
def test_solving_for_alpha_undoes_the_closed_form(alpha, k):
    """A length measured at K gives back the rate that made it, wherever a rate leaves a trace."""
    length = expected_tokens(alpha, k)
    found = solve_alpha(length, k)
    assert 0.0 <= found <= 1.0
    assert expected_tokens(found, k) == pytest.approx(length, rel=1e-9)
    assert found == pytest.approx(alpha, abs=1e-7)


@pytest.mark.parametrize(
    ("length", "k", "alpha"), [(1.0, 5, 0.0), (6.0, 5, 1.0), (1.8, 1, 0.8), (1.75, 2, 0.5)]
)
def test_known_inverses(length, k, alpha):
    """Lengths 1 and K + 1 are rates 0 and 1; at K = 1 the rate is the length less the bonus."""
    assert solve_alpha(length, k) == pytest.approx(alpha, abs=1e-9)


@pytest.mark.parametrize(
    ("length", "k"), [(0.99, 4), (5.01, 4), (0.0, 4), (-1.0, 4), (float("nan"), 4), (float("inf"), 4)]
)
def test_an_impossible_length_is_refused_with_its_range(length, k):
    """It lies between 1 and K + 1; a smaller one mostly leaves out the bonus token, and the message says so."""
    with pytest.raises(AcceptanceError, match=r"between 1 and 5.*bonus"):
        solve_alpha(length, k)


# --- conditional rates, survival, histogram: three views of the same rounds


@given(chains)
def test_the_length_is_one_plus_the_sum_of_products(conditional):
    """A = 1 + sum over i of alpha_1 ... alpha_i, at every K."""
    found = from_conditional(conditional)
    for k in range(len(conditional) + 1):
        expected = 1.0 + sum(np.prod(conditional[: i + 1]) for i in range(k))
        assert found.expected(k) == pytest.approx(expected)
    assert found.max_k == len(conditional)


@given(st.floats(0.0, 1.0), st.integers(1, 20))
def test_equal_rates_are_the_closed_form(alpha, k):
    """A chain of the same rate is Leviathan's case."""
    assert from_conditional([alpha] * k).expected(k) == pytest.approx(Constant(alpha).expected(k))


@given(histograms)
def test_a_histogram_is_counted_one_round_after_the_other(counts):
    """Mean of accepted + 1 over the rounds, drafts beyond K thrown away."""
    found, rounds = from_histogram(counts), sum(counts)
    for k in range(1, len(counts)):
        tokens = sum(n * (min(accepted, k) + 1) for accepted, n in enumerate(counts))
        assert found.expected(k) == pytest.approx(tokens / rounds)
    assert found.rounds == rounds
    assert list(found.values) == sorted(found.values, reverse=True)


@given(st.lists(st.floats(0.0, 1e3), min_size=2, max_size=17).filter(lambda counts: sum(counts) > 1e-3))
def test_weighted_histograms_are_histograms_too(counts):
    """Counts may be shares or weighted means; rounding in their sum must not refuse them."""
    found = from_histogram(counts)
    assert all(0.0 <= value <= 1.0 for value in found.values)


def test_no_round_that_accepts_nothing_is_a_survival_of_one():
    """Shares that add up to one by decimals: the first draft is accepted always, not 1 + 2e-16 of the time."""
    assert from_histogram([0.0, 0.3, 0.2, 0.1, 0.4]).values[0] == pytest.approx(1.0)
    assert from_histogram([0, 0.1, 0.7, 0.2, 0.3, 0.1]).values[0] == pytest.approx(1.0)


def test_survival_of_arrays_is_that_of_its_elements():
    """Whole K as float or integer arrays; a float for one K."""
    found = Survival((0.9, 0.6, 0.3))
    assert found.expected(np.array([1.0, 2.0, 3.0])) == pytest.approx([1.9, 2.5, 2.8])
    assert found.expected(np.arange(1, 4)[:, None]).shape == (3, 1)
    assert found.expected(3.0) == pytest.approx(2.8)
    assert isinstance(found.expected(3), float)


@pytest.mark.parametrize("k", [4, 1.5, -1, np.array([1.0, 4.0])])
def test_survival_says_nothing_about_a_k_that_was_not_measured(k):
    """Beyond the vector, between whole numbers and below zero there is no answer."""
    with pytest.raises(AcceptanceError, match=r"K = 1\.\.3"):
        Survival((0.9, 0.6, 0.3)).expected(k)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ((), "empty"),
        ((1.2,), "position 1"),
        ((-0.1,), "position 1"),
        ((0.5, float("nan")), "position 2"),
        ((0.5, 0.6), "multiply them up"),
        ((0.9, 0.5, 0.51), "position 3"),
    ],
)
def test_vectors_that_no_rounds_can_give_are_refused(values, words):
    """Probabilities that rise are mostly conditional ones, and the message says what to do."""
    with pytest.raises(AcceptanceError, match=words):
        Survival(values)


@pytest.mark.parametrize("counts", [[], [5], [0, 0], [1, -1, 3], [float("nan"), 1.0], [float("inf"), 1.0]])
def test_histograms_that_count_nothing_are_refused(counts):
    """Fewer than two cells, none filled, negative or not finite."""
    with pytest.raises(AcceptanceError):
        from_histogram(counts)


@pytest.mark.parametrize("alpha", [-0.01, 1.01, float("nan"), float("inf"), np.array([0.5, 1.5])])
def test_rates_outside_zero_to_one_are_refused(alpha):
    """A rate is a probability, alone or in an array."""
    with pytest.raises(AcceptanceError, match=r"0\.\.1"):
        Constant(alpha)


@pytest.mark.parametrize("rates_", [[1.2, 0.5], [0.5, 1.5], [0.8, -0.5], [0.0, 5.0]])
def test_conditional_rates_outside_zero_to_one_are_refused(rates_):
    """Also where the product hides them."""
    with pytest.raises(AcceptanceError):
        from_conditional(rates_)


@given(st.floats(1.0, 6.0))
def test_a_length_gives_the_constant_rate_that_makes_it(length):
    """At the K it was measured with, the length comes back; the label says that alpha was assumed constant."""
    found = from_length(length, 5)
    assert found.expected(5) == pytest.approx(length, rel=1e-9)
    assert "constant alpha" in found.label
    assert found.max_k is None
    assert found.rounds is None


def test_labels_are_one_line():
    """For tables and plots."""
    assert Constant(0.8).label == "alpha 0.8"
    assert Constant(np.array([0.5, 0.8])).label == "alpha"
    assert Survival(tuple(np.linspace(0.9, 0.1, 9))).label.endswith(", ...")


# --- draws for intervals


@given(
    st.lists(st.integers(1, 500), min_size=2, max_size=9).filter(lambda c: sum(c) > 200), st.integers(0, 5)
)
def test_draws_are_survival_vectors_around_the_counted_one(counts, seed):
    """Non-increasing, in 0..1, and their mean is the counted one but for the weight of a prior."""
    found = from_histogram(counts)
    table = np.array([draw.values for draw in found.draws(400, seed)])
    assert np.all((table >= 0) & (table <= 1))
    assert np.all(np.diff(table, axis=1) <= 0)
    rounds, cells, mean = sum(counts), len(counts), np.array(found.values)
    prior = 0.5 * cells / rounds  # at most half a round a cell
    error = 5 * np.sqrt((mean * (1 - mean) + prior) / rounds / 400) + prior
    assert np.all(np.abs(table.mean(axis=0) - mean) <= error)


def test_draws_are_the_same_for_the_same_seed():
    """A recommendation printed twice shows the same interval."""
    found = Survival((0.8, 0.5), 1000)
    assert found.draws(5, 3) == found.draws(5, 3)
    assert found.draws(5, 3) != found.draws(5, 4)


def test_draws_tighten_with_the_rounds():
    """A hundred times the rounds, a tenth of the spread."""
    few, many = (np.std([d.expected(2) for d in Survival((0.8, 0.5), n).draws(400)]) for n in (100, 10_000))
    assert few / many == pytest.approx(10.0, rel=0.25)


def test_draws_need_counts():
    """A vector without its rounds has no interval."""
    with pytest.raises(RooflineError, match="rounds"):
        Survival((0.8, 0.5)).draws(10)


# --- published


@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: f"{row['source']} {row['case']}")
def test_published_rates_by_position_give_the_published_length(row):
    """DSpark's figure and table agree within 1 %; EAGLE's chain within 6 %, its depth being a guess."""
    found = from_conditional([float(rate) for rate in row["rates"].split()])
    assert found.max_k is not None
    tolerance = {"dspark": 0.01, "eagle": 0.06}[row["source"]]
    assert found.expected(found.max_k) == pytest.approx(float(row["length"]), rel=tolerance)


def test_per_position_rates_of_an_engine_are_survivals():
    """A public vLLM report prints 0.844, 0.599, 0.385, 0.271 and a mean of 52.5 % drafts: length 3.099."""
    found = Survival((0.844, 0.599, 0.385, 0.271))
    assert found.expected(4) == pytest.approx(3.099)
    assert (found.expected(4) - 1) / 4 == pytest.approx(0.525, abs=5e-4)
    assert Survival((0.766, 0.545)).expected(2) == pytest.approx(2.311)
