"""The table of the best K by load: its cells are the best of all rounds, and what does not fit is not promised."""

import numpy as np
import pytest

import rooflinekit as rk

pytest.importorskip("matplotlib")

from rooflinekit.capacity import largest_batch
from rooflinekit.plot.load import best_k_by_load

BATCH, CONTEXT = (1, 16, 256), (256, 4096)


@pytest.fixture(scope="module")
def case():
    return rk.make_case("llama-3.1-8b", "h100-sxm", "eagle3", alpha=0.7, host="vllm")


def texts(ax):
    return [one.get_text() for one in ax.texts]


def test_each_cell_holds_the_best_k_and_its_speedup(case):
    """Against a search of its own over the rounds of every K."""
    ax = best_k_by_load(case, batch=BATCH, context=CONTEXT)
    found = []
    for batch in BATCH:
        for context in CONTEXT:
            gains = [
                float(case.rounds(batch=float(batch), context=float(context), k=float(k)).speedup)
                for k in range(1, 17)
            ]
            found += [f"{1 + int(np.argmax(gains))}", f"{max(gains):.2f}x"]
    assert [text for text in texts(ax) if text in found] == found
    assert [label.get_text() for label in ax.get_xticklabels()] == ["1", "16", "256"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["256", "4,096"]


def test_what_does_not_fit_stays_empty(case):
    hardware = rk.find_hardware("h100-sxm")
    assert largest_batch(case.target, hardware, case.drafter, 4096.0) < 256
    ax = best_k_by_load(case, batch=BATCH, context=CONTEXT, hardware=hardware)
    assert len([text for text in texts(ax) if text.endswith("x")]) == 5
    assert len(ax.patches) == 1
    assert any("does not fit" in text for text in texts(ax))


def test_a_load_that_does_not_pay_is_off():
    hopeless = rk.make_case("llama-3.1-8b", "h100-sxm", "eagle3", alpha=0.05, host="vllm")
    assert "off" in texts(best_k_by_load(hopeless, batch=(256,), context=(256,)))
