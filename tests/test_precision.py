"""Number formats: bits with their scales, what computes, and unknown names."""

import pytest

from rooflinekit.errors import ModelError
from rooflinekit.memory import resident_weight_bytes
from rooflinekit.precision import FORMATS, KV_FORMATS, WEIGHT_ONLY, precision
from rooflinekit.readers.models import find_llm

# Bytes of a weight by hand: payload plus scale over group.
WEIGHT_BYTES = {
    "fp32": 4.0,
    "bf16": 2.0,
    "fp16": 2.0,
    "fp8": 1 + 4 / (128 * 128),
    "int8": 1.0,
    "w8a16": 1.0,
    "w4a16": 0.5 + 2 / 128,
    "w4a16-g64": 0.5 + 2 / 64,
    "w4a16-g32": 0.5 + 2 / 32,
    "nvfp4": 8 / 16 + 1 / 16,
    "mxfp4": 16 / 32 + 1 / 32,
    "w4a16-nvfp4": 8 / 16 + 1 / 16,
    "w4a16-mxfp4": 16 / 32 + 1 / 32,
    # llama.cpp blocks: q8_0 32 int8 and a half; q4_0 32 nibbles and a half; k-quants of 256 with 6-bit scales.
    "q8_0": 34 / 32,
    "q6_k": (128 + 64 + 16 + 2) / 256,
    "q5_k": (128 + 32 + 12 + 4) / 256,
    "q4_k": (128 + 12 + 4) / 256,
    "q4_0": 18 / 32,
    "q3_k": (64 + 32 + 12 + 2) / 256,
}
COMPUTE = {"fp32": "fp32", "bf16": "bf16", "fp16": "fp16", "fp8": "fp8", "int8": "int8", "w8a16": "bf16"} | {
    "w4a16": "bf16",
    "w4a16-g64": "bf16",
    "w4a16-g32": "bf16",
    "nvfp4": "fp4",
    "mxfp4": "fp4",
    "w4a16-nvfp4": "bf16",
    "w4a16-mxfp4": "bf16",
    **dict.fromkeys(("q8_0", "q6_k", "q5_k", "q4_k", "q4_0", "q3_k"), "bf16"),
}


@pytest.mark.parametrize("name", FORMATS)
def test_bytes_of_a_weight_count_its_scales(name):
    """nvfp4 is 9/16 byte a weight, not half: the scales are read too."""
    assert precision(name).bytes_per_weight == pytest.approx(WEIGHT_BYTES[name], rel=1e-12)


@pytest.mark.parametrize("name", FORMATS)
def test_the_compute_format_is_that_of_the_matrix_unit(name):
    """Weight-only formats dequantise first, so they compute in bf16."""
    assert precision(name).compute == COMPUTE[name]


@pytest.mark.parametrize("name", FORMATS)
def test_quantised_checkpoints_keep_head_cache_and_activations(name):
    """Only the linear layers' weights shrink unless another cache format is named."""
    one = precision(name)
    wide = 4.0 if name == "fp32" else 2.0
    head = WEIGHT_BYTES[name] if name.startswith("q") else wide  # GGUF files quantise the head too
    assert (one.bytes_per("head"), one.bytes_per_kv, one.bytes_per_activation) == (head, wide, wide)


@pytest.mark.parametrize(
    ("model", "name", "gigabytes"),
    [
        ("llama-3.1-8b", "q4_k_m", 4.92),
        ("llama-3.1-8b", "q5_k_m", 5.73),
        ("llama-3.1-70b", "q4_k_m", 42.52),
        ("llama-3.2-1b", "q8_0", 1.32),
        ("qwen3-8b", "q4_k_m", 5.03),
    ],
)
def test_gguf_mixes_have_the_size_of_their_files(model, name, gigabytes):
    """File sizes as printed beside public GGUF conversions (second-hand; 8B Q4_K_M also in llama.cpp issue 10664)."""
    found = resident_weight_bytes(find_llm(model), precision(name))
    assert found / 1e9 == pytest.approx(gigabytes, rel=0.01)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("kv", KV_FORMATS)
def test_the_cache_format_is_a_choice_of_its_own(name, kv):
    """Naming a cache format changes the cache and nothing else."""
    plain, chosen = precision(name), precision(name, kv)
    assert chosen.bytes_per_kv == {"fp32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "int8": 1}[kv]
    assert (chosen.main, chosen.classes) == (plain.main, plain.classes)


@pytest.mark.parametrize("name", WEIGHT_ONLY)
def test_the_weight_only_alternative_saves_as_many_bytes(name):
    """What is named instead is no larger than one scale, and computes in bf16."""
    other = precision(WEIGHT_ONLY[name])
    assert other.compute == "bf16"
    assert other.main.bits == pytest.approx(precision(name).main.bits, rel=0.1)


@pytest.mark.parametrize(
    ("name", "near"), [("bfloat16", "bf16"), ("FP8", "fp8"), ("int4", "int8"), ("w4a4", "w4a16")]
)
def test_an_unknown_format_names_the_nearest(name, near):
    """A misspelt format is refused with a suggestion."""
    with pytest.raises(ModelError, match=near):
        precision(name)


def test_an_unknown_cache_format_is_refused():
    """The cache has fewer formats than the weights."""
    with pytest.raises(ModelError, match="KV cache format 'nvfp4'"):
        precision("bf16", "nvfp4")
