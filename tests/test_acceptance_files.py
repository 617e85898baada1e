"""Acceptance from files, options and shipped profiles: what is read is what was written, contradictions are said."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import yaml

from rooflinekit.acceptance import Constant, Decaying, Mixture, Survival, expected_tokens
from rooflinekit.acceptance.profiles import acceptance_profiles, find_profile
from rooflinekit.acceptance_options import find_acceptance, make_acceptance
from rooflinekit.cli import run
from rooflinekit.errors import AcceptanceError

REFERENCE = Path(__file__).parent / "reference"


@pytest.fixture
def read(tmp_path):
    """Write fields as JSON, and as YAML, read both, and give back what both said."""

    def reading(fields):
        (tmp_path / "a.json").write_text(json.dumps(fields), encoding="utf-8")
        (tmp_path / "a.yaml").write_text(yaml.safe_dump(fields), encoding="utf-8")
        found = find_acceptance(str(tmp_path / "a.json"))
        again = find_acceptance(str(tmp_path / "a.yaml"))
        assert found == again
        return found

    return reading


def length(found, k):
    return float(found.expected(k))


# --- one file for each form


def test_a_histogram(read):
    """100 rounds: 20 accepted nothing, 30 one draft, 50 two."""
    found = read({"histogram": [20, 30, 50], "source": "own log", "dataset": "chat"})
    assert found.values == (0.8, 0.5)
    assert found.rounds == 100
    assert found.label == "survival 0.8, 0.5 (chat, own log)"


def test_a_survival_and_conditional_rates(read):
    """The same chain both ways; rounds make it counted."""
    found = read({"survival": [0.8, 0.4], "rounds": 50})
    same = read({"conditional": [0.8, 0.5], "rounds": 50})
    assert found.values == pytest.approx(same.values)
    assert (found.rounds, same.rounds) == (50, 50)


def test_lengths_by_k(read):
    """Keys are text in JSON and may be numbers in YAML."""
    assert read({"lengths": {"1": 1.79, "2": 2.27}}).values == pytest.approx((0.79, 0.48))


def test_lengths_with_whole_keys(tmp_path):
    """YAML as people write it."""
    path = tmp_path / "a.yml"
    path.write_text("lengths:\n  1: 1.79\n  2: 2.27\n", encoding="utf-8")
    assert find_acceptance(str(path)).values == pytest.approx((0.79, 0.48))


def test_a_decay_and_a_constant(read):
    """Two rates, or one."""
    assert read({"decay": [0.8, 0.6]}) == Decaying(0.8, 0.6)
    assert read({"alpha": 0.8}) == Constant(0.8)


def test_a_length_with_its_k(read):
    """A constant rate that gives it back; the rate beside it agrees: (3.3616 - 1) / 4 = 0.59."""
    found = read({"acceptance_length": 3.3616, "measured_k": 4, "rate": 0.59})
    assert found.alpha == pytest.approx(0.8)
    assert found.warnings == ()


def test_totals(read):
    """313 of 912 drafts at K = 16 carry an interval; the rate alone does not."""
    counted = read({"accepted": 313, "proposed": 912, "measured_k": 16})
    shares = read({"rate": 313 / 912, "measured_k": 16})
    assert counted.alpha == pytest.approx(shares.alpha)
    assert counted.expected_draws(4.0, 3) is not None
    assert shares.expected_draws(4.0, 3) is None
    assert "bonus" in shares.warnings[0]


def test_a_mixture(read):
    """Three quarters of the rounds at 0.9, one at the rates of a shipped profile."""
    found = read(
        {"mixture": [{"weight": 3, "alpha": 0.9}, {"weight": 1, "profile": "eagle3-qwen3-8b-mt-bench"}]}
    )
    assert isinstance(found, Mixture)
    assert length(found, 2) == pytest.approx(0.75 * expected_tokens(0.9, 2) + 0.25 * (1 + 0.6541 + 0.3993))
    assert found.max_k == 3


# --- numbers held against each other


def test_the_old_rate_of_sglang_is_recognised(read):
    """2.17 / 4 = 0.54 counts the bonus token; (2.17 - 1) / 3 = 0.39 is the drafts' rate (a server log of old)."""
    found = read({"acceptance_length": 2.17, "measured_k": 3, "rate": 0.54})
    assert length(found, 3) == pytest.approx(2.17)
    assert found.warnings[0].startswith("rate 0.54 is A / (K + 1)")
    assert "0.39" in found.warnings[0]


def test_a_length_without_the_bonus_is_recognised(read):
    """Beside its survival, 1.3 is the sum, not one and the sum."""
    found = read({"survival": [0.8, 0.5], "acceptance_length": 1.3})
    assert length(found, 2) == pytest.approx(2.3)
    assert "leaves the bonus token out" in found.warnings[0]
    assert read({"survival": [0.8, 0.5], "acceptance_length": 2.3, "rate": 0.65}).warnings == ()


def test_k_past_the_trained_block_is_said(read):
    """Measured with 8 drafts, trained with 7."""
    found = read({"survival": [0.8**i for i in range(1, 9)], "trained_k": 7})
    assert "K = 8 is past the trained block of 7" in found.warnings[0]
    assert read({"acceptance_length": 3.0, "measured_k": 5, "trained_k": 7}).warnings == ()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"survival": [0.8, 0.5], "acceptance_length": 3.0}, "1 + their sum is 2.3"),
        ({"survival": [0.8, 0.5], "rate": 0.2}, "contradict"),
        ({"acceptance_length": 2.17, "measured_k": 3, "rate": 0.2}, "(A - 1) / K is 0.39"),
        ({"acceptance_length": 2.17, "measured_k": 3, "rate": 39}, "divide percent by 100"),
        ({"rate": 39, "measured_k": 3}, "divide percent by 100"),
        ({"acceptance_length": 2.17}, "measured_k is missing"),
        ({"acceptance_length": 9, "measured_k": 3}, "between 1 and 4"),
        ({"acceptance_length": 2, "measured_k": 2.5}, "whole number"),
        ({"accepted": 3, "measured_k": 3}, "'proposed'"),
        ({"accepted": 9, "proposed": 6, "measured_k": 3}, "impossible"),
        ({"survival": [0.5, 0.6]}, "multiply them up"),
        ({"survival": [0.5], "conditional": [0.5]}, "'survival' and 'conditional'"),
        ({"survivals": [0.5]}, "did you mean survival"),
        ({"source": "x"}, "none was given"),
        ({"survival": [0.5], "source": 3}, "not text"),
        ({"decay": [0.5]}, "two rates"),
        ({"decay": [0.5, 1.5]}, "0..1"),
        ({"lengths": [1.8]}, "lengths need"),
        ({"lengths": {"x": 1.8}}, "not 'x'"),
        ({"lengths": {"1": 2.8}}, "between 1 and 2"),
        ({"alpha": "0.8"}, "alpha '0.8'"),
        ({"mixture": []}, "at least one"),
        ({"mixture": {"alpha": 1}}, "list of members"),
        ({"mixture": [{"alpha": 0.5, "weight": -1}]}, "weight -1"),
        ({"mixture": [{"alpha": 2}]}, "member 1"),
        ({"mixture": [{"mixture": []}]}, "mixture itself"),
        ({"profile": "nothing-like-it"}, "nothing-like-it"),
        ({"survival": [0.9], "trained_k": 0}, "trained_k"),
    ],
)
def test_faults_are_one_sentence_that_names_the_file(read, fields, words):
    """The thing, the value, the reason, the next step."""
    with pytest.raises(AcceptanceError) as caught:
        read(fields)
    assert words in str(caught.value)
    assert str(caught.value).count("a.json") == 1
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", ["a: [", "- 1", "", "!!python/object:os.system x", "a: b: c"])
def test_broken_yaml_is_refused(tmp_path, content):
    """Unclosed, a list, empty, with a tag."""
    path = tmp_path / "a.yaml"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(AcceptanceError, match=r"a\.yaml"):
        find_acceptance(str(path))


# --- options


def test_the_decay_option():
    """As text and as numbers."""
    assert make_acceptance(decay="0.8,0.6") == make_acceptance(decay=(0.8, 0.6)) == Decaying(0.8, 0.6)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"decay": "0.8"}, "give two"),
        ({"decay": "0.8,x"}, "--decay 0.8,0.65"),
        ({"decay": "0.8,0.6", "alpha": 0.5}, "--alpha and --decay"),
        ({"acceptance": "eagle3-qwen3-8b-mtbench"}, "did you mean eagle3-qwen3-8b-mt-bench"),
        ({"acceptance": "missing.yaml"}, "missing.yaml cannot be read"),
    ],
)
def test_options_that_cannot_be_used(options, words):
    """Exactly one, complete; unknown profiles name the nearest."""
    with pytest.raises(AcceptanceError, match=words):
        make_acceptance(**options)


def test_commands_take_a_decay_and_a_profile(capsys):
    """Both reach the answer."""
    words = [
        "recommend",
        "--model",
        "llama-3.1-8b",
        "--hardware",
        "h100-sxm",
        "--drafter",
        "eagle3",
        "--json",
    ]
    assert run([*words, "--acceptance", "eagle3-llama-3.1-8b-mt-bench"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [point["acceptance_length"] for point in found["curve"]] == pytest.approx([1.7296, 2.2504, 2.6049])
    assert run([*words, "--decay", "0.8,0.6", "--max-k", "2"]) == 0
    curve = json.loads(capsys.readouterr().out)["curve"]
    assert curve[1]["acceptance_length"] == pytest.approx(1 + 0.8 + 0.8 * 0.7)


# --- shipped profiles

PROFILES = acceptance_profiles()


@pytest.mark.parametrize("name", PROFILES)
def test_every_profile_is_whole(name):
    """A kebab-case name, provenance in every column, a length at its largest K, and one label."""
    one = PROFILES[name]
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789.-")
    for field in ("target", "drafter", "dataset", "temperature", "verification", "source"):
        assert getattr(one, field).strip()
    found = one.acceptance
    assert found.label.startswith(name)
    assert 1.0 < float(found.expected(one.largest_k)) <= one.largest_k + 1.0
    if one.form == "acceptance_length":
        assert float(found.expected(one.largest_k)) == pytest.approx(float(one.values))


def test_names_of_profiles_are_unique():
    """No row hides another."""
    rows = 0
    for path in sorted((REFERENCE.parents[1] / "rooflinekit" / "data" / "acceptance").glob("*.csv")):
        with path.open(encoding="utf-8") as file:
            rows += len(list(csv.DictReader(line for line in file if not line.startswith("#"))))
    assert rows == len(PROFILES)


def test_dspark_profiles_give_the_lengths_of_its_table():
    """Figure 2's rates against the means of Table 1, within 1 %."""
    with (REFERENCE / "acceptance_by_position.csv").open(encoding="utf-8") as file:
        rows = [
            row
            for row in csv.DictReader(line for line in file if not line.startswith("#"))
            if row["source"] == "dspark"
        ]
    assert len(rows) == 9
    for row in rows:
        domain, drafter = row["case"].split("-")
        name = f"{drafter}-qwen3-4b-{domain}" + ("-block-7" if drafter == "dflash" else "")
        assert length(find_profile(name), 7) == pytest.approx(float(row["length"]), rel=0.01)


def test_profiles_of_a_golden_curve_keep_its_lengths():
    """Qwen3.5 MTP with thinking rises smoothly: every length is the published one."""
    found = find_profile("mtp-qwen3.5-397b-a17b-coding-thinking")
    assert found.expected(np.arange(1, 9)) == pytest.approx(
        [1.93, 2.73, 3.39, 3.97, 4.41, 4.80, 5.04, 5.21], abs=1e-9
    )
    assert found.warnings == ()


def test_a_block_drafter_past_its_block_is_flagged():
    """DSpark of DeepSeek-V4-Pro falls from K = 6 on."""
    found = find_profile("dspark-deepseek-v4-pro-0813-coding-thinking")
    assert any("falls from 3.77 at K = 6" in one for one in found.warnings)


# --- command line


def test_the_list_names_every_profile(capsys):
    """As a table without cut names, and as JSON with provenance."""
    assert run(["acceptance", "list"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in PROFILES)
    assert run(["acceptance", "list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == list(PROFILES)
    assert all(row["source"] and row["acceptance_length"] > 1 for row in rows)


def test_show_prints_positions_source_and_warnings(capsys, tmp_path):
    """A profile with its provenance; a file with its intervals."""
    assert run(["acceptance", "show", "eagle3-llama-3.1-8b-mt-bench"]) == 0
    shown = capsys.readouterr().out
    assert "0.730" in shown
    assert "source: vLLM" in shown
    path = tmp_path / "a.json"
    path.write_text('{"survival": [0.8, 0.6, 0.01], "rounds": 105}', encoding="utf-8")
    assert run(["acceptance", "show", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "90 % intervals from 105 rounds" in shown
    assert "warning: survival breaks off after position 2" in shown
    assert run(["acceptance", "show", str(path), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["positions"]
    assert [row["survival"] for row in rows] == [0.8, 0.6, 0.01]
    assert rows[0]["survival_low"] < 0.8 < rows[0]["survival_high"]


def test_fit_says_which_model_is_good_enough(capsys, tmp_path):
    """A constant one here, by hand: 800 of 1000, 640 of 800."""
    path = tmp_path / "a.json"
    path.write_text('{"histogram": [200, 160, 640]}', encoding="utf-8")
    assert run(["acceptance", "fit", str(path)]) == 0
    assert "constant is good enough" in capsys.readouterr().out
    assert run(["acceptance", "fit", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["good_enough"] == "constant"
    assert found["constant"]["alpha"]["estimate"] == pytest.approx(0.8)
    assert found["constant"]["alpha"]["low"] < 0.8 < found["constant"]["alpha"]["high"]


def test_fit_keeps_what_neither_model_describes(capsys):
    """The golden curve that ends at a block."""
    assert run(["acceptance", "fit", "dspark-deepseek-v4-pro-0813-coding-thinking"]) == 0
    assert "neither is good enough" in capsys.readouterr().out


def test_nothing_to_fit_is_said(capsys):
    """One length is one number."""
    assert run(["acceptance", "fit", "dflash-qwen3-8b-gsm8k-t0"]) == 2
    assert "nothing to fit" in capsys.readouterr().err


def test_one_position_is_fitted_by_a_constant_alone(capsys, tmp_path):
    """An MTP of depth one."""
    path = tmp_path / "a.json"
    path.write_text('{"histogram": [15, 85]}', encoding="utf-8")
    assert run(["acceptance", "fit", str(path), "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)) == {"constant", "good_enough"}


def test_survival_is_what_the_profile_returns():
    """Objects, not tables."""
    assert isinstance(find_profile("eagle3-qwen3-8b-mt-bench"), Survival)


def test_a_list_longer_than_any_draft_is_refused(read):
    with pytest.raises(AcceptanceError, match="5000 numbers; give at most 1001"):
        read({"histogram": [1] * 5000})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", '{"alpha": 0.5, "alpha": 0.9}'),
        ("a.json", '{"mixture": [{"alpha": 0.5, "alpha": 0.9}]}'),
        ("a.yaml", "alpha: 0.5\nalpha: 0.9\n"),
        ("a.yaml", "mixture:\n- {weight: 1, alpha: 0.5, alpha: 0.9}\n"),
    ],
)
def test_a_field_written_twice_is_refused(tmp_path, name, text):
    """Parsers keep the last one."""
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(AcceptanceError, match="'alpha' is written twice"):
        find_acceptance(str(tmp_path / name))
