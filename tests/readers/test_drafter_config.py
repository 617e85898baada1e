"""Drafter configs: kind, shape, and what is refused."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooflinekit.errors import ModelError
from rooflinekit.readers.drafter_config import (
    dflash_shape,
    drafter_kind,
    drafter_shape,
    dspark_shape,
    eagle3_shape,
)

BODY = {
    "model_type": "qwen3",
    "hidden_size": 4096,
    "intermediate_size": 12288,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 151936,
}
EAGLE3 = {
    **BODY,
    "architectures": ["LlamaForCausalLMEagle3"],
    "num_hidden_layers": 1,
    "draft_vocab_size": 32000,
}
BLOCK = {**BODY, "num_hidden_layers": 5, "num_target_layers": 36}
TAPS = {"mask_token_id": 151669, "target_layer_ids": [1, 9, 17, 25, 33]}
DFLASH = {**BLOCK, "architectures": ["DFlashDraftModel"], "block_size": 16, "dflash_config": TAPS}
DSPARK = {
    **BLOCK,
    "architectures": ["DSparkDraftModel"],
    "block_size": 7,
    "dflash_config": {**TAPS, "projector_type": "dspark", "markov_rank": 256},
}
ATTENTION = {"hidden": 4096, "intermediate": 12288, "heads": 32, "kv_heads": 8, "head_dim": 128}


@pytest.mark.parametrize(
    ("config", "kind"),
    [
        (EAGLE3, "eagle3"),
        ({**EAGLE3, "architectures": ["LlamaForCausalLM"]}, "eagle3"),
        ({**EAGLE3, "architectures": None}, "eagle3"),
        (DFLASH, "dflash"),
        ({**DFLASH, "architectures": ["QwenDFlashDraftModel"]}, "dflash"),
        (DSPARK, "dspark"),
        ({**DSPARK, "architectures": ["DFlashDraftModel"]}, "dspark"),
        ({"architectures": ["DSparkDraftModel"]}, "dspark"),
        ({**EAGLE3, "architectures": ["PEagleDraftModel"], "num_hidden_layers": 4}, None),
        ({"architectures": ["DominoDraftModel"], "dflash_config": {"projector_type": "domino"}}, None),
        ({**BODY, "architectures": ["Qwen3ForCausalLM"], "num_hidden_layers": 36}, None),
        ({**BODY, "num_hidden_layers": 1}, None),
        ({}, None),
        ({"architectures": 3, "dflash_config": 4, "num_hidden_layers": True, "draft_vocab_size": 1}, None),
    ],
)
def test_kind(config, kind):
    assert drafter_kind(config) == kind


def test_shapes():
    assert eagle3_shape(EAGLE3) == ATTENTION | {"layers": 1, "draft_vocab": 32000, "target_hidden": 4096}
    block = ATTENTION | {"layers": 5, "target_layers": 5, "vocab": 151936}
    assert dflash_shape(DFLASH) == block | {"block_size": 16}
    assert dspark_shape(DSPARK) == block | {"block_size": 7, "markov_rank": 256}
    assert drafter_shape(DSPARK, "x") == ("dspark", dspark_shape(DSPARK))


def test_eagle3_defaults():
    whole = {key: value for key, value in EAGLE3.items() if key != "draft_vocab_size"}
    assert eagle3_shape(whole)["draft_vocab"] == 151936
    assert eagle3_shape({**EAGLE3, "target_hidden_size": 5120})["target_hidden"] == 5120


def test_block_size_inside_dflash_config():
    inside = {**DFLASH, "block_size": None, "dflash_config": {**TAPS, "block_size": 8}}
    assert dflash_shape(inside)["block_size"] == 8
    with pytest.raises(ModelError, match=r"block_size is 16, but must be the same as in dflash_config \(8\)"):
        dflash_shape({**inside, "block_size": 16})


def without(config, *keys):
    return {key: value for key, value in config.items() if key not in keys}


@pytest.mark.parametrize(
    ("shape", "config", "match"),
    [
        (eagle3_shape, DFLASH, "config of dflash, not of eagle3"),
        (dflash_shape, DSPARK, "config of dspark, not of dflash"),
        (dspark_shape, {**BODY, "num_hidden_layers": 36}, "a model that is no drafter"),
        (dflash_shape, {"architectures": ["DominoDraftModel"]}, r"another drafter \(architecture Domino"),
        (eagle3_shape, without(EAGLE3, "hidden_size", "vocab_size"), "hidden_size, vocab_size missing"),
        (
            dspark_shape,
            {"architectures": ["DSparkDraftModel"]},
            r"hidden_size.*block_size, dflash_config\.target_layer_ids, dflash_config\.markov_rank missing",
        ),
        (eagle3_shape, {**EAGLE3, "draft_vocab_size": 200000}, "at most vocab_size 151936"),
        (eagle3_shape, {**EAGLE3, "draft_vocab_size": True}, "draft_vocab_size is True"),
        (eagle3_shape, {**EAGLE3, "num_key_value_heads": 5}, "divisor"),
        (eagle3_shape, {**EAGLE3, "kv_lora_rank": 512}, "latent attention"),
        (dflash_shape, {**DFLASH, "block_size": 1}, "whole number from 2"),
        (dflash_shape, {**DFLASH, "target_hidden_size": 5120}, "target_hidden_size is 5120"),
        (dflash_shape, {**DFLASH, "dflash_config": {"target_layer_ids": []}}, "one at least"),
        (dflash_shape, {**DFLASH, "dflash_config": {"target_layer_ids": [36]}}, "from 0 to 35"),
        (dflash_shape, {**DFLASH, "dflash_config": {"target_layer_ids": [1, 1]}}, "different layers"),
        (dflash_shape, {**DFLASH, "dflash_config": 5}, "dflash_config is 5, but must be an object"),
    ],
)
def test_refused(shape, config, match):
    with pytest.raises(ModelError, match=match) as caught:
        shape(config, "draft.json")
    assert str(caught.value).startswith("draft.json: ")
    assert "\n" not in str(caught.value)


def test_unsupported_drafter_is_named():
    with pytest.raises(ModelError, match=r"PEagleDraftModel.*supported drafters: eagle3, dflash, dspark"):
        drafter_shape({"architectures": ["PEagleDraftModel"]}, "x")
    with pytest.raises(ModelError, match="not a drafter's config"):
        drafter_shape(BODY, "x")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(
    base=st.sampled_from([EAGLE3, DFLASH, DSPARK, {}]),
    changes=st.dictionaries(st.sampled_from(sorted(DSPARK | EAGLE3)), JSON | st.integers(0, 99), max_size=3),
)
def test_anything_is_a_shape_or_refused(base, changes):
    try:
        _, shape = drafter_shape(base | changes, "x")
    except ModelError:
        return
    assert all(isinstance(value, int) and value > 0 for value in shape.values())
