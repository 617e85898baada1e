"""Presets and names: counts against independently counted values, and names that are wrong."""

import csv
import json
import re
from pathlib import Path

import pytest

from rooflinekit.errors import ModelError
from rooflinekit.readers.models import find_llm, model_names

COUNTS = Path(__file__).parents[1] / "reference" / "parameter_counts.csv"
with COUNTS.open(encoding="utf-8", newline="") as _file:
    ROWS = list(csv.DictReader(_file))

# Bytes of K and V one token leaves, two bytes an element: 2 x layers x KV heads x head dimension x 2;
# DeepSeek-V3: 61 x (512 + 64) x 2, as its report gives the cached latent (arXiv:2412.19437, section 2.1.1).
KV_BYTES = {
    "deepseek-v3": 70_272,
    "llama-3.1-8b": 131_072,
    "llama-2-7b": 524_288,
    "qwen3-30b-a3b": 98_304,
    "llama-3.1-70b": 327_680,
}


@pytest.mark.parametrize("row", ROWS, ids=[row["model"] for row in ROWS])
def test_parameter_counts_are_exact(row):
    model = find_llm(row["model"])
    assert model.total_params == int(row["total_params"])
    assert model.active_params == int(row["active_params_incl_embedding"])
    assert row["source"]


def test_every_preset_has_a_counted_value():
    with COUNTS.with_name("parameter_counts_hybrid.csv").open(encoding="utf-8", newline="") as file:
        hybrids = {row["model"] for row in csv.DictReader(file)}
    assert {row["model"] for row in ROWS} == set(model_names()) - hybrids


@pytest.mark.parametrize("name", model_names())
def test_preset_states_its_origin_and_name(name):
    folder = Path(find_llm.__code__.co_filename).parents[1] / "presets" / "models"
    assert "config.json" in json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))["_source"]
    assert find_llm(name).name == name


@pytest.mark.parametrize(("name", "expected"), KV_BYTES.items())
def test_kv_bytes_per_token(name, expected):
    assert find_llm(name).kv_elements_per_token() * 2 == expected


@pytest.mark.parametrize(
    ("name", "dtype"), [("deepseek-v3", "fp8"), ("llama-2-7b", "fp16"), ("llama-3.1-8b", "bf16")]
)
def test_stored_format(name, dtype):
    assert find_llm(name).dtype == dtype


def test_deepseek_v3_is_dense_then_moe():
    dense, sparse = find_llm("deepseek-v3").blocks
    assert (dense.count, sparse.count) == (3, 58)


def test_names_are_sorted_and_case_does_not_matter():
    assert list(model_names()) == sorted(model_names())
    assert find_llm("Llama-3.1-8B") == find_llm("llama-3.1-8b")


def test_names_are_listed_without_reading_a_file(monkeypatch):
    monkeypatch.setattr(Path, "read_bytes", None)
    assert "qwen3-8b" in model_names()


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("lama-3.1-8b", "llama-3.1-8b"),
        ("gpt-9", "known: "),
        ("", "known: "),
        ("meta-llama/Llama-3.1-8B", "did you mean llama-3.1-8b.*nothing is downloaded"),
        ("missing.json", "does not exist"),
        ("x\0y", "unknown"),
        ("a" * 5000, "unknown"),
        ("/" + "a" * 5000, "does not exist"),
    ],
)
def test_unknown_name_says_what_to_do(name, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError, match=says) as caught:
        find_llm(name)
    assert re.search("rooflinekit models list", str(caught.value))


def test_path_goes_before_a_preset_only_if_it_is_a_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "llama-3.2-1b"
    folder.mkdir()
    assert find_llm("llama-3.2-1b").layers == 16
    config = {
        "model_type": "llama",
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "vocab_size": 100,
    }
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    for name in ("llama-3.2-1b", "./llama-3.2-1b", str(folder), str(folder / "config.json")):
        assert (find_llm(name).layers, find_llm(name).name) == (2, "llama-3.2-1b")
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(ModelError, match=r"holds no config\.json"):
        find_llm("other")
