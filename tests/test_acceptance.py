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
    Decaying,
    Mixture,
    Survival,
    expected_tokens,
    from_conditional,
    from_histogram,
    from_length,
    from_lengths,
    solve_alpha,
)
from rooflinekit.acceptance.fits import fit_constant, fit_decay, fit_rate
from rooflinekit.acceptance.posterior import beta_interval, chi_square_tail
from rooflinekit.acceptance.table import by_position
from rooflinekit.errors import AcceptanceError

REFERENCE = Path(__file__).parent / "reference"


def rows_of(name):
    """Rows of a table of published values."""
    with (REFERENCE / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


PUBLISHED = rows_of("acceptance_by_position.csv")
SURVIVALS = rows_of("acceptance_survival.csv")

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


# --- what every kind offers

KINDS = [
    Constant(0.7),
    Constant(0.7, trials=(70.0, 30.0), counted=50),
    Decaying(0.85, 0.6),
    Decaying(0.5, 0.75),
    Decaying(0.8, 0.6, counts=(20.0, 30.0, 50.0)),
    Survival((0.8, 0.5, 0.2)),
    from_histogram([20, 30, 25, 25]),
    from_lengths({1: 1.79, 2: 2.27, 4: 2.54}),
    Mixture((1.0, 3.0), (Constant(0.9), from_histogram([20, 30, 25, 25]))),
    Mixture((0.5, 0.5), (Constant(0.9), Decaying(0.4, 0.2))),
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.label)
def test_every_kind_keeps_the_contract(kind):
    """A = 1 + cumulative survival, survival = product of conditional rates, floats and arrays alike."""
    top = kind.max_k or 6
    places = np.arange(1.0, top + 1)
    survival, conditional = kind.survival_at(places), kind.conditional_at(places)
    assert np.all((survival >= 0) & (survival <= 1))
    assert np.all(np.diff(survival) <= 1e-12)
    assert np.cumprod(conditional) == pytest.approx(survival)
    assert kind.expected(places) == pytest.approx(1.0 + np.cumsum(survival))
    assert kind.expected(0) == pytest.approx(1.0)
    for call in (kind.expected, kind.survival_at, kind.conditional_at):
        assert isinstance(call(2), float)
        assert call(2) == pytest.approx(call(places)[1])
        assert call(places[:, None]).shape == (top, 1)
    assert isinstance(kind.warnings, tuple)
    assert "\n" not in kind.label
    with pytest.raises(AcceptanceError, match="position 0"):
        kind.survival_at(0)
    with pytest.raises(AcceptanceError, match="position"):
        kind.conditional_at(np.array([1.0, -2.0]))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.label)
def test_draws_of_every_kind(kind):
    """Shape (count, *k.shape), equal for equal seeds, around A; none where nothing was counted."""
    ks = np.array([[1.0, 2.0], [3.0, 0.0]])
    drawn = kind.expected_draws(ks, 500, 3)
    if kind.rounds is None:
        assert drawn is None
        return
    assert drawn.shape == (500, 2, 2)
    assert kind.expected_draws(2.0, 7).shape == (7,)
    assert np.array_equal(drawn, kind.expected_draws(ks, 500, 3))
    assert not np.array_equal(drawn, kind.expected_draws(ks, 500, 4))
    assert np.all((drawn >= 1 - 1e-12) & (drawn <= 1 + ks + 1e-12))
    assert drawn[:, 1, 1] == pytest.approx(1.0)
    assert np.all(np.diff(drawn[:, [1, 0, 0, 1], [1, 0, 1, 0]], axis=1) >= 0)
    if not isinstance(kind, Decaying):  # whose few counts are not those of the rates it was given
        assert drawn.mean(axis=0) == pytest.approx(kind.expected(ks), rel=0.05)


def test_a_conditional_rate_that_nothing_reaches_is_zero():
    """Not a division by zero."""
    assert Survival((0.5, 0.0, 0.0)).conditional_at(np.arange(1, 4)) == pytest.approx([0.5, 0.0, 0.0])


@pytest.mark.parametrize("k", [-1, 1.5])
def test_a_decay_needs_whole_k(k):
    """Between whole numbers there is no product."""
    with pytest.raises(AcceptanceError, match="whole number"):
        Decaying(0.8, 0.6).expected(k)


@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.integers(1, 20))
def test_a_decay_is_the_product_of_its_rates(first, limit, k):
    """alpha_i = limit + (first - limit) / 2^(i-1), multiplied up and summed; equal rates are the closed form."""
    rates_ = [limit + (first - limit) / 2**i for i in range(k)]
    assert Decaying(first, limit).expected(k) == pytest.approx(from_conditional(rates_).expected(k))
    assert Decaying(first, first).expected(k) == pytest.approx(expected_tokens(first, k))


@pytest.mark.parametrize("pair", [(1.1, 0.5), (0.5, -0.1), (float("nan"), 0.5)])
def test_a_decay_outside_zero_to_one_is_refused(pair):
    """Both numbers are probabilities."""
    with pytest.raises(AcceptanceError, match=r"0\.\.1"):
        Decaying(*pair)


# --- histogram and draws


@given(histograms)
def test_a_histogram_comes_back_whole(counts):
    """Survival with its rounds is lossless."""
    assert from_histogram(counts).counts == tuple(map(float, counts))


def test_shares_are_not_counts():
    """A histogram of fractions says how acceptance lies, not how often it was seen."""
    found = from_histogram([0.2, 0.3, 0.5])
    assert found.values == pytest.approx((0.8, 0.5))
    assert (found.rounds, found.counts) == (None, None)
    assert Survival((0.8, 0.5)).counts is None


@given(
    st.lists(st.integers(1, 500), min_size=2, max_size=9).filter(lambda c: sum(c) > 200), st.integers(0, 5)
)
def test_draws_lie_around_the_counted_lengths(counts, seed):
    """Survivals non-increasing, in 0..1, and their mean is the counted one but for the weight of a prior."""
    found = from_histogram(counts)
    top = len(counts) - 1
    table = np.diff(found.expected_draws(np.arange(top + 1.0), 400, seed), axis=1)
    assert np.all((table >= 0) & (table <= 1))
    assert np.all(np.diff(table, axis=1) <= 1e-9)
    rounds, cells, mean = sum(counts), len(counts), np.array(found.values)
    prior = 0.5 * cells / rounds  # at most half a round a cell
    error = 5 * np.sqrt((mean * (1 - mean) + prior) / rounds / 400) + prior
    assert np.all(np.abs(table.mean(axis=0) - mean) <= error)


def test_draws_tighten_with_the_rounds():
    """A hundred times the rounds, a tenth of the spread."""
    few, many = (np.std(Survival((0.8, 0.5), n).expected_draws(2.0, 400)) for n in (100, 10_000))
    assert few / many == pytest.approx(10.0, rel=0.25)


def test_the_interval_of_a_survival_is_that_of_a_beta():
    """The tail of a Dirichlet is a Beta: 50 of 100 rounds and two thirds of a prior round against a third."""
    from scipy.stats import beta

    row = by_position(from_histogram([20, 30, 50]))[1]
    low, high = beta(50 + 1 / 3, 50 + 2 / 3).ppf([0.05, 0.95])
    assert (row.survival_low, row.survival_high) == pytest.approx((low, high), abs=0.005)
    assert row.acceptance_length == pytest.approx(2.3)
    assert row.length_low < 2.3 < row.length_high


# --- lengths by K


def test_lengths_by_k_give_their_differences():
    """S_K = A(K) - A(K-1); DeepSeek-V4-Pro MTP at K = 1 .. 4, golden curve of InferenceX."""
    found = from_lengths({4: 2.54, 1: 1.79, 2: 2.27, 3: 2.49})
    assert found.values == pytest.approx((0.79, 0.48, 0.22, 0.05))
    assert found.warnings == ()
    assert (found.max_k, found.rounds) == (4, None)


def test_k_between_those_measured_are_filled_in_and_said():
    """K = 1 and 4: the three drafts between share the difference."""
    found = from_lengths({1: 1.8, 4: 3.0})
    assert found.values == pytest.approx((0.8, 0.4, 0.4, 0.4))
    assert any("K = 2, 3 was not measured" in one for one in found.warnings)


def test_lengths_that_fall_past_the_block_are_said():
    """DSpark of DeepSeek-V4-Pro: 3.77 at K = 6, 3.47 at K = 8. What falls is held at its highest."""
    curve = {1: 1.84, 2: 2.51, 3: 3.01, 4: 3.36, 5: 3.61, 6: 3.77, 7: 3.73, 8: 3.47}
    found = from_lengths(curve)
    assert found.expected(np.arange(1, 7)) == pytest.approx([curve[k] for k in range(1, 7)])
    assert found.expected(8) == pytest.approx(3.77)
    assert any("falls from 3.77 at K = 6 to 3.47 at K = 8" in one for one in found.warnings)
    assert not found.faults


def test_differences_that_rise_are_pooled():
    """Two digits cannot tell 0.24 then 0.36 from noise: both become 0.3, and the length at their end stays."""
    found = from_lengths({1: 1.8, 2: 2.04, 3: 2.4})
    assert found.values == pytest.approx((0.8, 0.3, 0.3))
    assert found.expected(3) == pytest.approx(2.4)
    assert any("smoothed, at most 0.06 tokens off (K = 2)" in one for one in found.warnings)


@given(chains)
def test_lengths_of_a_survival_give_it_back(conditional):
    """Without noise nothing is pooled."""
    found = from_conditional(conditional)
    lengths = {k: min(float(found.expected(k)), k + 1.0) for k in range(1, len(conditional) + 1)}
    again = from_lengths(lengths)
    assert again.values == pytest.approx(found.values, abs=1e-9)
    assert again.warnings == ()


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=10))
def test_any_possible_lengths_give_a_survival(shares):
    """Whatever was measured, noise included, the nearest survival vector comes out."""
    found = from_lengths({k: 1.0 + share * k for k, share in enumerate(shares, start=1)})
    assert len(found.values) == len(shares)


@pytest.mark.parametrize("lengths", [{}, {0: 1.0}, {1: 2.1}, {2: 0.9}, {1: float("nan")}])
def test_impossible_lengths_are_refused(lengths):
    """None, K = 0, and lengths outside 1 .. K + 1."""
    with pytest.raises(AcceptanceError):
        from_lengths(lengths)


# --- mixtures


@given(
    st.lists(st.tuples(st.floats(0.01, 10.0), st.floats(0.0, 1.0)), min_size=1, max_size=5),
    st.integers(1, 12),
)
def test_a_mixture_lies_between_its_members(parts, k):
    """Weighted mean of lengths and survivals; never past the best or below the worst member."""
    weights, alphas = zip(*parts, strict=True)
    found = Mixture(weights, tuple(map(Constant, alphas)))
    lengths = [expected_tokens(alpha, k) for alpha in alphas]
    assert min(lengths) - 1e-9 <= found.expected(k) <= max(lengths) + 1e-9
    assert found.expected(k) == pytest.approx(np.average(lengths, weights=weights))
    assert sum(found.weights) == pytest.approx(1.0)


def test_the_mean_of_alphas_is_not_the_alpha_of_the_mean():
    """A half at 0.9 and a half at 0.5, K = 4: (4.0951 + 1.9375) / 2 = 3.0163; all at 0.7: 2.7731 (by hand)."""
    found = Mixture((1.0, 1.0), (Constant(0.9), Constant(0.5)))
    assert found.expected(4) == pytest.approx(3.0163, abs=1e-4)
    assert expected_tokens(0.7, 4) == pytest.approx(2.7731, abs=1e-4)
    assert solve_alpha(found.expected(4), 4) == pytest.approx(0.745, abs=0.001)


def test_conditional_rates_of_a_mixture_rise():
    """Rounds that come far are mostly those of the best member: 0.7, then (0.81 + 0.25) / 1.4, ..."""
    rates_ = Mixture((1.0, 1.0), (Constant(0.9), Constant(0.5))).conditional_at(np.arange(1, 6))
    assert rates_[:2] == pytest.approx([0.7, 1.06 / 1.4])
    assert np.all(np.diff(rates_) > 0)
    assert rates_[-1] < 0.9


def test_a_mixture_is_as_short_as_its_shortest_member():
    """And counts the rounds of those that were counted, saying which were not."""
    counted = from_histogram([20, 30, 50])
    found = Mixture((2.0, 1.0), (counted, Survival((0.9, 0.8, 0.7))))
    assert (found.max_k, found.rounds) == (2, 100)
    assert any("not counted" in one for one in found.warnings)
    spread = np.std(found.expected_draws(2.0, 4000)) / np.std(counted.expected_draws(2.0, 4000))
    assert spread == pytest.approx(2 / 3, rel=0.1)


@pytest.mark.parametrize(
    ("weights", "members"),
    [((), ()), ((1.0,), ()), ((0.0,), (Constant(0.5),)), ((float("nan"),), (Constant(0.5),))],
)
def test_mixtures_of_nothing_are_refused(weights, members):
    """One positive weight for each member."""
    with pytest.raises(AcceptanceError):
        Mixture(weights, members)


# --- signs of a fault


def test_a_cliff_is_a_warning_and_not_a_fit():
    """0.80 0.60 0.01: a drafter whose later positions see wrong inputs."""
    found = Survival((0.80, 0.60, 0.01, 0.01, 0.0, 0.0), 105)
    assert any("breaks off after position 2" in one for one in found.warnings)
    for fit in (fit_constant(found), fit_decay(found)):
        assert not fit.adequate
        assert fit.warnings == found.faults


@pytest.mark.parametrize(
    "values",
    [(0.8, 0.6, 0.45), (0.29, 0.062, 0.0115), (0.79, 0.48, 0.22, 0.05, 0.01), (0.1, 0.0), (1.0, 1.0)],
)
def test_weak_drafters_are_no_faults(values):
    """Published ones that fall fast (Qwen3-VL EAGLE-3, DeepSeek-V4-Pro MTP), and a poor one."""
    assert Survival(values).warnings == ()


# --- fits


def counted_rounds(rng, rates_, rounds):
    """Histogram of rounds whose drafts are accepted with these conditional rates, by simulation."""
    passed = rng.random((rounds, len(rates_))) < np.asarray(rates_)
    accepted = np.cumprod(passed, axis=1).sum(axis=1)
    return from_histogram(np.bincount(accepted, minlength=len(rates_) + 1).tolist())


@given(histograms)
def test_the_fitted_constant_is_accepted_over_reached(counts):
    """The closed form of largest likelihood: a censored geometric count."""
    fit = fit_constant(from_histogram(counts))
    accepted = sum(n * j for j, n in enumerate(counts))
    refused = sum(counts[:-1])
    one = fit.estimates["alpha"]
    assert one.estimate == pytest.approx(accepted / (accepted + refused))
    assert 0.0 <= one.low <= one.estimate <= one.high <= 1.0


def test_intervals_are_those_of_a_beta():
    """Jeffreys: Beta(accepted + 1/2, refused + 1/2)."""
    from scipy.stats import beta

    for accepted, refused in ((8, 2), (0, 5), (7000, 3000), (10**6, 3)):
        ends = beta(accepted + 0.5, refused + 0.5).ppf([0.05, 0.95])
        assert beta_interval(accepted, refused) == pytest.approx(tuple(ends), rel=3e-3, abs=1e-6)


def test_the_chi_square_tail_is_that_of_scipy():
    """Odd and even degrees, centre and tail."""
    from scipy.stats import chi2

    for degrees in range(1, 17):
        for value in (0.0, 0.3, 2.0, 10.0, 40.0):
            assert chi_square_tail(value, degrees) == pytest.approx(chi2.sf(value, degrees), rel=1e-9)


@pytest.mark.parametrize("counts", [[20, 15, 9, 5, 3], [300, 100, 80, 70, 60, 390], [1, 1, 1, 40]])
def test_the_fitted_decay_is_the_one_of_largest_likelihood(counts):
    """Found again by another optimiser; and no pair near it is likelier."""
    from scipy.optimize import minimize

    tail = np.cumsum(counts[::-1])[::-1]
    reached, accepted = tail[:-1], tail[1:]

    def loss(pair):
        share = 0.5 ** np.arange(len(reached))
        rate = np.clip(pair[1] + (pair[0] - pair[1]) * share, 1e-12, 1 - 1e-12)
        return -np.sum(accepted * np.log(rate) + (reached - accepted) * np.log1p(-rate))

    best = minimize(loss, [0.6, 0.6], bounds=[(1e-9, 1 - 1e-9)] * 2, method="L-BFGS-B")
    fit = fit_decay(from_histogram(counts))
    assert loss([fit.model.first, fit.model.limit]) <= best.fun + 1e-6
    assert (fit.model.first, fit.model.limit) == pytest.approx(tuple(best.x), abs=2e-3)


def test_intervals_of_a_decay_are_normal_where_counts_are_many():
    """Estimate plus and minus 1.645 standard errors of the observed information."""
    counts = [24_000, 20_000, 15_000, 11_000, 30_000]
    fit = fit_decay(from_histogram(counts))
    tail = np.cumsum(counts[::-1])[::-1].astype(float)
    share = 0.5 ** np.arange(4)
    rate = fit.model.limit + (fit.model.first - fit.model.limit) * share
    weight = tail[1:] / rate**2 + (tail[:-1] - tail[1:]) / (1 - rate) ** 2
    jacobian = np.stack([share, 1 - share])
    errors = np.sqrt(np.diag(np.linalg.inv(jacobian * weight @ jacobian.T)))
    for one, error in zip(fit.estimates.values(), errors, strict=True):
        assert one.high - one.low == pytest.approx(2 * 1.645 * error, rel=0.03)


def test_intervals_of_a_constant_hold_the_truth_at_their_rate():
    """90 % of 400 simulated experiments, within what chance allows (four standard errors, 6 %)."""
    rng, alpha = np.random.default_rng(1), 0.7
    hits = [
        one.low <= alpha <= one.high
        for one in (fit_constant(counted_rounds(rng, [alpha] * 4, 60)).estimates["alpha"] for _ in range(400))
    ]
    assert np.mean(hits) == pytest.approx(0.9, abs=0.06)


def test_intervals_from_totals_hold_the_truth_at_their_rate():
    """Accepted and proposed drafts alone, without the histogram."""
    rng, hits = np.random.default_rng(2), []
    for _ in range(400):
        found = counted_rounds(rng, [0.6] * 5, 80)
        accepted = sum(n * j for j, n in enumerate(found.counts))
        low, high = beta_interval(*fit_rate(accepted, 400, 5).trials)
        hits.append(low <= 0.6 <= high)
    assert np.mean(hits) == pytest.approx(0.9, abs=0.06)


def test_intervals_of_a_decay_hold_the_truth_at_their_rate():
    """Both rates of a falling chain, 150 experiments of 200 rounds (four standard errors, 10 %)."""
    rng, truth = np.random.default_rng(3), Decaying(0.85, 0.55)
    rates_ = truth.conditional_at(np.arange(1, 6))
    hits = []
    for _ in range(150):
        found = fit_decay(counted_rounds(rng, rates_, 200)).estimates
        hits.append(
            [
                one.low <= value <= one.high
                for one, value in ((found["first"], truth.first), (found["limit"], truth.limit))
            ]
        )
    assert np.mean(hits, axis=0) == pytest.approx([0.9, 0.9], abs=0.1)


def test_lengths_of_draws_hold_the_truth_at_their_rate():
    """The interval of A(4) from a histogram of 80 rounds."""
    rng, rates_ = np.random.default_rng(4), [0.8, 0.7, 0.65, 0.6]
    truth = float(from_conditional(rates_).expected(4))
    hits = []
    for _ in range(300):
        low, high = np.quantile(counted_rounds(rng, rates_, 80).expected_draws(4.0, 400), [0.05, 0.95])
        hits.append(low <= truth <= high)
    assert np.mean(hits) == pytest.approx(0.9, abs=0.07)


def test_the_goodness_of_fit_keeps_its_level():
    """A constant truth is called inadequate in about 5 % of experiments, and a steep decay nearly always."""
    rng = np.random.default_rng(5)
    small = [fit_constant(counted_rounds(rng, [0.75] * 5, 500)).p_value < 0.05 for _ in range(300)]
    assert np.mean(small) == pytest.approx(0.05, abs=0.05)
    steep = Decaying(0.9, 0.5)
    found = [counted_rounds(rng, steep.conditional_at(np.arange(1, 6)), 500) for _ in range(30)]
    assert not any(fit_constant(one).adequate for one in found)
    assert np.mean([fit_decay(one).adequate for one in found]) > 0.8


def test_a_close_fit_is_good_enough_however_many_rounds_refute_it():
    """Two million rounds see a difference of 0.3 % that no recommendation would."""
    found = Survival((0.800, 0.642, 0.515), 2_000_000)
    fit = fit_constant(found)
    assert fit.p_value < 1e-6
    assert fit.worst_error < 0.01
    assert fit.adequate


def test_fits_of_shares_have_no_interval():
    """Published rates without rounds: an estimate and how far off it is, no more."""
    fit = fit_decay(from_conditional([0.79, 0.74, 0.72, 0.73, 0.67]))
    assert [one.low for one in fit.estimates.values()] == [None, None]
    assert (fit.deviance, fit.p_value) == (None, None)
    assert fit.model.expected_draws(3.0, 5) is None
    assert fit.worst_error < 0.01


def test_a_decay_needs_two_positions():
    """One says nothing about the second."""
    with pytest.raises(AcceptanceError, match="two positions"):
        fit_decay(from_histogram([3, 7]))


def test_accepted_over_proposed_is_not_alpha():
    """313 of 912 drafts at K = 16: 57 rounds, A = 1 + 5.49; alpha 0.856 and not 0.343 (a public llama.cpp report)."""
    found = fit_rate(313, 912, 16)
    assert found.alpha == pytest.approx(0.856, abs=0.002)
    assert found.rounds == 57
    assert found.expected(16) == pytest.approx(1 + 313 / 57)


@pytest.mark.parametrize("totals", [(5, 4, 2), (-1, 4, 2), (1, 4, 0), (1, 2, 4), (float("nan"), 4, 2)])
def test_totals_that_no_rounds_give_are_refused(totals):
    """More accepted than proposed, and rounds of no drafts."""
    with pytest.raises(AcceptanceError):
        fit_rate(*totals)


# --- published


@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: f"{row['source']} {row['case']}")
def test_published_rates_by_position_give_the_published_length(row):
    """DSpark's figure and table agree within 1 %; EAGLE's chain within 6 %, its depth being a guess."""
    found = from_conditional([float(rate) for rate in row["rates"].split()])
    assert found.max_k is not None
    tolerance = {"dspark": 0.01, "eagle": 0.06}[row["source"]]
    assert found.expected(found.max_k) == pytest.approx(float(row["length"]), rel=tolerance)


@pytest.mark.parametrize("row", SURVIVALS, ids=lambda row: f"{row['source']} {row['case']}")
def test_published_survivals_sum_to_the_published_length(row):
    """Engines print survivals by position; one and their sum is the length they print (to two digits)."""
    found = Survival(tuple(map(float, row["survival"].split())))
    assert found.expected(found.max_k) == pytest.approx(float(row["length"]), abs=0.015)
    assert bool(found.faults) == (row["case"] == "broken")


@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: f"{row['source']} {row['case']}")
def test_a_decay_describes_published_rates(row):
    """Every length within 1.2 % where a constant alpha misses by up to 5.7 % (decision 12)."""
    found = from_conditional([float(rate) for rate in row["rates"].split()])
    decay, constant = fit_decay(found), fit_constant(found)
    assert decay.worst_error < 0.012
    assert decay.worst_error < constant.worst_error
    assert constant.worst_error < 0.058
