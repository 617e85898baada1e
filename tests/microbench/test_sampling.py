"""Rounds, stop rule, pairing and doubts, on a clock of the test's own."""

from __future__ import annotations

import random

import pytest

from rooflinekit.microbench.device import Sample
from rooflinekit.microbench.sampling import Limits, Series, doubts, modes, paired_ratio, run_rounds, trial

LIMITS = Limits(half_width=0.02, rounds=8, most_rounds=50, cap_s=10.0)
NOISY = (0.8, 1.0, 1.3, 0.7, 1.1)


def rng(seed):
    return random.Random(seed)  # noqa: S311 - an order of cases, not a secret


def series(seconds, *, clean=True):
    return Series({i: (Sample(s, clean),) for i, s in enumerate(seconds)})


def test_steady_case_stops_after_the_fewest_rounds(clock, make_timer):
    found = run_rounds({"a": make_timer((0.01,))}, LIMITS, rng(0), clock=clock)
    assert len(found["a"].samples) == LIMITS.rounds


def test_noisy_case_stops_at_the_cap(clock, make_timer):
    found = run_rounds({"a": make_timer(NOISY)}, LIMITS, rng(0), clock=clock)
    assert clock.now == pytest.approx(LIMITS.cap_s, abs=1.5)
    assert not found["a"].converged(LIMITS)


def test_most_rounds_is_a_limit(clock, make_timer):
    found = run_rounds({"a": make_timer([s / 1e3 for s in NOISY])}, LIMITS, rng(0), clock=clock)
    assert len(found["a"].by_round) == LIMITS.most_rounds


def test_even_the_first_rounds_end_on_a_machine_that_is_never_quiet(clock, make_timer):
    found = run_rounds({"a": make_timer((30.0,))}, LIMITS, rng(0), clock=clock)
    assert len(found["a"].samples) == 1


def test_done_cases_leave_the_rounds_but_the_base_stays(clock, make_timer):
    timers = {
        "1": make_timer((0.01,)),
        "2": make_timer((0.01,)),
        "noisy": make_timer([s / 10 for s in NOISY]),
    }
    found = run_rounds(timers, LIMITS, rng(0), always=frozenset({"1"}), clock=clock)
    assert len(found["1"].samples) == len(found["noisy"].samples) > LIMITS.rounds
    assert len(found["2"].samples) == LIMITS.rounds


def test_each_round_holds_every_case_in_another_order_that_the_seed_gives_again(clock, make_timer):
    def order(seed):
        log = []
        timers = {name: make_timer((0.01,), log=log, name=name) for name in "abcdef"}
        run_rounds(timers, LIMITS, rng(seed), clock=clock)
        return [tuple(log[i : i + 6]) for i in range(0, len(log), 6)]

    rounds = order(3)
    assert all(sorted(one) == list("abcdef") for one in rounds)
    assert len(set(rounds)) > 1
    assert order(3) == rounds
    assert order(4) != rounds


def test_disturbed_samples_do_not_count_for_convergence(clock, make_timer):
    timers = {"a": make_timer((0.01,), clean=(False, False, True))}
    found = run_rounds(timers, LIMITS, rng(0), clock=clock)["a"]
    assert sum(bool(s.clean) for s in found.samples) == LIMITS.rounds
    assert set(found.kept_s) == {0.01}


def test_paired_ratio_cancels_a_disturbance_of_the_round():
    base = series([1.0, 2.0, 1.0, 3.0, 1.0, 2.0])
    one = series([1.5, 3.0, 1.5, 4.5, 1.5, 3.0])
    assert paired_ratio(one, base) == (1.5, 1.5, 1.5)


def test_paired_ratio_takes_rounds_in_which_both_were_clean():
    base = series([1.0] * 6)
    one = Series({i: (Sample(2.0 if i < 5 else 9.0, i < 5),) for i in range(6)})
    assert paired_ratio(one, base) == (2.0, 2.0, 2.0)


def test_paired_ratio_without_common_rounds_is_empty():
    assert paired_ratio(series([1.0]), Series({7: (Sample(1.0),)})) == ()


def test_trial_judges_a_case_without_clean_samples_by_its_quickest(clock, make_timer):
    timers = {"a": make_timer((3.0, 1.0, 2.0), clean=(False,)), "b": make_timer((1.5,))}
    found = trial(timers, Limits(cap_s=100.0), rng(0), clock)
    assert found == {"a": 1.0, "b": 1.5}


def test_contended_and_scheduler_slices_are_named():
    texts = doubts(series([0.008 + i * 1e-6 for i in range(20)], clean=False), LIMITS)
    assert texts[0].startswith("contended: 0%")
    assert "scheduler slice: the time is 2 x 4 ms" in texts[1]


def test_clean_or_unjudged_samples_are_not_called_contended():
    for clean in (True, None):
        assert doubts(series([0.008 + i * 1e-6 for i in range(20)], clean=clean), LIMITS) == ()


def test_two_modes_are_found_and_noise_is_not():
    low, high, share = modes(tuple([3.0, 3.01, 3.02] * 4 + [4.8, 4.81, 4.82] * 4))
    assert (low, high, share) == (3.01, 4.81, 0.5)
    assert modes(tuple(rng(1).gauss(1.0, 0.02) for _ in range(60))) is None
    assert modes((1.0, 2.0)) is None
