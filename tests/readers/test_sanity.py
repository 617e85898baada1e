"""Warnings about configs that can be read."""

import json

import pytest

from rooflinekit.readers.hf_config import llm_from_config
from rooflinekit.readers.models import find_llm, find_warnings, model_names
from rooflinekit.readers.sanity import sizes_in, warnings

CUT = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 1,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
}


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("Llama-3.1-8B-Instruct", [8e9]),
        ("Qwen3-30B-A3B", [30e9]),
        ("Llama-4-Scout-17B-16E", [17e9]),
        ("Mixtral-8x7B-v0.1", [56e9]),
        ("SmolLM2-135M", [135e6]),
        ("qwen3-0.6b", [0.6e9]),
        ("DeepSeek-V3", []),
        ("t5-v1_1-xxl", []),
        ("gemma-3n-E4B", []),
    ],
)
def test_sizes_in_names(name, sizes):
    assert [size for _, _, size in sizes_in(name)] == pytest.approx(sizes)


@pytest.mark.parametrize("name", model_names())
def test_no_preset_is_doubtful(name):
    assert find_warnings(name) == ()


def test_a_config_cut_to_one_layer_is_doubtful():
    model = llm_from_config(CUT, "Llama-3.1-8B")
    (said,) = warnings(CUT, model, "some/folder/Llama-3.1-8B")
    assert "1.27 B parameters" in said
    assert "says 8 B" in said
    (said,) = warnings({**CUT, "_name_or_path": "meta-llama/Llama-3.1-8B"}, model, "mine")
    assert "says 8 B" in said
    assert warnings(CUT, model, "mine") == ()
    assert warnings({**CUT, "_name_or_path": 3}, model, "mine") == ()


def test_a_rounded_size_is_not_doubtful():
    # Llama-3.2-1B counts 1.24 B, Mixtral-8x7B 46.7 B.
    assert warnings({}, find_llm("llama-3.2-1b"), "Llama-3.2-1B") == ()
    assert warnings({}, find_llm("mixtral-8x7b"), "Mixtral-8x7B") == ()
    assert len(warnings({}, find_llm("llama-3.1-8b"), "Mixtral-8x7B")) == 1


@pytest.mark.parametrize("name", ["Tiny-FP8", "a/tiny-nvfp4", "tiny-W4A16-x", "tiny_int4", "tiny-awq"])
def test_a_format_in_the_name_alone_is_doubtful(name):
    model = llm_from_config(CUT, name)
    (said,) = warnings(CUT, model, name)
    assert "but the config has no quantization: the weights count as bf16" in said
    quantized = {**CUT, "quantization_config": {"quant_method": "fp8"}}
    assert warnings(quantized, llm_from_config(quantized, name), name) == ()


def test_parts_of_words_are_no_format():
    model = llm_from_config(CUT, "tiny")
    assert [warnings(CUT, model, name) for name in ("xfp8", "FP8B", "fp8/tiny", "paint4me")] == [()] * 4


def test_parts_that_are_not_counted_are_said():
    (said,) = warnings({"vision_config": {}}, find_llm("qwen3-8b"), "qwen3-8b")
    assert "language model only" in said


def test_warnings_are_shown(tmp_path, capsys):
    from rooflinekit.cli import run

    folder = tmp_path / "Llama-3.1-8B"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CUT), encoding="utf-8")
    assert run(["models", "check", str(folder)]) == 0
    assert "says 8 B" in capsys.readouterr().err
    assert run(["models", "show", str(folder)]) == 0
    assert "says 8 B" in capsys.readouterr().out
    assert run(["models", "show", str(folder), "--json"]) == 0
    assert "says 8 B" in json.loads(capsys.readouterr().out)["warnings"][0]


def test_formats_and_context_can_be_named(capsys):
    from rooflinekit.cli import run

    arguments = ["models", "show", "gpt-oss-20b", "--json"]
    assert run(arguments) == 0
    own = json.loads(capsys.readouterr().out)
    assert run([*arguments, "--dtype", "fp8", "--kv-dtype", "fp8", "--context", "100"]) == 0
    other = json.loads(capsys.readouterr().out)
    assert {row["tensor_class"]: row["format"] for row in own["breakdown"]}["experts"] == "w4a16-mxfp4"
    assert {row["tensor_class"]: row["format"] for row in other["breakdown"]}["experts"] == "fp8"
    assert other["kv_bytes_per_token"] == own["kv_bytes_per_token"] / 2
    assert other["kv_read_bytes_per_step"] == 24 * 2 * 8 * 64 * 101
    assert run([*arguments, "--dtype", "int3"]) == 2
    assert run([*arguments, "--context", "-1"]) == 2
