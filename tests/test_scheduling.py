"""Which drafts are worth verifying, against trying every choice."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflinekit.acceptance import Constant
from rooflinekit.curve import Case
from rooflinekit.drafters import dspark
from rooflinekit.errors import AcceptanceError
from rooflinekit.precision import precision
from rooflinekit.readers.models import find_llm
from rooflinekit.scheduling import schedule_verification, verify_by_confidence
from rooflinekit.speculation import speculate
from rooflinekit.target import Target
from rooflinekit.work import Machine

LLAMA = Target(find_llm("llama-3.1-8b"), precision("bf16"))
H100 = Machine("h", 3.35e12, {"bf16": 989e12}, 450e9)


@st.composite
def tables(draw):
    sequences, k = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    rates = draw(
        st.lists(
            st.lists(st.floats(0.0, 1.0), min_size=k, max_size=k), min_size=sequences, max_size=sequences
        )
    )
    return np.cumprod(np.array(rates), axis=1)


@given(tables(), st.floats(0.1, 10.0), st.floats(0.0, 2.0), st.integers(1, 8))
def test_no_other_choice_gives_more_tokens_per_second(survival, fixed, per_row, tile):
    """Against every combination of lengths, with a cost of rows that rises in steps."""

    def cost(rows):
        return fixed + per_row * np.ceil(rows / tile)

    found = verify_by_confidence(survival, cost)
    sequences, k = survival.shape
    sums = np.concatenate([np.zeros((sequences, 1)), np.cumsum(survival, axis=1)], axis=1)
    rates = {
        lengths: (sequences + sum(sums[i, n] for i, n in enumerate(lengths)))
        / float(cost(np.array(float(sequences + sum(lengths)))))
        for lengths in product(range(k + 1), repeat=sequences)
    }
    assert found.tokens / found.round_s == pytest.approx(max(rates.values()), rel=1e-12)
    assert rates[found.lengths] == pytest.approx(max(rates.values()), rel=1e-12)
    same = max(rates[(n,) * sequences] for n in range(k + 1))
    assert found.same_tokens / found.same_s == pytest.approx(same, rel=1e-12)
    assert found.gain >= -1e-12


def test_equal_sequences_gain_nothing_where_rows_are_free():
    """With free rows everything is verified, and a single length does as well."""
    survival = np.tile(0.8 ** np.arange(1.0, 8.0), (16, 1))
    found = verify_by_confidence(survival, lambda rows: 1.0 + 0.0 * rows)
    assert set(found.lengths) == {7}
    assert found.gain == pytest.approx(0.0)
    assert found.tokens == pytest.approx(16 * (1 - 0.8**8) / 0.2)


def test_unlike_sequences_gain_under_load():
    """Half of the sequences draft well, half badly: at 256 of them the bad drafts are not worth their rows."""
    drafter = dspark.for_target(LLAMA.llm, LLAMA.precision)
    rates = np.repeat([0.9, 0.3], 128)
    survival = rates[:, None] ** np.arange(1.0, 8.0)
    loaded = schedule_verification(Case(H100, LLAMA, drafter, Constant(0.5)), survival, 1000.0)
    good, bad = set(loaded.lengths[:128]), set(loaded.lengths[128:])
    assert min(good) > max(bad)
    assert loaded.gain > 0.05
    alone = schedule_verification(Case(H100, LLAMA, drafter, Constant(0.5)), survival[[0, -1]], 1000.0)
    assert alone.gain < 0.01


def test_the_time_is_that_of_the_same_round():
    """Verifying everything costs what `speculate` says."""
    drafter = dspark.for_target(LLAMA.llm, LLAMA.precision)
    survival = np.tile(0.95 ** np.arange(1.0, 8.0), (4, 1))
    found = schedule_verification(Case(H100, LLAMA, drafter, Constant(0.5)), survival, 2048.0)
    whole = speculate(H100, LLAMA, drafter, Constant(0.95), batch=4.0, context=2048.0, k=7.0)
    assert set(found.lengths) == {7}
    assert found.round_s == pytest.approx(float(whole.round_s), rel=1e-12)
    assert found.tokens == pytest.approx(4 * float(whole.acceptance_length), rel=1e-12)


@pytest.mark.parametrize("table", [[0.5, 0.4], [[0.5, 0.6]], [[1.2, 0.1]], [[float("nan")]]])
def test_what_is_no_table_of_survival_is_refused(table):
    with pytest.raises(AcceptanceError, match="fall along each row"):
        verify_by_confidence(np.array(table), lambda rows: rows)


@given(tables(), st.floats(0.1, 10.0), st.floats(0.0, 2.0))
def test_the_rates_by_rows_hold_both_choices(survival, fixed, per_row):
    """The best of each list is what was chosen, nothing verified is the same for both, and so is everything."""
    found = verify_by_confidence(survival, lambda rows: fixed + per_row * rows)
    assert len(found.batch_tokens_per_s) == survival.size + 1
    assert found.batch_tokens_per_s.max() == found.tokens / found.round_s
    assert found.same_batch_tokens_per_s.max() == found.same_tokens / found.same_s
    assert found.batch_tokens_per_s[0] == found.same_batch_tokens_per_s[0]
    assert found.batch_tokens_per_s[-1] == pytest.approx(found.same_batch_tokens_per_s[-1])
    lengths = survival.shape[0] * np.arange(survival.shape[1] + 1)
    assert np.all(found.batch_tokens_per_s[lengths] >= found.same_batch_tokens_per_s - 1e-9)
