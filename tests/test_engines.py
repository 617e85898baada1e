"""Flags of engines: they parse, survive a shell, and count K, trees and schedules as each engine does."""

import ast
import json
import shlex
import subprocess

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rooflinekit.engines import (
    FORCED_NOTES,
    SCHEDULE_NOTES,
    adaptive_config,
    dspark_step_table,
    flags,
    forced_acceptance,
    notes,
    schedule_flags,
)
from rooflinekit.errors import AcceptanceError, RooflineError

DRAFTERS = [
    "small-lm", "eagle", "eagle3", "peagle", "mtp", "dflash", "dspark", "domino", "medusa", "layer-skip",
    "ngram", "suffix",
]  # fmt: skip
SCHEDULE = [(1, 16, 5), (17, 32, 4), (33, 64, 3), (65, 128, 1), (129, 512, 0)]
survivals = st.lists(st.floats(0, 1), min_size=1, max_size=16).map(lambda v: sorted(v, reverse=True))


def vllm_json(text):
    """What vLLM reads, after the shell has taken the quotes away."""
    option, value = shlex.split(text)
    assert option == "--speculative-config"
    return json.loads(value)


def options(text):
    """Options with one value each, as a command line would be read."""
    words = shlex.split(text)
    assert all(word.startswith("--") or word == "-md" for word in words[::2])
    return dict(zip(words[::2], words[1::2], strict=True))


def variables(text):
    return dict(word.split("=", 1) for word in shlex.split(text))


# --- a fixed K


@pytest.mark.parametrize("drafter", DRAFTERS)
@given(k=st.integers(1, 64))
def test_flags_of_every_engine_parse(drafter, k):
    """JSON, YAML, Python or pairs of options, each with the engine's number."""
    found = flags(drafter, k, layers=8)
    for engine, text in found.items():
        if engine == "vllm":
            assert vllm_json(text)["num_speculative_tokens"] == k
        elif engine == "tensorrt-llm":
            fields = yaml.safe_load(text)["speculative_config"]
            assert fields.get("max_draft_len", fields.get("num_nextn_predict_layers")) == k
        elif engine == "transformers":
            (call,) = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
            given_ = {
                word.arg: word.value.value for word in call.keywords if isinstance(word.value, ast.Constant)
            }
            assert given_.get("num_assistant_tokens", given_.get("prompt_lookup_num_tokens")) == k
        else:
            assert str(k) in options(text).values() or str(k + 1) in options(text).values()


@pytest.mark.parametrize(
    ("drafter", "engines"),
    [
        ("small-lm", {"vllm", "sglang", "tensorrt-llm", "llama.cpp", "transformers"}),
        ("eagle", {"vllm", "sglang"}),
        ("ngram", {"vllm", "sglang", "tensorrt-llm", "llama.cpp", "transformers"}),
        ("suffix", {"vllm"}),
        ("layer-skip", {"transformers"}),
        ("medusa", set()),
        ("domino", set()),
    ],
)
def test_who_runs_what(drafter, engines):
    assert set(flags(drafter, 3)) == engines


def test_lookups_by_hand():
    """K copies; SGLang counts the root and branches nowhere; vLLM needs a longest n-gram."""
    found = flags("ngram", 5)
    assert vllm_json(found["vllm"]) == {
        "method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_min": 2, "prompt_lookup_max": 5,
    }  # fmt: skip
    assert options(found["sglang"]) == {
        "--speculative-algorithm": "NGRAM",
        "--speculative-num-draft-tokens": "6",
        "--speculative-ngram-max-bfs-breadth": "1",
    }
    assert options(found["llama.cpp"]) == {"--spec-type": "ngram-simple", "--spec-ngram-simple-size-m": "5"}
    assert yaml.safe_load(found["tensorrt-llm"])["speculative_config"]["decoding_type"] == "NGram"
    assert vllm_json(flags("suffix", 12)["vllm"]) == {"method": "suffix", "num_speculative_tokens": 12}
    assert "DRAFT_MODEL" not in "".join([*found.values(), *flags("suffix", 3).values()])


def test_self_speculation_exits_at_a_layer():
    assert (
        "assistant_early_exit=8, num_assistant_tokens=4" in flags("layer-skip", 4, layers=8)["transformers"]
    )
    assert "assistant_early_exit=LAYERS" in flags("layer-skip", 4)["transformers"]
    assert "exit early" in notes("layer-skip")["transformers"]


# --- trees


def test_a_tree_of_sglang_counts_its_root():
    """EAGLE-2 of SGLang's documentation: 5 steps, 8 candidates, 64 tokens verified."""
    found = flags("eagle", 5, topk=8, nodes=64)
    assert set(found) == {"sglang"}
    assert options(found["sglang"]) == {
        "--speculative-algorithm": "EAGLE",
        "--speculative-draft-model-path": "DRAFT_MODEL",
        "--speculative-num-steps": "5",
        "--speculative-eagle-topk": "8",
        "--speculative-num-draft-tokens": "64",
    }


def test_a_tree_of_tensorrt_llm_does_not():
    """Only Eagle3 takes one, of topk x depth drafts at most; chains elsewhere, and it is said."""
    fields = yaml.safe_load(flags("eagle3", 3, topk=10, nodes=16)["tensorrt-llm"])["speculative_config"]
    assert (fields["max_draft_len"], fields["dynamic_tree_max_topK"]) == (3, 10)
    assert fields["max_total_draft_tokens"] == 15
    assert fields["use_dynamic_tree"] is True
    assert "tensorrt-llm" not in flags("eagle3", 3, topk=4, nodes=64)  # 63 drafts above 12
    assert "tensorrt-llm" not in flags("mtp", 3, topk=4, nodes=8)
    said = notes("eagle3", topk=4)
    assert set(said) == {"vllm", "tensorrt-llm", "llama.cpp"}
    assert all("chains only" in said[engine] for engine in ("vllm", "llama.cpp"))
    assert "chain" in notes("dflash", topk=4)["sglang"]


@pytest.mark.parametrize("drafter", DRAFTERS)
@given(k=st.integers(1, 10), topk=st.integers(1, 8))
def test_one_candidate_is_a_chain(drafter, k, topk):
    """A tree of one branch has the flags of a chain; of more, an engine gives flags or says why not."""
    assert flags(drafter, k, topk=1, nodes=99) == flags(drafter, k)
    if topk > 1:
        silent = set(flags(drafter, k)) - set(flags(drafter, k, topk=topk)) - set(notes(drafter, topk=topk))
        assert silent <= ({"transformers"} if drafter not in ("small-lm", "ngram", "layer-skip") else set())


# --- K by batch


def test_the_schedule_of_vllms_documentation():
    """Ranges with both ends, K = 0 included, none above num_speculative_tokens."""
    fields = vllm_json(schedule_flags("eagle3", SCHEDULE)["vllm"])
    assert fields["num_speculative_tokens_per_batch_size"] == [list(one) for one in SCHEDULE]
    assert fields["num_speculative_tokens"] == 5


def test_sglang_reads_its_schedule_from_a_file():
    """Keys are the smallest batch of a range, one candidate each; EAGLE and EAGLE-3 only."""
    found = schedule_flags("eagle3", SCHEDULE)
    assert found["sglang"].endswith("--speculative-adaptive --speculative-adaptive-config adaptive.json")
    text = json.loads(found["sglang adaptive.json"])
    assert text == adaptive_config(SCHEDULE)
    assert {int(key): entry["candidate_steps"] for key, entry in text.items()} == {
        1: [5], 17: [4], 33: [3], 65: [1], 129: [0],
    }  # fmt: skip
    assert set(schedule_flags("mtp", SCHEDULE)) == {"vllm", "tensorrt-llm"}


def test_tensorrt_llm_keys_a_range_by_its_last_batch():
    """Pull request 10860: {4: 4, 8: 2, 32: 1} is 4 up to batch 4, 2 up to 8, 1 up to 32, then none."""
    text = schedule_flags("eagle3", [(1, 4, 4), (5, 8, 2), (9, 32, 1), (33, 256, 0)])["tensorrt-llm"]
    fields = yaml.safe_load(text)["speculative_config"]
    assert fields["draft_len_schedule"] == {4: 4, 8: 2, 32: 1}
    assert fields["max_draft_len"] == 4
    # The first K must be the largest there.
    assert "tensorrt-llm" not in schedule_flags("eagle3", [(1, 4, 2), (5, 8, 4)])


def test_equal_neighbours_are_one_range():
    fields = vllm_json(schedule_flags("mtp", [(1, 4, 3), (5, 8, 3), (9, 64, 1)])["vllm"])
    assert fields["num_speculative_tokens_per_batch_size"] == [[1, 8, 3], [9, 64, 1]]
    assert schedule_flags("mtp", [(1, 64, 0)]) == schedule_flags("medusa", SCHEDULE) == {}


@pytest.mark.parametrize(
    "schedule", [[], [(2, 8, 1)], [(1, 4, 3), (6, 8, 1)], [(1, 4, 3), (4, 8, 1)], [(1, 0, 3)], [(1, 4, -1)]]
)
def test_what_is_no_schedule(schedule):
    with pytest.raises(RooflineError, match="schedule"):
        schedule_flags("eagle3", schedule)


# --- forced acceptance


@given(survival=survivals)
def test_forced_acceptance_is_what_was_asked_for(survival):
    """As many rates as drafts, falling, and the same mean in every engine's own counting."""
    found = forced_acceptance(survival, "eagle3")
    length, close = 1 + sum(survival), len(survival) * 1e-6
    fields = vllm_json(found["vllm"])
    rates = fields["synthetic_acceptance_rates"]
    assert fields["rejection_sample_method"] == "synthetic"
    assert len(rates) == fields["num_speculative_tokens"] == len(survival)
    assert all(0 <= rate <= 1 for rate in rates)
    assert rates == sorted(rates, reverse=True)
    assert rates == pytest.approx(survival, rel=1e-5)
    assert [float(rate) for rate in options(found["llama.cpp"])["--spec-synth-rates"].split(",")] == rates
    simulated = variables(found["sglang"])
    assert float(simulated["SGLANG_SIMULATE_ACC_LEN"]) == pytest.approx(length, rel=1e-5, abs=close)
    drafts = variables(found["tensorrt-llm"])["TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS"]
    assert float(drafts) == pytest.approx(length - 1, rel=1e-5, abs=close)
    assert set(found) == set(FORCED_NOTES)


def test_a_constant_rate_is_forced_by_hand():
    """alpha 0.8, K 4: 0.8, 0.64, 0.512, 0.4096; A = 3.3616, of which 2.3616 are drafts."""
    found = forced_acceptance([0.8**i for i in range(1, 5)])
    assert vllm_json(found["vllm"])["synthetic_acceptance_rates"] == [0.8, 0.64, 0.512, 0.4096]
    assert found["llama.cpp"] == "--spec-synth-rates 0.8,0.64,0.512,0.4096"
    assert "SGLANG_SIMULATE_ACC_LEN=3.3616 " in found["sglang"]
    assert found["tensorrt-llm"].endswith("=2.3616")


def test_forced_acceptance_of_trees_and_lookups():
    """SGLang cannot take real drafts along a tree; engines that cannot force it are left out."""
    tree = forced_acceptance([0.9, 0.5], "eagle3", topk=4, nodes=9)
    assert set(tree) == {"sglang"}
    assert variables(tree["sglang"])["SGLANG_SIMULATE_ACC_TOKEN_MODE"] == "fixed"  # noqa: S105
    assert set(forced_acceptance([0.5], "ngram")) == {"vllm", "llama.cpp"}
    assert forced_acceptance([0.5], "medusa") == {}
    assert vllm_json(forced_acceptance([0.5], "mtp")["vllm"])["method"] == "mtp"


@pytest.mark.parametrize("survival", [[], [0.5, 0.6], [1.2], [-0.1], [float("nan")], [0.5, float("nan")]])
def test_what_is_no_survival(survival):
    with pytest.raises(AcceptanceError, match="cannot be forced"):
        forced_acceptance(survival)


def test_every_distribution_is_named():
    """An engine that forces a length makes a distribution of it: which one is said."""
    assert set(forced_acceptance([0.5])) == set(FORCED_NOTES)
    assert all("distribution that was assumed" in note for note in FORCED_NOTES.values())
    assert set(SCHEDULE_NOTES) == {"vllm", "sglang", "tensorrt-llm"}
    for text in (*FORCED_NOTES.values(), *SCHEDULE_NOTES.values(), *notes("ngram").values()):
        assert "\n" not in text


# --- the shell


@pytest.mark.parametrize(
    "text",
    [
        *(flags(drafter, 3).get("vllm", "") for drafter in DRAFTERS),
        schedule_flags("eagle3", SCHEDULE)["vllm"],
        forced_acceptance([0.9, 0.5, 0.25], "eagle3")["vllm"],
    ],
)
def test_a_shell_hands_the_json_over_as_it_is(text):
    """printf prints its arguments one a line: the option, then JSON."""
    if not text:
        return
    printed = subprocess.run(
        ["sh", "-c", f"printf '%s\\n' {text}"], capture_output=True, text=True, check=True
    )
    option, value = printed.stdout.splitlines()
    assert option == "--speculative-config"
    assert json.loads(value) == vllm_json(text)


# --- DSpark's table of step costs


@given(
    rows=st.lists(st.integers(1, 4096), min_size=1, max_size=20, unique=True).map(sorted),
    seconds=st.floats(1e-5, 10),
)
def test_a_step_table_is_what_sglang_loads(rows, seconds):
    """Strictly rising rows, one rate each, at most the largest number of tokens: SpsCostTable's conditions."""
    table = json.loads(json.dumps(dspark_step_table(rows, [seconds] * len(rows), 4096)))
    assert set(table) == {"sample_batch_tokens", "sample_steps_per_sec", "max_batch_tokens"}
    assert table["sample_batch_tokens"] == sorted(set(table["sample_batch_tokens"])) == rows
    assert table["sample_steps_per_sec"] == [1 / seconds] * len(rows)
    assert table["max_batch_tokens"] >= rows[-1]


@pytest.mark.parametrize(
    ("rows", "seconds", "most"),
    [([], [], 8), ([8, 8], [1, 1], 8), ([16, 8], [1, 1], 16), ([8], [1, 2], 8), ([8], [1], 4), ([0], [1], 8),
     ([8], [0.0], 8), ([8], [float("inf")], 8)],
)  # fmt: skip
def test_what_is_no_step_table(rows, seconds, most):
    with pytest.raises(RooflineError, match="step table"):
        dspark_step_table(rows, seconds, most)
