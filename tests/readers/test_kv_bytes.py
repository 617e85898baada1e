"""Cache, streamed weights and active parameters against sums written by hand and published numbers."""

import ast
import csv
import operator
from pathlib import Path

import pytest

from rooflinekit.memory import resident_weight_bytes
from rooflinekit.precision import precision
from rooflinekit.readers.models import find_llm, model_names
from rooflinekit.report.models import model_facts

TABLE = Path(__file__).parents[1] / "reference" / "kv_bytes.csv"
with TABLE.open(encoding="utf-8", newline="") as _file:
    ROWS = list(csv.DictReader(line for line in _file if not line.startswith("#")))

OPERATORS = {ast.Add: operator.add, ast.Mult: operator.mul, ast.Div: operator.truediv}


def worked_out(text):
    """Value of a sum of products."""

    def value(node):
        if isinstance(node, ast.Constant):
            return node.value
        return OPERATORS[type(node.op)](value(node.left), value(node.right))

    return value(ast.parse(text, mode="eval").body)


def facts(name, context=4096.0):
    llm = find_llm(name)
    return model_facts(llm, precision(llm.dtype, "auto", llm.formats), context)


@pytest.mark.parametrize("row", ROWS, ids=[row["model"] for row in ROWS])
def test_bytes_by_hand(row):
    # The step's own token is in the cache that it reads.
    found = facts(row["model"], float(row["positions"]) - 1)
    assert found["kv_bytes_per_token"] == worked_out(row["kv_bytes_per_token"])
    assert found["kv_read_bytes_per_step"] == worked_out(row["kv_read_bytes"])
    assert found["streamed_bytes_per_step"] == pytest.approx(worked_out(row["streamed_bytes"]), rel=1e-12)
    assert row["source"]


@pytest.mark.parametrize(
    ("name", "published", "tolerance", "embedding"),
    [
        # arXiv:2508.10925, table 1: active parameters without the input embedding.
        ("gpt-oss-120b", 5.13e9, 0.001, False),
        ("gpt-oss-20b", 3.61e9, 0.001, False),
        # arXiv:2412.19437, abstract; the input embedding (0.93 B) is left out of 37 B.
        ("deepseek-v3", 37e9, 0.012, False),
        # Kimi-K2 README: 32 B; Llama-4 model cards: 17 B; GLM-4.5 report (arXiv:2508.06471): 32 B.
        ("kimi-k2", 32e9, 0.03, False),
        ("llama-4-scout", 17e9, 0.02, True),
        ("llama-4-maverick", 17e9, 0.02, True),
        ("glm-4.5", 32e9, 0.03, False),
        # arXiv:2401.04088, section 2: 13 B of 47 B. Qwen3 model cards: 3.3 B and 22 B.
        ("mixtral-8x7b", 13e9, 0.01, True),
        ("qwen3-30b-a3b", 3.3e9, 0.02, True),
        ("qwen3-235b-a22b", 22e9, 0.01, True),
    ],
)
def test_active_parameters_as_published(name, published, tolerance, embedding):
    llm = find_llm(name)
    active = llm.active_params - (0 if embedding else llm.embedding_params)
    assert active == pytest.approx(published, rel=tolerance)


@pytest.mark.parametrize(
    ("name", "published", "tolerance"),
    [
        ("gpt-oss-120b", 116.83e9, 0.0001),  # arXiv:2508.10925, table 1
        ("gpt-oss-20b", 20.91e9, 0.0005),
        ("deepseek-v3", 671e9, 0.0001),
        ("kimi-k2", 1.04e12, 0.015),  # arXiv:2507.20534, table 2
        ("gemma-3-27b", 25_600e6 + 1_416e6, 0.0005),  # arXiv:2503.19786, table 1
        ("mixtral-8x22b", 141e9, 0.003),  # announcement of the model
        ("gpt2-large", 774e6, 0.0001),
    ],
)
def test_total_parameters_as_published(name, published, tolerance):
    assert find_llm(name).total_params == pytest.approx(published, rel=tolerance)


def test_gemma_2_without_its_table_as_published():
    # arXiv:2408.00118, table 2: 8,324,201,984 parameters besides the embedding.
    llm = find_llm("gemma-2-9b")
    assert llm.total_params - llm.embedding_params == 8_324_201_984


def test_mtp_of_deepseek_v3_as_published():
    # README of DeepSeek-V3: 11.5 B parameters of the module's own, tables shared with the model.
    llm = find_llm("deepseek-v3")
    assert llm.mtp_params == pytest.approx(11.5e9, rel=0.01)
    assert llm.mtp.modules == 1


def test_windows_of_the_alternating_families():
    def pattern(name):
        return [(block.count, block.window) for block in find_llm(name).blocks]

    assert pattern("gpt-oss-20b") == [(1, 128), (1, None)] * 12
    assert pattern("gemma-2-9b") == [(1, 4096), (1, None)] * 21
    assert pattern("gemma-3-27b") == [(5, 1024), (1, None)] * 10 + [(2, 1024)]
    assert pattern("llama-4-scout") == [(3, 8192), (1, None)] * 12
    assert [count for count, _ in pattern("llama-4-maverick")] == [1] * 48


@pytest.mark.parametrize("name", model_names())
def test_the_breakdown_sums_to_the_totals(name):
    llm = find_llm(name)
    numbers = precision(llm.dtype, llm.kv_dtype, llm.formats)
    found = model_facts(llm, numbers, 10_000.0)
    rows, mixers = found["breakdown"], found["mixers"]

    def total(key, of=rows):
        return sum(row[key] for row in of)

    assert total("parameters") == pytest.approx(llm.total_params, rel=1e-12)
    assert total("bytes") == pytest.approx(resident_weight_bytes(llm, numbers), rel=1e-12)
    assert total("streamed_bytes") == pytest.approx(found["streamed_bytes_per_step"], rel=1e-12)
    assert total("flops_per_token") < found["flops_per_token"]
    assert total("layers", mixers) == llm.layers
    assert total("kv_bytes_per_token", mixers) == pytest.approx(found["kv_bytes_per_token"])
    assert all(row["kv_read_bytes"] <= row["kv_reserved_bytes"] * (1 + 1e-9) for row in mixers)
