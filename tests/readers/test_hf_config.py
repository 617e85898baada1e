"""config.json to model: families, defaults, and every way a file can be wrong."""

import json
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rooflinekit.errors import ModelError
from rooflinekit.llm import Attention, Mlp, Moe
from rooflinekit.readers.hf_config import FAMILIES, llm_from_config, load_llm, read_config

BASE = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 6,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "vocab_size": 500,
}
EXPERTS = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
DEEPSEEK = {
    "q_lora_rank": 24,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4,
    "v_head_dim": 6,
    "n_routed_experts": 8,
    "n_shared_experts": 2,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
    "first_k_dense_replace": 2,
}
EXTRA = {
    "mixtral": {"num_local_experts": 8, "num_experts_per_tok": 2},
    "qwen3_moe": EXPERTS,
    "deepseek_v2": DEEPSEEK,
    "deepseek_v3": DEEPSEEK,
    "kimi_k2": DEEPSEEK,
    "kimi_k25": DEEPSEEK,
    "gpt_oss": {"num_local_experts": 8, "num_experts_per_tok": 2},
    "llama4": {"num_local_experts": 8, "num_experts_per_tok": 1, "intermediate_size_mlp": 70},
    "minimax_m2": {"num_local_experts": 8, "num_experts_per_tok": 2},
    "glm4_moe": {key: DEEPSEEK[key] for key in DEEPSEEK if "expert" in key or "moe" in key or "dense" in key},
    "qwen3_vl_moe": EXPERTS,
    "step3p7": EXPERTS,
    "t5": {"d_kv": 8},
}


def config(model_type="llama", **changes):
    return {"model_type": model_type, **BASE, **EXTRA.get(model_type, {}), **changes}


def build(model_type="llama", **changes):
    return llm_from_config(config(model_type, **changes), "tiny")


def refuse(match, model_type="llama", **changes):
    with pytest.raises(ModelError, match=match) as caught:
        build(model_type, **changes)
    assert "\n" not in str(caught.value)


# -- families and defaults ------------------------------------------------------------------------


def test_llama_parameters_by_hand():
    # QKV (8 + 4) x 8 x 64, output 64 x 64, three MLP matrices, two norms; untied tables and a last norm.
    layer = 96 * 64 + 64 * 64 + 3 * 96 * 64 + 2 * 64
    assert build().total_params == 6 * layer + 2 * 500 * 64 + 64


def test_absent_kv_heads_mean_multi_head():
    without = {key: value for key, value in config().items() if key != "num_key_value_heads"}
    assert llm_from_config(without, "tiny").blocks[0].mixer.kv_heads == 8
    assert build(num_key_value_heads=None).blocks[0].mixer.kv_heads == 8


@pytest.mark.parametrize(("given_dim", "expected"), [(None, 8), (32, 32)])
def test_head_dim(given_dim, expected):
    assert build(head_dim=given_dim).blocks[0].mixer.head_dim == expected


def test_qwen3_without_head_dim_has_the_default_of_transformers():
    assert build("qwen3").blocks[0].mixer.head_dim == 128


def test_tables_are_untied_unless_said():
    assert not build().tied
    assert build().total_params - build(tie_word_embeddings=True).total_params == 500 * 64


def test_biases_and_norms_of_the_families():
    def attention(name, **changes):
        found = build(name, **changes).blocks[0].mixer
        return found.qkv_bias, found.out_bias, found.qk_norm

    assert attention("llama") == (False, False, False)
    assert attention("llama", attention_bias=True) == (True, True, False)
    assert attention("qwen2") == (True, False, False)
    assert attention("qwen3") == (False, False, True)
    assert attention("qwen3_moe", attention_bias=True) == (True, True, True)
    assert build(mlp_bias=True).blocks[0].ffn.bias


def windows(model):
    return [(block.count, block.mixer.window) for block in model.blocks]


def test_windows():
    assert windows(build("qwen2", sliding_window=32, use_sliding_window=False)) == [(6, None)]
    assert windows(build("qwen2", sliding_window=32, use_sliding_window=True, max_window_layers=4)) == [
        (4, None),
        (2, 32),
    ]
    kinds = ["sliding_attention", "full_attention"] * 3
    alternating = build("qwen3", sliding_window=32, use_sliding_window=True, layer_types=kinds)
    assert windows(alternating) == [(1, 32), (1, None)] * 3
    assert windows(build("mistral", sliding_window=32)) == [(6, 32)]
    assert windows(build("mistral", sliding_window=None)) == [(6, None)]
    assert windows(build("mistral")) == [(6, 4096)]
    assert windows(build("mixtral", sliding_window=32)) == [(6, 32)]


def test_qwen3_moe_dense_layers():
    model = build("qwen3_moe", mlp_only_layers=[0], decoder_sparse_step=2)
    assert [(block.count, type(block.ffn)) for block in model.blocks] == [(1, Mlp), (1, Moe)] * 3
    assert [block.count for block in build("qwen3_moe").blocks] == [6]


def test_deepseek_dense_then_sparse_with_shared_experts():
    dense, sparse = build("deepseek_v3").blocks
    assert (dense.count, sparse.count) == (2, 4)
    assert (sparse.ffn.experts, sparse.ffn.top_k, sparse.ffn.shared_intermediate) == (8, 2, 32)
    assert sparse.mixer.kv_elements() == 16 + 4
    assert build("deepseek_v2", q_lora_rank=None).blocks[0].mixer.q_lora_rank is None
    assert build("deepseek_v2", n_shared_experts=None).blocks[1].ffn.shared_intermediate == 0
    every_second = build("deepseek_v3", first_k_dense_replace=1, moe_layer_freq=2)
    assert [type(block.ffn) for block in every_second.blocks] == [Mlp, Moe, Mlp, Moe, Mlp]


@pytest.mark.parametrize(
    ("fields", "dtype"),
    [
        ({}, "bf16"),
        ({"torch_dtype": "float16"}, "fp16"),
        ({"dtype": "float32"}, "fp32"),
        ({"dtype": "torch.bfloat16"}, "bf16"),
        ({"torch_dtype": "bfloat16", "quantization_config": {"quant_method": "fp8"}}, "fp8"),
        ({"quantization_config": {"quant_method": "modelopt", "quant_algo": "FP8"}}, "fp8"),
        ({"quantization_config": None}, "bf16"),
    ],
)
def test_stored_format(fields, dtype):
    assert build(**fields).dtype == dtype


def test_two_names_of_the_format_must_agree():
    assert build(torch_dtype="float16", dtype="torch.float16").dtype == "fp16"
    assert build(torch_dtype=None, dtype="float16").dtype == "fp16"
    refuse("torch_dtype is 'float16', but dtype is 'bfloat16'", torch_dtype="float16", dtype="bfloat16")


def test_architecture_alone_is_enough():
    fields = {key: value for key, value in config().items() if key != "model_type"}
    assert llm_from_config(fields | {"architectures": ["LlamaForCausalLM"]}, "tiny").layers == 6


def test_context_length():
    assert build(max_position_embeddings=4096).max_context == 4096
    assert build().max_context == 0


# -- fields that cannot be --------------------------------------------------------------------------


def test_number_too_long_to_print():
    refuse("a number of thousands of digits", hidden_size=10**5000)


def test_all_missing_fields_are_named_at_once():
    with pytest.raises(ModelError, match="hidden_size, num_hidden_layers, num_attention_heads, vocab_size"):
        llm_from_config({"model_type": "llama", "intermediate_size": 3}, "tiny")
    with pytest.raises(ModelError, match=r"n_routed_experts.*q_lora_rank, n_shared_experts"):
        llm_from_config({"model_type": "deepseek_v3", **BASE}, "tiny")


@pytest.mark.parametrize("value", [0, -1, True, 4.0, "64", [64], {}, 10**7, float("nan")])
def test_width_must_be_a_sensible_whole_number(value):
    refuse("tiny: hidden_size is .* must be a whole number from 1 to 1000000", hidden_size=value)


@pytest.mark.parametrize(
    ("match", "model_type", "changes"),
    [
        ("num_hidden_layers is 1001", "llama", {"num_hidden_layers": 1001}),
        ("num_key_value_heads is 3, but must be a divisor of .* 8", "llama", {"num_key_value_heads": 3}),
        ("num_attention_heads is 7.*head_dim", "llama", {"num_attention_heads": 7, "num_key_value_heads": 7}),
        ("head_dim is 0", "llama", {"head_dim": 0}),
        ("attention_bias is 1, but must be true or false", "llama", {"attention_bias": 1}),
        ("tie_word_embeddings is 'no'", "llama", {"tie_word_embeddings": "no"}),
        ("torch_dtype is 'int4'", "llama", {"torch_dtype": "int4"}),
        ("dtype is 16", "llama", {"dtype": 16}),
        ("quant_method 'x', but only fp8", "llama", {"quantization_config": {"quant_method": "x"}}),
        ("bits is None, but must be", "llama", {"quantization_config": {"quant_method": "awq"}}),
        ("quantization_config is 3, but must be an object", "llama", {"quantization_config": 3}),
        (
            "num_experts_per_tok is 9, but must be at most num_experts 8",
            "qwen3_moe",
            {"num_experts_per_tok": 9},
        ),
        ("mlp_only_layers is .6.*from 0 to 5", "qwen3_moe", {"mlp_only_layers": [6]}),
        ("decoder_sparse_step is 0", "qwen3_moe", {"decoder_sparse_step": 0}),
        ("first_k_dense_replace is 7", "deepseek_v3", {"first_k_dense_replace": 7}),
        ("layer_types is", "qwen3", {"layer_types": ["full_attention"]}),
        ("sliding_window is -4", "mistral", {"sliding_window": -4}),
        ("max_position_embeddings is -1", "llama", {"max_position_embeddings": -1}),
        ("architectures is 'x', but must be a list", "llama", {"architectures": "x"}),
    ],
)
def test_impossible_field_is_refused(match, model_type, changes):
    refuse(match, model_type, **changes)


def test_unsupported_architecture_is_named_with_those_supported():
    refuse("gpt_neox.*llama, mistral, mixtral, qwen2", "gpt_neox")
    expected = "model_type llama expects class LlamaForCausalLM, but architectures says 'LlamaForSequenceC"
    refuse(expected, architectures=["LlamaForSequenceClassification"])
    with pytest.raises(ModelError) as caught:
        build(architectures=["XForCausalLM"])
    assert "mixtral" not in str(caught.value)
    with pytest.raises(ModelError, match="neither model_type nor architectures"):
        llm_from_config({"quantization": {"quant_algo": "FP8"}}, "tiny")
    with pytest.raises(ModelError, match="not an object"):
        llm_from_config([], "tiny")


@pytest.mark.parametrize(
    "changes",
    [
        {"architectures": ["LlamaForCausalLMEagle3"]},
        {"architectures": ["DFlashDraftModel"]},
        {"architectures": ["DSparkDraftModel"]},
        {"architectures": ["PEagleDraftModel"]},
        {"draft_vocab_size": 32000},
        {"medusa_num_heads": 5},
    ],
)
def test_drafter_belongs_to_another_option(changes):
    refuse("a drafter.* --drafter", **changes)


# -- files ------------------------------------------------------------------------------------------


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_file_and_folder_give_the_same_model(tmp_path):
    folder = tmp_path / "tiny"
    folder.mkdir()
    write(folder / "config.json", json.dumps(config()))
    assert load_llm(folder) == load_llm(folder / "config.json") == build()
    assert read_config(folder) == config()
    assert load_llm(write(tmp_path / "mine.json", "\ufeff" + json.dumps(config()))).name == "mine"


def test_quantization_file_beside_the_config(tmp_path):
    write(tmp_path / "config.json", json.dumps(config()))
    beside = tmp_path / "hf_quant_config.json"
    write(beside, json.dumps({"quantization": {"quant_algo": "FP8"}}))
    assert load_llm(tmp_path).dtype == "fp8"
    write(beside, json.dumps({"quantization": {"quant_algo": "NVFP4"}}))
    assert load_llm(tmp_path).dtype == "nvfp4"
    write(beside, json.dumps({"quantization": {"quant_algo": "W3A8"}}))
    with pytest.raises(ModelError, match="W3A8"):
        load_llm(tmp_path)
    write(beside, json.dumps({"quantization": {"quant_algo": 4}}))
    with pytest.raises(ModelError, match="quant_algo is 4"):
        load_llm(tmp_path)
    write(beside, json.dumps({"quantization": None}))
    assert load_llm(tmp_path).dtype == "bf16"


def test_quantization_of_both_files_must_agree(tmp_path):
    beside = tmp_path / "hf_quant_config.json"
    own = {
        "quant_method": "modelopt",
        "quant_algo": "FP8",
        "kv_cache_scheme": {"num_bits": 8, "type": "float"},
    }
    write(tmp_path / "config.json", json.dumps(config(quantization_config=own)))
    for same in ({"quant_algo": "FP8"}, {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}):
        write(beside, json.dumps({"quantization": same}))
        assert (load_llm(tmp_path).dtype, load_llm(tmp_path).kv_dtype) == ("fp8", "fp8")
    for other, said in (
        ({"quant_algo": "NVFP4"}, "nvfp4, cache auto"),
        ({"quant_algo": "FP8", "kv_cache_quant_algo": "INT8"}, "fp8, cache int8"),
    ):
        write(beside, json.dumps({"quantization": other}))
        both = f"quantization_config says fp8, cache fp8, but the hf_quant_config.json beside it says {said}"
        with pytest.raises(ModelError, match=both):
            load_llm(tmp_path)


@pytest.mark.parametrize(
    ("name", "data", "match"),
    [
        ("c.json", b"", "is empty"),
        ("c.json", b" \n", "is empty"),
        ("c.json", b'{"a": 1,\n "b": 2', r"ends too early \(line 2, column 8"),
        ("c.json", b'{"a": "tex', r"ends too early \(line 1, column 7"),
        ("c.json", b'{"a": 1,\n  b: 2}', r"is not valid JSON \(line 2, column 3"),
        ("c.json", b"[1, 2]", "list, not an object"),
        ("c.json", b'"text"', "str, not an object"),
        ("c.json", b"\x80\x81\x82", "binary file"),
        ("c.json", b"GGUF\0\0\0", "binary file"),
        ("c.json", b"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"),
        ("c.json", b"[" * 100_000, "too deep"),
        ("c.json", b'{"a": ' + b"1" * 5000 + b"}", "too long a number"),
        ("model.safetensors", b"{}", "weights file"),
        ("model.gguf", b"GGUF", "weights file"),
    ],
)
def test_wrong_file(name, data, match, tmp_path):
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(ModelError, match=match) as caught:
        load_llm(path)
    assert str(path) in str(caught.value)


def test_wrong_place(tmp_path):
    with pytest.raises(ModelError, match="does not exist"):
        load_llm(tmp_path / "none.json")
    with pytest.raises(ModelError, match=r"holds no config\.json"):
        load_llm(tmp_path)
    with pytest.raises(ModelError, match=r"cannot be opened|does not exist"):
        load_llm(tmp_path / ("a" * 5000))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelError, match="not a regular file"):
        load_llm(tmp_path / "pipe")
    large = tmp_path / "large.json"
    with large.open("wb") as file:
        file.truncate(17 * 1024**2)
    with pytest.raises(ModelError, match="a file of 18 MB"):
        load_llm(large)


# -- anything at all ----------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = sorted(
    set().union(*(config(name) for name in FAMILIES))
    | {"architectures", "head_dim", "sliding_window", "use_sliding_window", "layer_types", "mlp_only_layers"}
    | {
        "torch_dtype",
        "dtype",
        "quantization_config",
        "decoder_sparse_step",
        "moe_layer_freq",
        "dflash_config",
    }
)
VALUES = (
    JSON | st.integers(0, 70) | st.sampled_from(["float16", ["LlamaForCausalLM"], {"quant_method": "fp8"}])
)


@settings(max_examples=150, deadline=None)
@given(
    name=st.sampled_from(sorted(FAMILIES)), changes=st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=3)
)
def test_changed_configs_load_or_are_refused(name, changes):
    try:
        model = llm_from_config(config(name) | changes, "tiny")
    except ModelError:
        return
    assert 0 < model.active_params <= model.total_params
    assert isinstance(model.blocks[0].ffn, Mlp | Moe)
    assert model.kv_elements_per_token() > 0
    if isinstance(model.blocks[0].mixer, Attention):
        assert model.blocks[0].mixer.heads % model.blocks[0].mixer.kv_heads == 0


@settings(max_examples=60, deadline=None)
@given(JSON)
def test_random_json_is_refused(value):
    with pytest.raises(ModelError):
        llm_from_config(value, "tiny")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode()))
def test_random_bytes_are_refused(tmp_path, data):
    path = tmp_path / "config.json"
    path.write_bytes(data)
    with pytest.raises(ModelError):
        load_llm(path)
