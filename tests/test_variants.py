"""Cheaper versions of a drafter: what changes and by how many bytes."""

from dataclasses import replace

import pytest

from rooflinekit.drafters import BUILDERS, WEIGHTLESS, dflash, domino, dspark, eagle1, eagle3, medusa, mtp
from rooflinekit.drafters.small_lm import SmallLm
from rooflinekit.drafters.variants import variants
from rooflinekit.drafting_options import make_drafter
from rooflinekit.llm import Mtp
from rooflinekit.precision import precision
from rooflinekit.readers.models import find_llm
from rooflinekit.target import Target
from tests.strategies import small_llm

BF16 = precision("bf16")
LLAMA = find_llm("llama-3.1-8b")
H, V, NARROW = 4096, 128_256, 32_000
LAYER = (32 + 16) * 128 * H + H * H + 3 * H * 14336
EIGHT, FOUR = "8-bit weights of the drafter", "4-bit weights of the drafter"
WORDS = "draft vocabulary of 32,000"


def found(drafter, target=LLAMA):
    return dict(variants(drafter, target))


def weights_of(drafter, k=4.0):
    plan = drafter.plan(k=k, batch=1.0, context=0.0)
    return sum(one.repeats * sum(work.weight_bytes for work in one.works) for one in plan)


def held(drafter):
    return drafter.memory_bytes(batch=1.0, context=0.0)


def test_a_reduced_vocabulary_of_eagle_by_hand():
    """Each of four passes reads 96,256 rows of the head less; the copy of 32,000 rows is held."""
    drafter = eagle1.for_target(LLAMA, BF16)
    small = found(drafter)[WORDS]
    assert weights_of(drafter) - weights_of(small) == 4 * 2 * (V - NARROW) * H
    assert held(small) - held(drafter) == 2 * NARROW * H
    assert small.own_params - drafter.own_params == NARROW * H
    assert "head over 32000 tokens" in small.title


@pytest.mark.parametrize("module", [dflash, dspark, domino])
def test_a_block_drafter_loses_a_layer_or_most_of_its_head(module):
    """Four of five layers; a head of 32,000 rows, with the corrections of DSpark (rank 256) and Domino (256 wide)."""
    drafter = module.for_target(LLAMA, BF16)
    less = found(drafter)
    assert weights_of(drafter) - weights_of(less["4 layers instead of 5"]) == 2 * LAYER
    light = 0 if module is dflash else 4 * 2 * 256 * (V - NARROW)
    assert weights_of(drafter) - weights_of(less[WORDS]) == 2 * (V - NARROW) * H + light


def test_bits_of_matrices_and_not_of_tables():
    """EAGLE-3 in 8 and 4.125 bits: layer and fusion shrink, its head of 32,000 rows stays in 16."""
    drafter = eagle3.for_target(LLAMA, BF16)
    matrices = LAYER + (32 + 16) * 128 * H + 3 * H * H
    head = 2 * NARROW * H
    assert weights_of(drafter, 1.0) == 2 * matrices + head
    less = found(drafter)
    assert list(less) == [EIGHT, FOUR]  # one layer, and its vocabulary is small
    assert weights_of(less[EIGHT], 1.0) == pytest.approx(matrices + head)
    assert weights_of(less[FOUR], 1.0) == pytest.approx(matrices * 4.125 / 8 + head)
    assert less[FOUR].precision.compute == "bf16"  # the same FLOPs
    assert less[FOUR].precision.kv_bits == 16


def test_heads_and_modules():
    """Medusa's five heads; modules of a target lose bits only; a small model likewise."""
    drafter = medusa.for_target(LLAMA, BF16)
    assert weights_of(drafter) - weights_of(found(drafter)[WORDS]) == 5 * 2 * (V - NARROW) * H
    target = replace(LLAMA, mtp=Mtp(modules=1, block=replace(LLAMA.blocks[-1], count=1)))
    assert list(found(mtp.for_target(target, BF16), target)) == [EIGHT, FOUR]
    assert list(found(SmallLm(small_llm(), BF16))) == [EIGHT, FOUR]


@pytest.mark.parametrize(
    ("numbers", "labels"),
    [
        ("w8a16", [FOUR]),
        ("fp8", [FOUR]),
        ("w4a16", []),
        ("q4_k_m", []),
        ("fp16", [EIGHT, FOUR]),
        ("fp32", []),
    ],
)
def test_weights_that_are_small_already(numbers, labels):
    """Nothing is offered that would not save a third; fp16 devices compute in fp16."""
    drafter = SmallLm(small_llm(), precision(numbers))
    less = found(drafter)
    assert list(less) == labels
    assert all(one.precision.compute == "fp16" for one in less.values() if numbers == "fp16")


def test_formats_of_the_target_stay():
    """A shared head in the target's 6.6 bits stays so; quantised experts of a small model too."""
    drafter = make_drafter("dflash", Target(LLAMA, precision("q4_k_m")))
    assert found(drafter)[EIGHT].precision.of("head") == drafter.precision.of("head")
    experts = SmallLm(find_llm("gpt-oss-20b"), precision("bf16", classes={"experts": "mxfp4"}))
    assert found(experts)[EIGHT].precision.of("experts").name == "mxfp4"


@pytest.mark.parametrize("name", WEIGHTLESS)
def test_nothing_is_cheaper_than_no_weights(name):
    assert variants(WEIGHTLESS[name](LLAMA, BF16), LLAMA) == []


@pytest.mark.parametrize("name", BUILDERS)
@pytest.mark.parametrize("model", ["llama-3.1-8b", "qwen3-30b-a3b", "deepseek-v3", "llama-2-7b"])
def test_every_version_reads_less_and_says_what_it_is(name, model):
    """Of any drafter: fewer bytes a round, the same name and limit of K, labels of their own."""
    target = find_llm(model)
    drafter = BUILDERS[name](target, BF16)
    less = variants(drafter, target)
    assert len(dict(less)) == len(less) >= 2
    for _, one in less:
        assert (one.name, one.max_k) == (drafter.name, drafter.max_k)
        assert weights_of(one) < weights_of(drafter)
