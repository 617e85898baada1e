"""The command line as a contract: keys of the JSON, sums, exit codes, and what is not imported."""

import json
import subprocess
import sys

import pytest

from rooflinekit.cli import COMMANDS, run

PREDICT = ("predict", "--model", "llama-3.1-8b", "--hardware", "h100-sxm")
RECOMMEND = (
    "recommend",
    "--model",
    "llama-3.1-8b",
    "--hardware",
    "h100-sxm",
    "--drafter",
    "eagle3",
    "--alpha",
    "0.8",
)
COMPARE = (
    "compare",
    "--model",
    "llama-3.1-8b",
    "--hardware",
    "h100-sxm",
    "--drafters",
    "eagle3,dflash,dspark,small-lm:llama-3.2-1b",
)

# The contract of the command line: scripts read these keys.
PREDICT_KEYS = {
    "step_s",
    "decode_s",
    "verify_ratio",
    "weight_bytes",
    "resident_bytes",
    "kv_bytes",
    "flops",
    "arithmetic_intensity",
    "fits",
    "memory_bytes",
    "memory_capacity_bytes",
    "breakdown",
    "calibration",
    "expected_error",
    "evidence",
}
RECOMMEND_KEYS = {
    "k",
    "speedup",
    "low",
    "high",
    "near_best",
    "break_even_acceptance_length",
    "pays",
    "fits",
    "curve",
    "loss",
    "flags",
    "calibration",
    "expected_error",
    "evidence",
}
# What is printed besides: the question repeated, the remedy, notes.
PREDICT_MORE = {
    "low_s",
    "high_s",
    "model",
    "hardware",
    "dtype",
    "kv_dtype",
    "batch",
    "context",
    "width",
    "prefill",
    "tp",
    "remedy",
    "notes",
}
RECOMMEND_MORE = {
    "model",
    "hardware",
    "drafter",
    "drafter_title",
    "acceptance",
    "dtype",
    "tp",
    "batch",
    "context",
    "remedy",
    "memory_bytes",
    "memory_capacity_bytes",
    "notes",
    "tokens_per_s",
    "plain_tokens_per_s",
    "limits",
    "changes",
    "schedule",
    "idle_drafter",
    "schedule_flags",
    "forced_acceptance",
    "by_confidence",
}


def ask(capsys, *arguments):
    code = run([*arguments, "--json"])
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    return json.loads(out, parse_constant=pytest.fail)


def test_predict_has_the_keys_of_the_contract(capsys):
    """Exactly these, so that a script that worked keeps working."""
    found = ask(capsys, *PREDICT)
    assert set(found) == PREDICT_KEYS | PREDICT_MORE
    assert {frozenset(line) for line in found["breakdown"]} == {
        frozenset(("label", "kind", "bytes", "flops", "time_s", "bound"))
    }
    assert {"weakest", "by_term"} <= set(found["evidence"])
    assert {line["bound"] for line in found["breakdown"]} <= {"memory", "compute", "overhead", "link", "host"}


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--width", "8", "--batch", "64"),
        ("--prefill", "--width", "2000", "--context", "0"),
        ("--tp", "2", "--dtype", "fp8", "--kv-dtype", "fp8"),
        ("--dtype", "w4a16", "--batch", "512"),
    ],
)
def test_the_breakdown_sums_to_the_step(capsys, options):
    """Every second is in some row; bytes and FLOPs too."""
    found = ask(capsys, *PREDICT, *options)
    assert sum(line["time_s"] for line in found["breakdown"]) == pytest.approx(found["step_s"], rel=1e-12)
    assert sum(line["flops"] for line in found["breakdown"]) == pytest.approx(found["flops"])
    # Intensity is against device memory: a link is another roof.
    moved = sum(line["bytes"] for line in found["breakdown"] if line["kind"] != "collective")
    assert found["arithmetic_intensity"] == pytest.approx(found["flops"] / moved)
    assert len({line["label"] for line in found["breakdown"]}) == len(found["breakdown"])


def test_recommend_has_the_keys_of_the_contract(capsys):
    """Exactly these; nothing of the interval without counts or a calibration."""
    found = ask(capsys, *RECOMMEND, "--calibration", "datasheet")
    assert set(found) == RECOMMEND_KEYS | RECOMMEND_MORE
    point = ["k", "acceptance_length", "draft_s", "verify_s", "host_s", "decode_s", "round_cost", "speedup"]
    more = ["draft_host_s", "hidden_s", "decode_host_s"]
    assert {frozenset(one) for one in found["curve"]} == {frozenset(point + more)}
    assert {frozenset(one) for one in found["loss"]} == {frozenset(("term", "speedup_lost"))}
    assert set(found["flags"]) <= {"vllm", "sglang", "tensorrt-llm", "llama.cpp"}
    assert (found["low"], found["high"]) == (None, None)
    assert isinstance(found["k"], int)
    assert found["k"] in found["near_best"]


@pytest.mark.parametrize(
    "options",
    [
        ("--acceptance-length", "3.3616", "--measured-k", "4"),
        ("--survival", ",".join(f"{0.8**i:.10f}" for i in range(1, 17))),
        ("--alpha", "0.8"),
    ],
)
def test_three_ways_to_say_the_same_acceptance_agree(capsys, options):
    """alpha 0.8, the length it gives at K = 4, or its survival vector: one answer."""
    found = ask(capsys, *RECOMMEND[:-2], *options)
    assert found["speedup"] == pytest.approx(ask(capsys, *RECOMMEND)["speedup"], rel=1e-6)


def test_a_histogram_file_gives_an_interval(capsys, tmp_path):
    """Counted rounds are the one input that makes the answer doubtful by a known amount."""
    path = tmp_path / "h.json"
    path.write_text(json.dumps({"histogram": [200, 160, 128, 102, 410]}))
    found = ask(capsys, *RECOMMEND[:-2], "--acceptance", str(path))
    assert found["low"] < found["speedup"] < found["high"]


def test_compare_has_one_row_per_drafter(capsys):
    """Serial passes, bytes, draft time over K, slope, bound, length, speedup."""
    rows = ask(capsys, *COMPARE, "--alpha", "0.8")
    assert [row["drafter"] for row in rows] == ["eagle3", "dflash", "dspark", "small-lm"]
    keys = [
        "serial_passes",
        "bytes_per_round",
        "draft_s",
        "slope_s",
        "bound",
        "acceptance_length",
        "speedup",
        "break_even_acceptance_length",
        "k",
    ]
    assert all(set(keys) <= set(row) for row in rows)
    assert [len(row["draft_s"]) for row in rows] == [16, 15, 7, 16]
    by_name = {row["drafter"]: row for row in rows}
    assert by_name["dflash"]["slope_s"] < 0.05 * by_name["eagle3"]["slope_s"]


@pytest.mark.parametrize("what", ["hardware", "models"])
def test_lists_are_lists(capsys, what):
    """Every name of the list can be shown, under the same name."""
    rows = ask(capsys, what, "list")
    assert isinstance(rows, list)
    assert ask(capsys, what, "show", rows[0]["name"])["name"] == rows[0]["name"]


def test_a_model_shows_its_key_numbers(capsys):
    """As named in the contract."""
    found = ask(capsys, "models", "show", "llama-3.1-8b")
    assert found["total_params"] == 8_030_261_248
    assert found["kv_bytes_per_token"] == 131_072
    assert found["streamed_bytes_per_step"] == pytest.approx(15.01e9, rel=0.002)


@pytest.mark.parametrize(
    "arguments", [PREDICT, RECOMMEND, (*COMPARE, "--alpha", "0.8"), ("models", "list"), ("hardware", "list")]
)
def test_text_and_json_are_of_one_run(capsys, arguments):
    """Without --json the same command prints text, and nothing on the error stream."""
    assert run(list(arguments)) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert len(out.splitlines()) > 3
    assert not out.lstrip().startswith(("{", "["))


def test_validation_of_the_shipped_suite_passes(capsys):
    """Exit code 0, one row per hand value."""
    found = ask(capsys, "validate", "--suite", "hand-values")
    assert found["pass"] is True
    assert len(found["suites"]) >= 8
    assert all(
        {"n", "median_abs_error", "p90_abs_error", "bias", "tolerance", "pass"} <= set(row)
        for row in found["suites"]
    )


def test_a_failed_check_is_exit_code_one(capsys, tmp_path):
    """A profile with a rate that looks sparse is well formed and doubtful."""
    path = tmp_path / "sparse.yaml"
    path.write_text(
        "schema: 1\nname: sparse\ntitle: NVIDIA H100 with sparse rates\nvendor: NVIDIA\narchitecture: Hopper\n"
        "capacity: {value: 85520809984 B, kind: assumed, ref: test}\nbandwidth: {value: 3.35 TB/s, kind: assumed, ref: test}\n"
        "peak:\n  bf16: {value: 989.4 TFLOP/s, kind: assumed, ref: test}\n  fp8: {value: 3958 TFLOP/s, kind: assumed, ref: test}\n"
    )
    assert run(["hardware", "check", str(path)]) == 1
    out, err = capsys.readouterr()
    assert "sparsity" in out
    assert err.startswith("failed: ")


@pytest.mark.parametrize("option", ["--help", "-h", "--version"])
def test_help_and_version_are_exit_code_zero(capsys, option):
    """They print and stop."""
    assert run([option]) == 0
    assert "rooflinekit" in capsys.readouterr().out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(capsys, name):
    """Every command of the table can be loaded and explains itself."""
    assert run([name, "--help"]) == 0
    assert "Usage: rooflinekit" in capsys.readouterr().out


def test_predicting_imports_nothing_heavy():
    """A prediction starts fast: no torch, matplotlib, pandas, xarray or scipy."""
    code = (
        "import sys, rooflinekit as rk; rk.predict('llama-3.1-8b', 'h100-sxm');"
        "print([name for name in ('torch', 'matplotlib', 'pandas', 'xarray', 'scipy') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_importing_the_package_imports_nothing():
    """Names are loaded on first use; not even numpy comes with the import."""
    code = "import sys, rooflinekit; print([name for name in ('numpy', 'yaml', 'click', 'rich') if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_the_package_runs_as_a_module():
    """``python -m rooflinekit`` is the same program, with its exit codes."""
    bad = subprocess.run(
        [sys.executable, "-m", "rooflinekit", *PREDICT, "--batch", "0"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr.startswith("error: --batch 0")
