"""Draft trees on a device: a chain is a chain, costs follow the rows, engines' shapes cost what they draft."""

import json
from dataclasses import replace

import numpy as np
import pytest

from rooflinekit.acceptance import Constant
from rooflinekit.app import best_tree as ask
from rooflinekit.cli import run
from rooflinekit.curve import Case
from rooflinekit.drafters import dflash, eagle3, medusa
from rooflinekit.errors import RooflineError
from rooflinekit.hosts import VLLM, with_host
from rooflinekit.load import Load
from rooflinekit.precision import precision
from rooflinekit.readers.models import find_llm
from rooflinekit.speculation import Drafting, round_of, speculate
from rooflinekit.target import Target
from rooflinekit.tree import chain, eagle2_shape, from_alpha, full
from rooflinekit.tree_round import best_tree, tree_round
from rooflinekit.work import Machine

BF16 = precision("bf16")
LLAMA = Target(find_llm("llama-3.1-8b"), BF16)
H100 = Machine("h", 3.35e12, {"bf16": 989e12}, 450e9)
HOSTED = with_host(H100, VLLM)


def case(builder=eagle3, machine=HOSTED):
    return Case(machine, LLAMA, builder.for_target(LLAMA.llm, BF16), Constant(0.7))


@pytest.mark.parametrize("builder", [eagle3, dflash, medusa])
@pytest.mark.parametrize("k", [1, 3, 5])
def test_a_tree_without_branches_is_the_chain(builder, k):
    """Same draft, verify, host and speedup as `speculate`; to 1 % where a block pass grows with its own K."""
    one, load = case(builder), Load(8.0, 2000.0)
    expected = speculate(HOSTED, LLAMA, one.drafter, Constant(0.7), batch=8.0, context=2000.0, k=float(k))
    found = tree_round(one, load, chain(k), float(expected.acceptance_length))
    assert found.verify_s == pytest.approx(float(expected.verify_s))
    assert found.round_s == pytest.approx(float(expected.round_s), rel=1e-2)
    assert found.speedup == pytest.approx(float(expected.speedup), rel=1e-2)


def test_uniform_levels_cost_what_the_drafter_says():
    """Depth 3, four nodes drafted from at each level: passes of 1, 4 and 4 rows, a verify of 37 rows."""
    tree, load = full([4, 4, 4]), Load(4.0, 1000.0)
    assert tree.draft_rows == (1, 4, 16)
    one = case()
    found = tree_round(one, load, eagle2_shape(3, 4, 37), 3.0)
    direct = round_of(HOSTED, LLAMA, one.drafter, load, 3.0, k=3.0, drafting=Drafting(width=37.0, rows=4.0))
    assert found.round_s == pytest.approx(float(direct.round_s), rel=1e-9)
    assert tree_round(one, load, tree, 3.0).round_s > found.round_s


@pytest.mark.parametrize("batch", [1.0, 32.0])
def test_no_tree_of_the_grid_beats_the_one_found(batch):
    """Judging every size and depth with its own round agrees with the surface."""
    from rooflinekit.tree import best_first

    one, load, rates = case(), Load(batch, 1000.0), from_alpha(0.7, 0.5)
    found = best_tree(one, load, rates, max_nodes=12, max_depth=4)
    tried = {}
    for nodes in range(1, 13):
        for depth in range(1, 5):
            tree = best_first(rates, nodes, depth)
            # The cache that the first pass fills is that of the tree found.
            length, refresh = rates.expected(tree), found.acceptance_length
            cost = tree_round(one, load, tree, refresh)
            tried[nodes, depth] = length / float(cost.round_cost)
    assert found.speedup == pytest.approx(max(tried.values()), rel=1e-3)


def test_trees_shrink_with_the_batch():
    """Rows are free at one request and dear at 64."""
    rates = from_alpha(0.7, 0.5)
    nodes = [
        best_tree(case(), Load(batch, 500.0), rates, max_nodes=100).tree.nodes for batch in (1.0, 8.0, 64.0)
    ]
    assert nodes[0] > nodes[1] > nodes[2]


def test_a_block_limits_the_depth():
    found = best_tree(case(medusa), Load(1.0, 500.0), from_alpha(0.95, 0.1), max_nodes=40, max_depth=30)
    assert found.tree.depth == 5


def test_heads_are_paid_once():
    """Medusa runs all heads whatever the tree, so a deeper tree costs only its rows."""
    one, load = case(medusa), Load(1.0, 500.0)
    deep, flat = tree_round(one, load, chain(4), 2.0), tree_round(one, load, full([4]), 2.0)
    assert deep.round_s == pytest.approx(float(flat.round_s))


# --- front door


def test_the_answer_says_what_it_stands_on():
    found = ask("llama-3.1-8b", "h100-sxm", "eagle3", alpha=0.7, trees=["5,4,16", "eagle-mc-sim-7b-63"])
    assert found.choice.speedup >= max(one.speedup for one in found.given)
    assert found.choice.speedup >= found.choice.chain_speedup
    assert [one.width for one in found.given] == [16, 26]
    assert "--speculative-num-draft-tokens" in found.flags["sglang"]
    assert "vllm" not in found.flags


def test_json_has_the_numbers_of_the_text(capsys):
    words = "tree --model llama-3.1-8b --hardware h100-sxm --drafter eagle3 --alpha 0.6 --max-nodes 16 --json"
    assert run(words.split()) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["width"] == found["nodes"] + 1
    assert len(found["paths"]) == found["nodes"]
    assert found["pays"] == (found["speedup"] > 1)
    assert found["chain"]["speedup"] <= found["speedup"] * (1 + 1e-9)


def test_heads_by_rank_need_no_chain():
    found = ask("llama-2-7b", "a100-80gb-sxm", "medusa", rank_accuracies="medusa-vicuna-7b", context=500)
    assert found.choice.tree.depth <= 5
    assert found.choice.speedup > found.choice.chain_speedup


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"trees": ["nothing"]}, "nothing"),
        ({"trees": ["0,4,16"]}, "0 steps"),
        ({"rank_decay": 1.5}, "--rank-decay"),
        ({"max_nodes": 0}, "--max-nodes"),
        ({"drafter": "medusa", "trees": ["8,1,9"]}, "8 deep"),
    ],
)
def test_what_is_no_tree_is_refused(options, words):
    options = {"drafter": "eagle3", "alpha": 0.7} | options
    with pytest.raises(RooflineError, match=words):
        ask("llama-3.1-8b", "h100-sxm", **options)


def test_rows_are_monotone_in_time():
    from rooflinekit.tree_round import DraftTimes

    level = DraftTimes(case(), Load(32.0, 1000.0), 3.0).level_s(np.array([1.0, 4.0, 16.0, 64.0]))
    assert np.all(np.diff(level) >= 0)


# --- how rounds are run


def test_a_given_time_of_drafting_counts_in_trees():
    """A time per token is that of a level: a chain of K costs K of them, as in `speculate`; a time per round once."""
    load = Load(1.0, 4096.0)
    for drafting in (Drafting(cost=0.3), Drafting(step_s=2e-3), Drafting(round_s=3e-3)):
        one = replace(case(), drafting=drafting)
        length = 2.5
        expected = round_of(
            HOSTED, LLAMA, one.drafter, load, length, k=3.0, drafting=replace(drafting, width=4.0)
        )
        assert tree_round(one, load, chain(3), length).round_s == pytest.approx(float(expected.round_s))
    dear = best_tree(replace(case(), drafting=Drafting(cost=5.0)), load, from_alpha(0.7, 0.5), max_nodes=8)
    assert not dear.pays
    assert dear.tree.depth == 1


def test_overlap_is_known_to_the_choice_and_to_given_trees():
    """Hidden drafting raises the best speedup, and no given tree passes the best one unseen."""
    options = {"alpha": 0.8, "trees": ["3,4,16"], "host": "vllm"}
    bare = ask("llama-3.1-8b", "h100-sxm", "eagle3", **options)
    found = ask("llama-3.1-8b", "h100-sxm", "eagle3", overlap=1.0, **options)
    assert found.choice.speedup > bare.choice.speedup
    assert found.given[0].speedup > bare.given[0].speedup
    assert found.choice.speedup >= found.given[0].speedup
    assert found.choice.speedup >= found.choice.chain_speedup
    assert all(one.speedup >= found.choice.speedup - 1e-12 for one in found.choice.freed)


def test_a_tree_is_no_deeper_than_its_acceptance():
    """Two positions were measured: nothing is known of a third."""
    found = ask("llama-3.1-8b", "h100-sxm", "eagle3", survival="0.9,0.8")
    assert found.choice.tree.depth == 2
    with pytest.raises(RooflineError, match="measured at 2 positions"):
        ask("llama-3.1-8b", "h100-sxm", "eagle3", survival="0.9,0.8", trees=["3,4,16"])


def test_nothing_accepted_is_no_tree():
    """Without a node worth drafting there are no flags: engines refuse zero steps."""
    found = ask("llama-3.1-8b", "h100-sxm", "eagle3", alpha=0.0, calibration="datasheet")
    assert found.choice.tree.nodes == 0
    assert found.flags == {}
    assert not found.choice.pays


def test_a_tree_says_whether_it_fits():
    """140 GB of weights on 80 GB."""
    found = ask("llama-3.1-70b", "h100-sxm", "eagle3", alpha=0.7)
    assert not found.fits
    assert "--tp" in found.remedy
    assert ask("llama-3.1-8b", "h100-sxm", "eagle3", alpha=0.7).fits


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"rank_accuracies": "medusa-vicuna-7b", "alpha": 0.5},
            "--rank-accuracies stands in place of --alpha",
        ),
        ({"alpha": 0.7, "trees": ["100000,2,300"]}, "STEPS of --tree"),
        ({"alpha": 0.7, "trees": ["3,100000,300"]}, "TOPK of --tree"),
        ({"alpha": 0.7, "trees": ["9" * 5000 + ",1,2"]}, "unknown|cannot be read"),
    ],
)
def test_what_would_be_ignored_or_endless_is_refused(options, words):
    with pytest.raises(RooflineError, match=words):
        ask("llama-3.1-8b", "h100-sxm", "medusa", **options)
