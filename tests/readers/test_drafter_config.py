"""Drafter configs: kind, shape, and what is refused."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooflinekit.drafters import SHAPE_BUILDERS
from rooflinekit.drafting_options import make_drafter
from rooflinekit.errors import ModelError
from rooflinekit.precision import precision
from rooflinekit.readers.drafter_config import KINDS, drafter_kind, drafter_shape, k_words, kind_as_drafter
from rooflinekit.readers.models import find_llm
from rooflinekit.target import Target

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
DOMINO = {
    **BLOCK,
    "architectures": ["DominoDraftModel"],
    "block_size": 16,
    "dflash_config": {**TAPS, "projector_type": "domino", "emb_dim": 256, "gru_hidden_dim": 1024},
}
PEAGLE = {**EAGLE3, "architectures": ["PEagleDraftModel"], "num_hidden_layers": 4}
MEDUSA = {"medusa_num_heads": 2, "medusa_num_layers": 1, "base_model_name_or_path": "lmsys/vicuna-7b-v1.3"}
EAGLE = {**BODY, "architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": 1}
LATENT = {"kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128}
LATENT_EAGLE3 = {**EAGLE3, "architectures": ["Eagle3DeepseekV2ForCausalLM"], "q_lora_rank": 1536, **LATENT}
ATTENTION = {
    "hidden": 4096, "intermediate": 12288, "heads": 32, "kv_heads": 8, "head_dim": 128, "qk_norm": 1
}  # fmt: skip


def speculators(kind, proposed, layers=5, **fields):
    """A file of the speculators library: the layers nested, the proposal beside them."""
    methods = [{"proposal_type": "other", "speculative_tokens": 99}, {"proposal_type": "greedy"}]
    if proposed:
        methods[1]["speculative_tokens"] = proposed
    return {
        "architectures": [f"{kind.title()}Speculator"],
        "speculators_model_type": kind,
        "speculators_config": {"proposal_methods": methods, "default_proposal_method": "greedy"},
        "transformer_layer_config": {**BODY, "num_hidden_layers": layers, "sliding_window": None},
        "draft_vocab_size": 151936,
        **fields,
    }


def shape_of(config):
    return drafter_shape(config, "draft.json")[1]


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
        (LATENT_EAGLE3, "eagle3"),
        ({**EAGLE3, "architectures": ["Eagle3LlamaForCausalLM"]}, "eagle3"),
        (PEAGLE, "peagle"),
        (DOMINO, "domino"),
        (MEDUSA, "medusa"),
        ({"model_type": "medusa", "architectures": ["MedusaModel"], "num_heads": 5}, "medusa"),
        ({**EAGLE, "architectures": ["EagleLlamaForCausalLM"]}, "eagle"),
        (EAGLE, None),
        *((speculators(kind, 3), kind) for kind in KINDS if kind not in ("domino", "medusa", "eagle")),
        (speculators("dflash2", 3), None),
        ({**DFLASH, "architectures": ["QwenDFlareDraftModel"]}, None),
        ({**BODY, "architectures": ["Qwen3ForCausalLM"], "num_hidden_layers": 36}, None),
        ({**BODY, "num_hidden_layers": 1}, None),
        ({}, None),
        ({"architectures": 3, "dflash_config": 4, "num_hidden_layers": True, "draft_vocab_size": 1}, None),
    ],
)
def test_kind(config, kind):
    assert drafter_kind(config) == kind


def test_eagle_one_only_where_it_is_given_as_a_drafter():
    """One plain layer is EAGLE-1 for --drafter, and nothing by itself; many layers are a model."""
    assert kind_as_drafter(EAGLE) == "eagle"
    assert kind_as_drafter({**EAGLE, "num_hidden_layers": 16}) is None
    assert kind_as_drafter({**EAGLE, "architectures": ["OtherDraftModel"]}) is None
    llama = {key: value for key, value in ATTENTION.items() if key != "qk_norm"}
    assert shape_of(EAGLE) == llama | {"layers": 1, "vocab": 151936}


def test_shapes():
    eagle3 = ATTENTION | {"vocab": 151936, "draft_vocab": 32000, "target_hidden": 4096, "fused": 3}
    assert shape_of(EAGLE3) == eagle3 | {"layers": 1}
    assert shape_of(PEAGLE) == eagle3 | {"layers": 4}
    block = ATTENTION | {"layers": 5, "target_layers": 5, "vocab": 151936, "target_depth": 36}
    assert shape_of(DFLASH) == block | {"block_size": 16}
    assert shape_of(DSPARK) == block | {"block_size": 7, "markov_rank": 256}
    assert shape_of(DOMINO) == block | {"block_size": 16, "gru_width": 1024, "correction_width": 256}
    assert shape_of(MEDUSA) == {"heads": 2, "layers": 1}
    wide = {"model_type": "medusa", "num_heads": 5, "hidden_size": 4096, "vocab_size": 32000}
    medusa = {"heads": 5, "layers": 1, "hidden": 4096, "vocab": 32000}
    assert shape_of(wide) == medusa
    assert shape_of({**wide, "truncated_vocab_size": 8000}) == medusa | {"draft_vocab": 8000}


def test_eagle3_defaults():
    whole = {key: value for key, value in EAGLE3.items() if key != "draft_vocab_size"}
    assert shape_of(whole)["draft_vocab"] == 151936
    assert shape_of({**EAGLE3, "target_hidden_size": 5120})["target_hidden"] == 5120


def test_fused_states_are_counted_from_the_layer_ids():
    """Three without a list; the length of the list with one, wherever it stands; norms over each if asked."""
    nested = {**EAGLE3, "eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 20, 30, 40]}}
    assert shape_of(nested)["fused"] == 4
    assert shape_of({**EAGLE3, "eagle_aux_hidden_state_layer_ids": [1, 20]})["fused"] == 2
    assert shape_of({**EAGLE3, "fc_norm": True})["fusion_norms"] == 3 * 4096


def test_latent_attention_is_read():
    shape = shape_of(LATENT_EAGLE3)
    assert (
        shape | {"kv_lora_rank": 512, "q_lora_rank": 1536, "nope_dim": 128, "rope_dim": 64, "value_dim": 128}
        == shape
    )
    assert "kv_heads" not in shape
    assert "q_lora_rank" not in shape_of({**LATENT_EAGLE3, "q_lora_rank": None})


def test_windows_of_draft_layers():
    """By layer where types are listed, else of all layers where switched on; a width that is off is no window."""
    types = ["sliding_attention"] * 4 + ["full_attention"]
    mixed = {**DFLASH, "layer_types": types, "sliding_window": 2048, "use_sliding_window": True}
    assert (shape_of(mixed)["window"], shape_of(mixed)["window_layers"]) == (2048, 4)
    every = {**DFLASH, "sliding_window": 2048, "use_sliding_window": True}
    assert shape_of(every)["window_layers"] == 5
    assert "window" not in shape_of({**every, "use_sliding_window": False})
    assert "window" not in shape_of({**mixed, "layer_types": ["full_attention"] * 5})


def test_block_size_inside_dflash_config():
    inside = {**DFLASH, "block_size": None, "dflash_config": {**TAPS, "block_size": 8}}
    assert shape_of(inside)["block_size"] == 8
    with pytest.raises(ModelError, match=r"block_size is given as 16 .* and 8 .*dflash_config"):
        shape_of({**inside, "block_size": 16})


def test_fields_in_the_spelling_of_deepseek_v4():
    own = {"dspark_block_size": 5, "dspark_target_layer_ids": [1, 9], "dspark_markov_rank": 64}
    shape = shape_of({**BLOCK, "architectures": ["DSparkDraftModel"], **own})
    assert (shape["block_size"], shape["target_layers"], shape["markov_rank"]) == (5, 2, 64)


TAPPED = {"aux_hidden_state_layer_ids": [2, 10, 18, 26, 34]}


@pytest.mark.parametrize(
    ("config", "k"),
    [
        (DFLASH, 15),
        (DSPARK, 7),
        (DOMINO, 15),
        (MEDUSA, 2),
        (speculators("dflash", 15, block_size=16, **TAPPED), 15),
        (speculators("dflash", 15, **TAPPED), 15),
        (speculators("dflash", 6, block_size=16, **TAPPED), 6),
        (speculators("dflash", None, block_size=16, **TAPPED), 15),
        (speculators("dflash", None, block_size=16, sample_from_anchor=True, **TAPPED), 16),
        (speculators("dspark", 7, block_size=8, sample_from_anchor=True, markov_rank=256, **TAPPED), 7),
        (speculators("dspark", None, block_size=8, sample_from_anchor=True, markov_rank=256, **TAPPED), 8),
        (speculators("dspark", None, block_size=8, markov_rank=256, **TAPPED), 7),
        (speculators("peagle", 8, 4), 8),
    ],
)
def test_k_by_the_rule_of_each_format(config, k):
    """A block less its anchor, a whole block, heads; what a speculators file proposes goes before its block."""
    kind, shape = drafter_shape(config, "x")
    drafter = SHAPE_BUILDERS[kind](shape, TARGET.llm, precision("bf16"), "x")
    assert drafter.max_k == k
    assert k_words(kind, shape).startswith(f"K up to {k}")
    assert drafter.k_rule.startswith(f"up to {k}")


@pytest.mark.parametrize("config", [speculators("eagle3", 3, 1), speculators("mtp", 3, 1)])
def test_serial_drafters_show_the_proposal_and_take_any_k(config):
    kind, shape = drafter_shape(config, "x")
    drafter = SHAPE_BUILDERS[kind](shape, TARGET.llm, precision("bf16"), "x")
    assert drafter.max_k is None
    assert drafter.k_rule == "any; its config proposes 3"
    assert k_words(kind, shape) == "any K, 3 proposed"
    assert k_words("eagle3", shape_of(EAGLE3)) == k_words("peagle", shape_of(PEAGLE)) == "any K"


def test_modules_that_are_mixtures_take_their_layer_from_the_target():
    nested = speculators("mtp", 2, 1)
    nested["transformer_layer_config"]["num_experts"] = 64
    assert shape_of(nested) == {
        "hidden": 4096, "vocab": 151936, "modules": 1, "experts": 64, "proposed_k": 2
    }  # fmt: skip


def test_an_eagle_file_of_older_vllm_has_its_layers_under_model():
    old = {"architectures": ["EAGLEModel"], "model_type": "eagle", "model": EAGLE}
    assert drafter_shape(old, "x") == ("eagle", shape_of(EAGLE))


TARGET = Target(replace(find_llm("qwen3-8b"), mtp=None), precision("bf16"))


def written(tmp_path, config):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("config", "name"),
    [(EAGLE, "eagle"), (EAGLE3, "eagle3"), (LATENT_EAGLE3, "eagle3"), (PEAGLE, "peagle"), (DFLASH, "dflash"),
     (DSPARK, "dspark"), (DOMINO, "domino"), (MEDUSA, "medusa"), (speculators("mtp", 3, 1), "mtp")],
)  # fmt: skip
def test_a_file_becomes_a_drafter(tmp_path, config, name):
    drafter = make_drafter(written(tmp_path, config), TARGET)
    assert drafter.name == name
    assert "from config.json" in drafter.title


def test_a_drafter_of_another_width_is_refused(tmp_path):
    """The message for a one-layer model also says how to use it as a whole model."""
    with pytest.raises(ModelError, match=r"is for a target of width 5120.*trained for this target$"):
        make_drafter(written(tmp_path, {**EAGLE3, "target_hidden_size": 5120}), TARGET)
    with pytest.raises(ModelError, match=r"or write small-lm:.*config\.json if it is a whole model"):
        make_drafter(written(tmp_path, {**EAGLE, "hidden_size": 2048}), TARGET)
    with pytest.raises(ModelError, match=r"DFlareDraftModel.*because it weighs"):
        make_drafter(written(tmp_path, {**DFLASH, "architectures": ["QwenDFlareDraftModel"]}), TARGET)


LLAMA = Target(find_llm("llama-3.1-8b"), precision("bf16"))
SHALLOW = {key: value for key, value in DFLASH.items() if key != "num_target_layers"}
VICUNA = {**EAGLE, "vocab_size": 32000, "num_key_value_heads": 32, "intermediate_size": 11008}


@pytest.mark.parametrize(
    ("config", "vocab"),
    [
        (EAGLE3, 151936),
        (PEAGLE, 151936),
        (SHALLOW, 151936),
        (speculators("mtp", 3, 1), 151936),
        (VICUNA, 32000),
        ({**EAGLE, "vocab_size": 128256 + 513}, 128769),
    ],
)
def test_a_drafter_of_another_tokenizer_is_refused(tmp_path, config, vocab):
    """Llama-3.1-8B has 128,256 tokens and the same width: Qwen's and Vicuna's drafters are not for it."""
    with pytest.raises(ModelError, match=rf"vocabulary of {vocab} tokens, llama-3\.1-8b of 128256"):
        make_drafter(written(tmp_path, config), LLAMA)


def test_padding_is_no_other_tokenizer(tmp_path):
    """Qwen2.5's 152,064 and 151,936 are one tokenizer; DeepSeek's 129,280 and Llama's 128,256 are two."""
    padded = {**EAGLE3, "vocab_size": 152064}
    assert make_drafter(written(tmp_path, padded), TARGET).name == "eagle3"
    with pytest.raises(ModelError, match="vocabulary of 129280"):
        make_drafter(written(tmp_path, {**EAGLE3, "vocab_size": 129280}), LLAMA)


def test_a_drafter_for_another_depth_is_refused(tmp_path):
    """Trained on the states of 36 layers; where the config names no depth, nothing is compared."""
    deeper = replace(TARGET, llm=replace(TARGET.llm, blocks=TARGET.llm.blocks * 2))
    with pytest.raises(ModelError, match=r"for a target of 36 layers \(num_target_layers\), qwen3-8b has 72"):
        make_drafter(written(tmp_path, DFLASH), deeper)
    assert make_drafter(written(tmp_path, SHALLOW), deeper).name == "dflash"


def test_a_truncated_vocabulary_of_medusa_is_that_of_its_heads(tmp_path):
    """The tokenizer is compared, the heads are priced."""
    config = {**MEDUSA, "vocab_size": 151936, "truncated_vocab_size": 32000}
    assert make_drafter(written(tmp_path, config), TARGET).vocab == 32000


def test_a_file_shares_the_head_of_its_target_or_has_its_own(tmp_path):
    """A DFlash draft vocabulary, EAGLE-3 and Medusa have heads of their own: bf16; others run the target's."""
    target = replace(TARGET, precision=precision("bf16", classes={"head": "w8a16", "embedding": "w8a16"}))
    own = {**DFLASH, "draft_vocab_size": 32000}
    for config, head in (
        (EAGLE, 1.0), (DFLASH, 1.0), (DSPARK, 1.0), (DOMINO, 1.0), (speculators("mtp", 3, 1), 1.0),
        (own, 2.0), (EAGLE3, 2.0), (PEAGLE, 2.0), (MEDUSA, 2.0),
    ):  # fmt: skip
        numbers = make_drafter(written(tmp_path, config), target).precision
        assert (numbers.bytes_per("head"), numbers.bytes_per("embedding")) == (head, 1.0)
        assert numbers.bytes_per("mlp") == 2.0


def without(config, *keys):
    return {key: value for key, value in config.items() if key not in keys}


@pytest.mark.parametrize(
    ("config", "match"),
    [
        (without(EAGLE3, "hidden_size", "vocab_size"), "hidden_size, vocab_size missing"),
        (
            {"architectures": ["DSparkDraftModel"]},
            r"hidden_size.*block_size, dflash_config\.target_layer_ids, dflash_config\.markov_rank missing",
        ),
        ({"architectures": ["DominoDraftModel"]}, r"dflash_config\.gru_hidden_dim, dflash_config\.emb_dim missing"),
        ({"architectures": ["MedusaModel"], "model_type": "medusa"}, "medusa_num_heads missing"),
        ({**EAGLE3, "draft_vocab_size": 200000}, "at most vocab_size 151936"),
        ({**EAGLE3, "draft_vocab_size": True}, "draft_vocab_size is True"),
        ({**EAGLE3, "num_key_value_heads": 5}, "divisor"),
        ({**EAGLE3, "kv_lora_rank": 512}, "qk_nope_head_dim, qk_rope_head_dim, v_head_dim missing"),
        ({**EAGLE3, "eagle_config": {"eagle_aux_hidden_state_layer_ids": []}}, "differ or are empty"),
        ({**EAGLE3, "eagle_config": [1]}, "eagle_config is .* must be an object"),
        ({**DFLASH, "block_size": 1}, "whole number from 2"),
        ({**DFLASH, "target_hidden_size": 5120}, "target_hidden_size is 5120"),
        ({**DFLASH, "dflash_config": {"target_layer_ids": []}}, "one at least"),
        ({**DFLASH, "dflash_config": {"target_layer_ids": [36]}}, "from 0 to 35"),
        ({**DFLASH, "dflash_config": {"target_layer_ids": [1, 1]}}, "different layers"),
        ({**DFLASH, "dflash_config": 5}, "dflash_config is 5, but must be an object"),
        ({**DFLASH, "layer_types": ["full_attention"]}, "one type for each of num_hidden_layers 5"),
        ({**DFLASH, "layer_types": ["chunked_attention"] * 5}, "not chunked_attention"),
        ({**DFLASH, "layer_types": ["sliding_attention"] * 5}, "sliding_window is None"),
        ({**DSPARK, "markov_head_type": "gated"}, "markov_head_type 'gated' is not supported"),
        (speculators("dflash", 15, speculators_config={"proposal_methods": 5}), "must be a list of objects"),
        (speculators("dflash2", 15), "Dflash2Speculator.*because its layers"),
        (speculators("later", 15), r"not supported \(architecture LaterSpeculator\); supported drafters: eagle, "),
        ({"architectures": ["OtherDraftModel"]}, r"not supported \(architecture Other"),
        ({**BODY, "num_hidden_layers": 36}, "not a drafter's config"),
    ],
)  # fmt: skip
def test_refused(config, match):
    with pytest.raises(ModelError, match=match) as caught:
        drafter_shape(config, "draft.json")
    assert str(caught.value).startswith("draft.json: ")
    assert "\n" not in str(caught.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


FIELDS = sorted(
    DSPARK | LATENT_EAGLE3 | MEDUSA | speculators("mtp", 3) | {"layer_types": 0, "sliding_window": 0}
)


@settings(max_examples=300, deadline=None)
@given(
    base=st.sampled_from(
        [EAGLE, EAGLE3, DFLASH, DSPARK, DOMINO, MEDUSA, LATENT_EAGLE3, speculators("mtp", 3, 1), {}]
    ),
    changes=st.dictionaries(st.sampled_from(FIELDS), JSON | st.integers(0, 99), max_size=3),
)
def test_anything_is_a_shape_or_refused(base, changes):
    try:
        _, shape = drafter_shape(base | changes, "x")
    except ModelError:
        return
    assert all(isinstance(value, int) and value > 0 for value in shape.values())
