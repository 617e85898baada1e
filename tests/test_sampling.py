"""Sampling: exact rules leave the target's distribution, lossy ones say by how much they do not.

The oracles here are written out in plain loops and do not share code with the library: every drafted string,
every coin, every replacement is followed one by one.
"""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflinekit.acceptance import expected_tokens
from rooflinekit.errors import AcceptanceError
from rooflinekit.sampling import (
    Chain,
    acceptance_rate,
    blended,
    block_outcomes,
    contexts,
    divergence,
    draft_at,
    greedy,
    length_distribution,
    random_distributions,
    recursive_rejection,
    relaxed,
    residual,
    round_outcomes,
    sequence_distribution,
    simulate,
    speculative,
    target_only,
    target_sequences,
    tempered,
    top_ranks,
    total_variation,
    typical,
)

P, Q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.5, 0.3])
EXACT = 1e-12


@st.composite
def pairs(draw, largest=6):
    """A target and a drafter over the same tokens; some probabilities are zero, some pairs are equal."""
    size = draw(st.integers(2, largest))
    weights = st.lists(st.integers(0, 50), min_size=size, max_size=size).filter(any)
    one = np.array(draw(weights), dtype=float)
    other = one if draw(st.integers(0, 9)) == 0 else np.array(draw(weights), dtype=float)
    return one / one.sum(), other / other.sum()


def chain(rule=speculative, vocab=3, order=1, seed=0, agreement=0.5):
    """A random chain whose drafter differs from context to context."""
    states = vocab**order
    target = random_distributions((states, vocab), seed)
    draft = agreement * target + (1 - agreement) * random_distributions((states, vocab), seed + 1)
    return Chain(rule(target, draft), contexts(vocab, order))


# One position


def test_the_worked_example_by_hand():
    """sum min(p, q) = 0.2 + 0.3 + 0.2; rejected drafts (0.3) can only become token 0."""
    verdict = speculative(P, Q)
    assert float(acceptance_rate(P, Q)) == pytest.approx(0.7, abs=1e-15)
    assert float(verdict.acceptance) == pytest.approx(0.7, abs=1e-15)
    np.testing.assert_allclose(verdict.accept, [1.0, 0.6, 2 / 3], atol=1e-15)
    np.testing.assert_allclose(residual(P, Q), [1.0, 0.0, 0.0], atol=1e-15)
    np.testing.assert_allclose(verdict.replaced, [0.3, 0.0, 0.0], atol=1e-15)
    np.testing.assert_allclose(verdict.output, P, atol=1e-15)


@given(pairs())
def test_speculative_sampling_leaves_the_target(pair):
    verdict = speculative(*pair)
    np.testing.assert_allclose(verdict.output, pair[0], atol=EXACT)
    assert verdict.lossless
    assert float(verdict.total_variation) < EXACT
    assert float(verdict.divergence) < EXACT
    assert abs(float(verdict.gain)) < EXACT


@given(pairs())
def test_the_rate_is_one_minus_total_variation(pair):
    """sum min(p, q) = 1 - max over events |p(A) - q(A)|, the events enumerated."""
    p, q = pair
    events = itertools.product([False, True], repeat=len(p))
    largest = max(abs((p - q)[np.array(event)].sum()) for event in events)
    assert float(acceptance_rate(p, q)) == pytest.approx(1.0 - largest, abs=EXACT)
    assert float(total_variation(p, q)) == pytest.approx(largest, abs=EXACT)
    assert 0.0 <= float(acceptance_rate(p, q)) <= 1.0 + EXACT


@given(pairs())
def test_no_exact_rule_accepts_more(pair):
    """Judging by the target alone is exact too, at sum p q <= sum min(p, q)."""
    p, q = pair
    verdict = target_only(p, q)
    np.testing.assert_allclose(verdict.output, p, atol=EXACT)
    assert verdict.lossless
    assert float(verdict.acceptance) == pytest.approx(float(p @ q), abs=EXACT)
    assert float(verdict.gain) <= EXACT


@given(pairs())
def test_a_greedy_drafter_is_judged_alike_by_both(pair):
    p, q = pair[0], greedy(pair[1])
    one, other = speculative(p, q), target_only(p, q)
    assert float(one.acceptance) == pytest.approx(p[pair[1].argmax()], abs=EXACT)
    np.testing.assert_allclose(one.replaced, other.replaced, atol=EXACT)


@given(pairs())
def test_greedy_decoding_accepts_what_the_target_would_say(pair):
    verdict = speculative(greedy(pair[0]), greedy(pair[1]))
    assert float(verdict.acceptance) == float(pair[0].argmax() == pair[1].argmax())
    np.testing.assert_array_equal(verdict.output, greedy(pair[0]))


@given(pairs(), st.floats(0.05, 5.0))
def test_temperature_divides_logits(pair, temperature):
    p = pair[0] + 1e-3
    p /= p.sum()
    logits = np.log(p) / temperature
    expected = np.exp(logits - logits.max())
    np.testing.assert_allclose(tempered(p, temperature), expected / expected.sum(), atol=1e-9)


def test_temperature_zero_and_one():
    np.testing.assert_array_equal(tempered(P, 0.0), [1.0, 0.0, 0.0])
    np.testing.assert_allclose(tempered(P, 1.0), P, atol=1e-15)
    np.testing.assert_array_equal(tempered(P, 1e-9), [1.0, 0.0, 0.0])
    np.testing.assert_array_equal(greedy([0.4, 0.4, 0.2]), [1.0, 0.0, 0.0])


def test_divergence_by_hand():
    assert float(divergence([0.5, 0.5], [0.25, 0.75])) == pytest.approx(0.5 * np.log(2) + 0.5 * np.log(2 / 3))
    assert float(divergence([1.0, 0.0], [0.0, 1.0])) == np.inf
    assert float(divergence([1.0, 0.0], [1.0, 0.0])) == 0.0


@given(st.floats(0.05, 1.0), st.integers(0, 1000))
def test_a_drafter_of_a_wanted_rate_has_it(alpha, seed):
    target = random_distributions((5, 8), seed)
    target = 0.99 * target + 0.01 * np.eye(8)[:5]
    if alpha >= target.min(axis=-1).max():
        np.testing.assert_allclose(acceptance_rate(target, draft_at(target, alpha, seed)), alpha, atol=1e-9)


# Whole sequences


def emitted_by_hand(verdict, next_state, k, start, tokens):
    """Follow every draft, coin and replacement in nested loops; the distribution of the first tokens."""
    vocab = verdict.draft.shape[-1]
    found = {}

    def write(done, state, left, weight):
        if weight == 0.0:
            return
        if len(done) == tokens:
            found[done] = found.get(done, 0.0) + weight
            return
        if left == 0:
            for x in range(vocab):
                write((*done, x), next_state[state, x], k, weight * verdict.bonus[state, x])
            return
        for x in range(vocab):
            chance = weight * verdict.draft[state, x]
            write((*done, x), next_state[state, x], left - 1, chance * verdict.accept[state, x])
            rejected = 1.0 - verdict.accept[state, x]
            rest = np.maximum(verdict.target[state] - verdict.draft[state], 0.0)
            if rejected > 0.0:
                for y in range(vocab):
                    write((*done, y), next_state[state, y], k, chance * rejected * rest[y] / rest.sum())

    write((), start, k, 1.0)
    return found


@pytest.mark.parametrize("k", [1, 2, 3, 4])
@pytest.mark.parametrize("order", [0, 1, 2])
def test_sequences_are_those_of_the_target(k, order):
    one = chain(order=order, seed=k)
    outcomes = round_outcomes(one, k)
    for n in (1, 3, k + 2):
        exact = sequence_distribution(outcomes, one.next_state, n)
        np.testing.assert_allclose(exact, target_sequences(one.verdict.target, one.next_state, n), atol=EXACT)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_enumeration_follows_every_coin(k):
    one = chain(seed=5)
    exact = sequence_distribution(round_outcomes(one, k), one.next_state, 4)
    by_hand = emitted_by_hand(one.verdict, one.next_state, k, 2, 4)
    assert sum(by_hand.values()) == pytest.approx(1.0, abs=EXACT)
    for string, chance in by_hand.items():
        assert exact[(2, *string)] == pytest.approx(chance, abs=EXACT)
        plain = np.prod([one.verdict.target[s, x] for s, x in zip((2, *string), string, strict=False)])
        assert chance == pytest.approx(plain, abs=EXACT)


@given(st.integers(0, 500), st.integers(1, 4), st.floats(0.0, 1.0))
def test_every_way_to_the_acceptance_length_agrees(seed, k, agreement):
    """Powers of a matrix, and strings of tokens."""
    one = chain(seed=seed, agreement=agreement)
    lengths = length_distribution(round_outcomes(one, k))
    np.testing.assert_allclose(lengths.sum(axis=-1), 1.0, atol=EXACT)
    np.testing.assert_allclose(lengths @ np.arange(1, k + 2), one.length_by_state(k), atol=EXACT)
    assert 1.0 <= one.acceptance_length(k) <= k + 1 + EXACT
    assert one.survival(k).expected(k) == pytest.approx(one.acceptance_length(k), abs=EXACT)


@given(st.integers(0, 500), st.integers(1, 8), st.floats(0.2, 1.0))
def test_equal_rates_everywhere_give_the_formula(seed, k, alpha):
    target = 0.99 * random_distributions((9, 3), seed) + 0.01 * np.eye(3)[np.arange(9) % 3]
    alpha = max(alpha, float(target.min(axis=-1).max()))
    one = Chain(speculative(target, draft_at(target, alpha, seed)), contexts(3, 2))
    np.testing.assert_allclose(one.length_by_state(k), expected_tokens(alpha, k), atol=1e-9)
    assert one.alpha == pytest.approx(alpha, abs=1e-9)
    assert one.independent_length(k) == pytest.approx(one.acceptance_length(k), abs=1e-8)


def test_unequal_rates_by_hand():
    """Context 0 always accepts and stays, context 1 never and stays: half of the text has each, alpha = 1/2.

    Rounds of K = 2 emit 3 tokens or 1, so of 1 + 1/2 + 1/4 = 1.75 nothing is left: the mean is 2.
    """
    target = np.array([[1.0, 0.0], [0.0, 1.0]])
    draft = np.array([[1.0, 0.0], [1.0, 0.0]])
    one = Chain(speculative(target, draft), np.array([[0, 0], [1, 1]]))
    np.testing.assert_array_equal(one.length_by_state(2), [3.0, 1.0])
    assert one.alpha == 0.5
    assert one.independent_length(2) == 1.75
    assert one.acceptance_length(2) == 2.0


def test_rounds_start_more_often_where_drafts_fail():
    """Contexts alternate; drafts of context 0 always pass, of context 1 never. With K = 1 by hand.

    From 0: accept, bonus, back in 0 after two tokens. From 1: reject, one token, then 0. So all rounds start
    in 0 in the long run and A = 2, while half of the text is in either context and alpha = 1/2 says 1.5.
    """
    target = np.array([[1.0, 0.0], [0.0, 1.0]])
    draft = np.array([[1.0, 0.0], [1.0, 0.0]])
    one = Chain(speculative(target, draft), np.array([[1, 1], [0, 0]]))
    np.testing.assert_allclose(one.text_share(), [0.5, 0.5], atol=EXACT)
    np.testing.assert_allclose(one.round_starts(1), [1.0, 0.0], atol=EXACT)
    assert one.acceptance_length(1) == pytest.approx(2.0)
    assert one.independent_length(1) == pytest.approx(1.5)


# Block verification


def test_block_verification_of_the_papers_example():
    """Sun et al. (arXiv:2403.10444), section 2: p = (1/3, 2/3), q = (2/3, 1/3), K = 2.

    Accepted drafts: 10/9 token by token, 11/9 as a block.
    """
    one = Chain(speculative(np.array([[1, 2]]) / 3, np.array([[2, 1]]) / 3), contexts(2, 0))
    accepted = length_distribution(round_outcomes(one, 2))[0] @ np.arange(3)
    assert accepted == pytest.approx(float(Fraction(10, 9)), abs=EXACT)
    accepted = length_distribution(block_outcomes(one, 2))[0] @ np.arange(3)
    assert accepted == pytest.approx(float(Fraction(11, 9)), abs=EXACT)


@given(st.integers(0, 500), st.integers(1, 4), st.floats(0.0, 1.0))
def test_block_verification_is_exact_and_never_shorter(seed, k, agreement):
    one = chain(seed=seed, agreement=agreement)
    blocks = block_outcomes(one, k)
    expected = target_sequences(one.verdict.target, one.next_state, k + 2)
    np.testing.assert_allclose(sequence_distribution(blocks, one.next_state, k + 2), expected, atol=EXACT)
    lengths = length_distribution(blocks) @ np.arange(1, k + 2)
    assert np.all(lengths >= one.length_by_state(k) - EXACT)
    if k == 1:
        np.testing.assert_allclose(lengths, one.length_by_state(k), atol=EXACT)


@given(pairs(largest=4), st.integers(1, 3))
def test_block_verification_copes_with_zeros(pair, k):
    one = Chain(speculative(pair[0][None], pair[1][None]), contexts(len(pair[0]), 0))
    expected = target_sequences(one.verdict.target, one.next_state, k + 1)
    exact = sequence_distribution(block_outcomes(one, k), one.next_state, k + 1)
    np.testing.assert_allclose(exact, expected, atol=EXACT)


# Several candidates


def rejection_by_hand(p, q, count, replace):
    """Recursive rejection as the papers write it, one branch after the other."""
    output, ranks = np.zeros(len(p)), np.zeros(count)

    def go(p, q, rank, weight):
        nonlocal output
        if weight == 0.0:
            return
        if rank == count or q.sum() == 0.0:
            output = output + weight * p
            return
        q = q / q.sum()
        for x in range(len(p)):
            if q[x] == 0.0:
                continue
            accept = min(1.0, p[x] / q[x])
            output[x] += weight * q[x] * accept
            ranks[rank] += weight * q[x] * accept
            if accept < 1.0:
                rest = np.maximum(p - q, 0.0)
                # Equal up to the rounding of q above: that rejection does not exist.
                if rest.sum() == 0.0:
                    output[x] += weight * q[x] * (1.0 - accept)
                    continue
                left = q.copy()
                if not replace:
                    left[x] = 0.0
                go(rest / rest.sum(), left, rank + 1, weight * q[x] * (1.0 - accept))

    go(p.copy(), q.copy(), 0, 1.0)
    return output, ranks


@given(pairs(largest=5), st.integers(1, 4), st.booleans())
def test_recursive_rejection_is_exact(pair, count, replace):
    p, q = pair
    found = recursive_rejection(p, q, count, replace=replace)
    np.testing.assert_allclose(found.output, p, atol=EXACT)
    output, ranks = rejection_by_hand(p, q, count, replace)
    np.testing.assert_allclose(found.output, output, atol=EXACT)
    np.testing.assert_allclose(found.rank_acceptance, ranks, atol=EXACT)
    assert found.lossless
    assert float(found.rank_acceptance[..., 0]) == pytest.approx(float(acceptance_rate(p, q)), abs=EXACT)


def test_two_candidates_by_hand():
    """p = (.5, .3, .2), q = (.2, .5, .3): the residual is token 0 alone; it is drawn second with certainty
    times its share of what q has left: .2/.5 after token 1 (rejected with .2), .2/.7 after token 2 (.1)."""
    found = recursive_rejection(P, Q, 2)
    np.testing.assert_allclose(found.rank_acceptance, [0.7, 0.2 * 0.4 + 0.1 * 2 / 7], atol=1e-15)
    np.testing.assert_allclose(found.conditional, [0.7, (0.08 + 0.2 / 7) / 0.3], atol=1e-14)


@given(pairs(), st.data())
def test_ranks_of_top_candidates_are_the_targets_probabilities(pair, data):
    p, q = pair
    count = data.draw(st.integers(1, len(p)))
    found = top_ranks(p, q, count)
    order = sorted(range(len(p)), key=lambda x: (-q[x], x))[:count]
    np.testing.assert_allclose(found.rank_acceptance, p[order], atol=EXACT)
    np.testing.assert_allclose(found.output, p, atol=EXACT)
    assert found.lossless


def test_contexts_are_handled_together():
    target, draft = random_distributions((2, 3, 4), 1), random_distributions((2, 3, 4), 2)
    for make in (lambda p, q: recursive_rejection(p, q, 3), lambda p, q: top_ranks(p, q, 3)):
        every, one = make(target, draft), make(target[1, 2], draft[1, 2])
        np.testing.assert_allclose(every.rank_acceptance[1, 2], one.rank_acceptance, atol=EXACT)
        np.testing.assert_allclose(every.output[1, 2], one.output, atol=EXACT)


def test_coin_of_the_tree_kernel_by_hand():
    """threshold_acc 0.8: of p = (.5, .3, .2) in the drafter's order 1, 2, 0 the coin passes at .3/.8, .5/.8."""
    found = top_ranks(P, Q, 2, threshold_acc=0.8)
    np.testing.assert_allclose(found.rank_acceptance, [0.375, 0.25], atol=1e-15)
    np.testing.assert_allclose(found.output, [0.375, 0.375, 0.25], atol=1e-15)
    assert not found.lossless
    sure = top_ranks(P, Q, 3, threshold_single=0.45)
    np.testing.assert_allclose(sure.rank_acceptance, [0.3, 0.2, 0.5], atol=1e-15)


# Lossy rules


def test_typical_acceptance_by_hand():
    """H(.5, .3, .2) = 1.0297 nats, .3 e^-H = .1071: the bound is .09 and all pass; with epsilon .25, delta 1
    the bound is .25 and token 2 does not."""
    loose = typical(P, Q)
    assert float(loose.acceptance) == 1.0
    np.testing.assert_allclose(loose.output, Q, atol=1e-15)
    assert float(loose.total_variation) == pytest.approx(0.3)
    tight = typical(P, Q, epsilon=0.25, delta=1.0, recovered="greedy")
    np.testing.assert_allclose(tight.output, [0.2 + 0.3, 0.5, 0.0], atol=1e-15)
    assert float(tight.gain) == pytest.approx(0.0)
    medusa = typical(P, Q, epsilon=0.25, delta=1.0)
    np.testing.assert_allclose(medusa.output, [0.2 + 0.3 * 0.625, 0.5 + 0.3 * 0.375, 0.0], atol=1e-15)
    np.testing.assert_allclose(medusa.bonus, [0.625, 0.375, 0.0], atol=1e-15)


def test_relaxed_acceptance_by_hand():
    """Two candidates within .25 of the best: token 1 passes, token 2 does not; greedy would accept .2."""
    verdict = relaxed(P, Q, top=2, delta=0.25)
    assert float(verdict.acceptance) == pytest.approx(0.7)
    np.testing.assert_allclose(verdict.output, [0.5, 0.5, 0.0], atol=1e-15)
    assert float(verdict.total_variation) == pytest.approx(0.5)
    assert float(verdict.gain) == pytest.approx(0.5)
    assert float(verdict.divergence) == np.inf
    greedy_only = relaxed(P, Q, top=1)
    assert greedy_only.lossless
    assert float(greedy_only.total_variation) == 0.0


LOSSY = {
    "blended": lambda p, q: blended(p, q, 0.4),
    "typical": typical,
    "typical greedy": lambda p, q: typical(p, q, epsilon=0.2, recovered="greedy"),
    "relaxed": lambda p, q: relaxed(p, q, top=2, delta=0.3),
    "threshold single": lambda p, q: target_only(p, q, threshold_single=0.3),
    "threshold acc": lambda p, q: target_only(p, q, threshold_acc=0.6),
}


@pytest.mark.parametrize("name", LOSSY)
def test_lossy_rules_are_labelled_and_lose(name):
    target, draft = random_distributions((200, 6), 3), random_distributions((200, 6), 4)
    verdict = LOSSY[name](target, draft)
    assert not verdict.lossless
    np.testing.assert_allclose(verdict.output.sum(axis=-1), 1.0, atol=EXACT)
    assert np.all(verdict.output >= 0.0)
    assert np.median(verdict.total_variation) > 0.01
    assert np.all(verdict.divergence >= 0.0)


@given(pairs())
def test_whatever_the_rule_one_token_comes_out(pair):
    for rule in LOSSY.values():
        verdict = rule(*pair)
        assert float(verdict.output.sum()) == pytest.approx(1.0, abs=EXACT)
        assert verdict.output.min() >= 0.0
        # Pinsker's inequality ties the two distances together.
        assert float(verdict.total_variation) ** 2 <= float(verdict.divergence) / 2 + EXACT


@given(pairs())
def test_more_acceptance_than_the_exact_rule_costs_distance(pair):
    """Whatever accepts more than sum min(p, q) is at least that far from p: a bound no rule escapes."""
    for rule in LOSSY.values():
        verdict = rule(*pair)
        assert float(verdict.total_variation) >= float(verdict.gain) - EXACT


@given(pairs(), st.floats(0.0, 1.0))
def test_blending_pays_exactly_what_it_gains(pair, share):
    verdict = blended(*pair, share)
    expected = share * (1.0 - float(acceptance_rate(*pair)))
    assert float(verdict.total_variation) == pytest.approx(expected, abs=EXACT)
    assert float(verdict.gain) == pytest.approx(expected, abs=EXACT)
    np.testing.assert_allclose(verdict.output, (1 - share) * pair[0] + share * pair[1], atol=EXACT)


@given(pairs())
def test_limits_of_lossy_rules(pair):
    p, q = pair
    everything = typical(p, q, epsilon=0.0, delta=0.0)
    supported = q[p > 0].sum()
    assert float(everything.acceptance) == pytest.approx(supported, abs=EXACT)
    assert float(target_only(p, p, threshold_single=1e-9, threshold_acc=1.0).total_variation) < EXACT
    assert float(typical(p, p, epsilon=0.0).total_variation) < EXACT


def test_sequences_of_a_lossy_rule_are_not_the_targets():
    one = chain(rule=typical, vocab=4, seed=2)
    exact = sequence_distribution(round_outcomes(one, 3), one.next_state, 3)
    distance = total_variation(exact, target_sequences(one.verdict.target, one.next_state, 3), axes=3)
    np.testing.assert_allclose(exact.sum(axis=(1, 2, 3)), 1.0, atol=EXACT)
    assert np.all(distance > 0.05)


# With random numbers


@pytest.mark.parametrize("rule", [speculative, target_only, typical], ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("k", [1, 4, 7])
def test_simulation_agrees_with_the_exact_length(rule, k):
    one = chain(rule=rule, vocab=5, seed=k)
    sampled = simulate(one, k, sequences=4000, rounds=10, seed=k)
    assert sampled.standard_error < 0.02
    assert abs(sampled.acceptance_length - one.acceptance_length(k)) < 4 * sampled.standard_error
    counted = sampled.survival
    assert counted.counted == 40_000
    np.testing.assert_allclose(counted.values, one.survival(k).values, atol=0.03)


def test_simulated_tokens_are_those_of_the_target():
    one = chain(vocab=3, seed=11)
    sampled = simulate(one, 3, sequences=60_000, rounds=4, seed=1, start=1)
    found = np.zeros((3, 3, 3))
    np.add.at(found, tuple(sampled.first(3).T), 1)
    expected = 60_000 * target_sequences(one.verdict.target, one.next_state, 3)[1]
    deviation = (found - expected) / np.sqrt(np.maximum(expected, 1e-9))
    assert np.abs(deviation[expected > 5]).max() < 4.5
    assert found[expected < 1e-6].sum() == 0


def test_simulation_repeats_with_its_seed():
    one = chain()
    first, again, other = (simulate(one, 2, sequences=50, rounds=3, seed=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(first.tokens, again.tokens)
    assert not np.array_equal(first.tokens, other.tokens)
    with pytest.raises(AcceptanceError, match="simulate more rounds"):
        first.first(10)


# Faults


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: speculative([0.5, 0.6], [0.5, 0.5]), "target sums to 1 only within"),
        (lambda: speculative([1.5, -0.5], [0.5, 0.5]), "negative"),
        (lambda: speculative([np.nan, 1.0], [0.5, 0.5]), "negative or nan"),
        (lambda: speculative([0.5, 0.5], [1.0]), "same vocabulary"),
        (lambda: speculative([], []), "no tokens"),
        (lambda: tempered(P, -1.0), "temperature -1"),
        (lambda: target_only(P, Q, threshold_single=0.0), "threshold_single 0"),
        (lambda: typical(P, Q, recovered="best"), "recovered 'best'"),
        (lambda: typical(P, Q, epsilon=2.0), "epsilon 2"),
        (lambda: relaxed(P, Q, top=0), "top 0"),
        (lambda: blended(P, Q, 2.0), "share 2"),
        (lambda: draft_at(P, 0.1), "agrees with the target only 0.1"),
        (lambda: draft_at(P, 1.1), "not in 0..1"),
        (lambda: random_distributions((2,), 0, 0.0), "concentration 0"),
        (lambda: contexts(2, -1), "too many"),
        (lambda: Chain(speculative(P, Q), contexts(3, 1)), "shape"),
        (lambda: Chain(speculative(P[None], Q[None]), np.array([[0, 1, 2]])), "leads out"),
        (lambda: chain().survival(0), "K = 0"),
        (lambda: round_outcomes(chain(vocab=50), 9), "cannot be enumerated"),
        (lambda: recursive_rejection(P, Q, 0), "0 candidates"),
        (lambda: top_ranks(P, Q, 4), "4 candidates of 3"),
        (lambda: simulate(chain(), 2, sequences=1), "1 sequences"),
    ],
)
def test_faults_are_said_in_one_sentence(call, message):
    with pytest.raises(AcceptanceError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
