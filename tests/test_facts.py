"""What was measured on real engines, against the shipped calibrations and the engine's host time.

Sources: Liu et al. 2026 (arXiv:2601.11580), Figures 1, 2 and 4 (H100, vLLM 0.10-0.11 and SGLang 0.5.9, speedups at
equal batch); SpecForge SpecBundle (SGLang, EAGLE-3 on Qwen3-30B-A3B, batch 8).
"""

import numpy as np
import pytest

from rooflinekit.drafting_options import make_drafter
from rooflinekit.load import Load
from rooflinekit.resolve import setup
from rooflinekit.speculation import Drafting, round_of

BATCH = np.array([1.0, 16.0, 64.0, 128.0])
SHORT = 350.0
"""Tokens of a GSM8K prompt and half its answer, about."""


def rounds(
    model, drafter, length, *, batch=BATCH, k=3.0, stack="vllm", host="vllm", width=None, context=SHORT
):
    ready = setup(model, "h100-sxm", stack=stack, host=host)
    built = make_drafter(drafter, ready.target)
    return round_of(
        ready.machine,
        ready.target,
        built,
        Load(batch, context),
        length,
        k=k,
        drafting=Drafting(width=width),
    )


@pytest.mark.parametrize("stack", ["vllm", "sglang", "trtllm"])
def test_an_eagle3_step_costs_a_twentieth_in_kernels(stack):
    """Kernels alone 0.05 to 0.07 of a plain step of a dense 8B, several times its share of the parameters (0.03)."""
    one = rounds("llama-3.1-8b", "eagle3", 2.5, batch=1.0, stack=stack, host="none")
    assert 0.05 <= round(one.draft_cost, 2) <= 0.07


def test_and_twice_that_in_the_engine():
    """Figure 4: drafting 21.7 % and verify 65.2 % of a round at K = 3, so 0.111 of a verify for each step."""
    one = rounds("llama-3.1-8b", "eagle3", 2.5, batch=1.0)
    share = (one.draft_s + one.draft_host_s) / (3.0 * one.verify_s)
    assert 0.105 <= share <= 0.13
    assert share == pytest.approx(21.7 / 65.2 / 3, rel=0.05)


@pytest.mark.parametrize("model", ["llama-3.1-8b", "qwen3-8b"])
def test_the_round_cost_grows_with_the_batch(model):
    """Figure 1: 1.10-1.28 times that of one request at 64, 1.30-1.52 at 128; flat to 16."""
    cost = rounds(model, "eagle3", 2.5).round_cost
    growth = cost / cost[0]
    assert 1.0 <= growth[1] <= 1.07
    assert 1.1 <= growth[2] <= 1.3
    assert 1.3 <= growth[3] <= 1.52


def test_without_the_host_the_growth_is_smaller():
    """The rows that are sampled and judged cost time outside the kernels."""
    hosted, bare = (rounds("llama-3.1-8b", "eagle3", 2.5, host=host).round_cost for host in ("vllm", "none"))
    assert (hosted / hosted[0])[2] > (bare / bare[0])[2]


def test_a_tree_of_21_loses_where_a_chain_still_wins():
    """Figure 2, Qwen3-8B on SGLang, GSM8K: chain of 3 (2.25 tokens) 1.65, 1.58, 1.31, 1.22 times; tree of 21 nodes,
    depth 3 (2.92 tokens), 1.85, 1.34, 0.58, 0.56 times at 1, 16, 64, 128 requests."""
    chain = rounds("qwen3-8b", "eagle3", 2.25, stack="sglang").speedup
    tree = rounds("qwen3-8b", "eagle3", 2.92, stack="sglang", width=22.0).speedup
    assert tree[0] > chain[0]
    assert tree[1] < chain[1]
    assert tree[2] < 1.0 < chain[2]
    assert tree[3] < 1.0 < chain[3]
    assert chain == pytest.approx(np.array([1.65, 1.58, 1.31, 1.22]), rel=0.15)
    assert tree[:3] == pytest.approx(np.array([1.85, 1.34, 0.58]), rel=0.25)


def test_experts_make_the_verify_dear_at_one_request_and_cheap_in_a_batch():
    """Break-even of Qwen3-30B-A3B at K = 3: far above the dense 8B's at one request, below it in a medium batch."""
    batch = np.array([1.0, 8.0, 32.0, 64.0])
    sparse = rounds("qwen3-30b-a3b", "eagle3", 2.5, batch=batch, stack="sglang").round_cost
    dense = rounds("llama-3.1-8b", "eagle3", 2.5, batch=batch, stack="sglang").round_cost
    assert sparse[0] > 1.4 * dense[0]
    assert sparse[2] < 0.75 * sparse[0]
    assert sparse[3] < dense[3]


def test_the_round_cost_of_experts_at_batch_8():
    """SpecBundle, eight benchmarks on an H200: 1.54 to 1.90 plain steps at K = 3."""
    one = rounds("qwen3-30b-a3b", "eagle3", 2.7, batch=8.0, stack="sglang", context=1000.0)
    assert 1.5 <= one.round_cost <= 2.0
