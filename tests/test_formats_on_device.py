"""Formats of a checkpoint on a device that lacks some of them, and the memory of what waits for a verdict."""

import pytest

from rooflinekit.memory import resident_weight_bytes, snapshot_bytes
from rooflinekit.precision import precision
from rooflinekit.readers.models import find_llm
from rooflinekit.resolve import setup


@pytest.mark.parametrize(
    ("model", "device", "label", "computes"),
    [
        ("gpt-oss-20b", "t4", "fp16, experts w4a16-mxfp4", {"fp16"}),
        ("gpt-oss-20b", "a100-sxm4-80gb", "bf16, experts w4a16-mxfp4", {"bf16"}),
        ("deepseek-v4-flash", "a100-sxm4-80gb", "w8a16, experts w4a16-mxfp4", {"bf16"}),
    ],
)
def test_a_mixed_checkpoint_takes_class_by_class_what_the_device_has(model, device, label, computes):
    numbers = setup(model, device, calibration="datasheet").target.precision
    assert numbers.label == label
    assert set(numbers.computes) == computes
    assert numbers.bytes_per("experts") == 4.25 / 8


def test_a_uniform_format_has_its_plain_name():
    assert precision("fp8").label == "fp8"
    assert precision("q4_k_m").label == "q4_k_m"
    assert precision("bf16", classes={"head": "fp8"}).label == "bf16, head fp8"


def test_states_of_a_hybrid_are_kept_for_each_drafted_token():
    # 36 of 48 layers of Qwen3-Next: 32 value heads of 128 x 128, and 3 inputs of (2 x 16 + 32) heads of 128 that a
    # convolution over 4 tokens still needs; fp32.
    state = 36 * (32 * 128 * 128 + 3 * (2 * 16 + 32) * 128)
    llm = find_llm("qwen3-next-80b-a3b")
    assert snapshot_bytes(llm, 2.0, 5.0) == 2 * 5 * llm.state_elements() * 4
    assert llm.state_elements() == pytest.approx(state, rel=1e-9)
    assert snapshot_bytes(find_llm("llama-3.1-8b"), 8.0, 5.0) == 0


def test_a_tied_table_is_held_once_in_the_format_of_the_head():
    llm = find_llm("llama-3.2-1b")
    main, head = precision("q4_k_m").of("embedding"), precision("q4_k_m").of("head")
    assert main.bits < head.bits
    table = llm.vocab * llm.hidden
    layers = resident_weight_bytes(llm, precision("q4_k_m")) - table * head.bits / 8
    blocks = sum(
        block.count * one.parameters * precision("q4_k_m").bytes_per(one.tensor_class)
        for block in llm.blocks
        for one in block.linears(llm.hidden)
    )
    norms = (llm.layers * 2 + 1) * llm.hidden * 2
    assert layers == pytest.approx(blocks + norms, rel=1e-12)
