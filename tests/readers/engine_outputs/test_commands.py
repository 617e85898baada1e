"""Engine outputs on the command line: shown, recommended with, diagnosed."""

import json

import pytest

from rooflinekit.cli import run

TARGET = ["--model", "qwen3-8b", "--hardware", "h100-sxm"]


def asked(capsys, *words, code=0):
    """Run a command; its JSON, or its error."""
    assert run([str(word) for word in words]) == code
    out = capsys.readouterr()
    return json.loads(out.out) if code == 0 and "--json" in words else (out.err if code else out.out)


# --- acceptance


def test_show_prints_source_and_definition(capsys, files):
    shown = asked(capsys, "acceptance", "show", files / "vllm.prom")
    assert "read: vLLM, Prometheus counters" in shown
    assert "K 6, A 2.42, 105 rounds" in shown
    assert "definition: a draft is a round of one request" in shown
    assert "warning: survival breaks off after position 2" in shown
    found = asked(capsys, "acceptance", "show", files / "llama_eagle3.log", "--json")
    assert (found["engine"], found["k"], found["rounds"]) == ("llama.cpp", 3, 87)
    assert found["draft_s"] == pytest.approx(3.742e-3, abs=1e-6)
    assert [row["survival"] for row in found["positions"]] == pytest.approx([70 / 87, 55 / 87, 42 / 87])


def test_show_and_fit_take_k_where_the_file_lacks_it(capsys, files):
    assert "add --measured-k" in asked(capsys, "acceptance", "show", files / "sglang_console.txt", code=2)
    found = asked(capsys, "acceptance", "show", files / "sglang_console.txt", "--measured-k", 4, "--json")
    assert found["positions"][-1]["acceptance_length"] == pytest.approx(2.14)
    assert "nothing to fit" in asked(
        capsys, "acceptance", "fit", files / "sglang_console.txt", "--measured-k", 4, code=2
    )
    fitted = asked(capsys, "acceptance", "fit", files / "vllm_dflash.log", "--json")
    assert fitted["good_enough"] in ("constant", "decay", None)


def test_a_recommendation_from_a_log_forces_what_was_measured(capsys, files):
    """776, 677, 560, 467 and 393 of 876 rounds go into the flags, K up to 5."""
    found = asked(
        capsys,
        "recommend",
        *TARGET,
        "--drafter",
        "dflash",
        "--acceptance",
        files / "vllm_dflash.log",
        "--json",
    )
    assert [row["k"] for row in found["curve"]] == [1, 2, 3, 4, 5]
    assert found["curve"][-1]["acceptance_length"] == pytest.approx(1 + 2873 / 876)
    assert found["low"] < found["speedup"] < found["high"]
    shown = asked(
        capsys, "recommend", *TARGET, "--drafter", "dflash", "--acceptance", files / "vllm_dflash.log"
    )
    rates = ",".join(f"{n / 876:.6g}" for n in (776, 677, 560, 467, 393))
    assert rates in shown.replace(" ", "")


def test_compare_and_tree_take_them_too(capsys, files):
    assert asked(
        capsys,
        "compare",
        *TARGET,
        "--drafters",
        "eagle3,dflash",
        "--acceptance",
        files / "sglang_old.log",
        "--json",
    )
    golden = f"{files / 'golden_mtp.yaml'}#thinking_on"
    assert asked(capsys, "tree", *TARGET, "--drafter", "eagle3", "--acceptance", golden, "--json")
    error = asked(
        capsys, "recommend", *TARGET, "--drafter", "eagle3", "--acceptance", files / "vllm_v0.log", code=2
    )
    assert "old V0 engine only" in error


# --- diagnose


def test_a_log_and_a_plain_rate_are_a_diagnosis(capsys, files):
    """34.25 ms a round over 25 ms a step: break-even 1.37, A 4.28, 3.12x."""
    found = asked(capsys, "diagnose", "--from", files / "vllm_dflash.log", "--plain-tok-s", 40, "--json")
    assert (found["verdict"], found["k"]) == ("pays", 5)
    assert found["round_s"] == pytest.approx(0.034247, rel=1e-3)
    assert found["break_even_acceptance_length"] == pytest.approx(1.37, abs=5e-3)
    assert found["speedup"] == pytest.approx(4.2797 / 1.37, rel=2e-3)
    assert found["read"][0]["engine"] == "vLLM"
    assert found["notes"] == []
    shown = asked(capsys, "diagnose", "--from", files / "vllm_dflash.log", "--plain-tok-s", 40)
    assert shown.startswith("read: vLLM, log, 3 lines")
    assert "Speculation pays: 3.12x at K = 5" in shown


def test_draft_times_of_llama_cpp_give_c(capsys, files):
    """3.742 ms for 259 / 87 drafts, 22.66 ms of verify; c = 3.742 / 3 / 20 at a plain step of 20 ms."""
    found = asked(capsys, "diagnose", "--from", files / "llama_eagle3.log", "--plain-ms", 20, "--json")
    assert found["draft_cost"] == pytest.approx(3.742e-3 / 3 / 0.02, rel=1e-3)
    assert found["verify_s"] == pytest.approx(0.0264 - 0.003742, rel=1e-3)
    assert found["best_k"] is not None  # the survival of the file says what other K would give


def test_what_is_typed_wins_and_the_difference_is_said(capsys, files):
    words = ["diagnose", "--from", files / "vllm_dflash.log", "--plain-ms", 25, "--json"]
    found = asked(capsys, *words, "--tpot-ms", 9, "--acceptance-length", 4.0)
    assert (found["token_s"], found["acceptance_length"]) == (0.009, 4.0)
    assert any("9 ms as typed is used" in one and "8.002 ms" in one for one in found["notes"])
    assert any("--from" in one["text"] for one in found["findings"])
    same = asked(capsys, *words, "--tpot-ms", 8.01)
    assert same["notes"] == []
    other = asked(capsys, *words, "--k", 6)
    assert other["k"] == 6
    assert any("--k 6 is used" in one for one in other["notes"])


def test_concurrency_is_taken_from_the_file(capsys, write):
    """Two results of bench serve: 8 ms a token with, 20 ms without, four at a time."""
    spec = {
        "num_prompts": 1, "max_concurrency": 4, "mean_tpot_ms": 8.0, "mean_itl_ms": 20.0, "spec_decode_num_drafts": 100,
        "spec_decode_draft_tokens": 300, "spec_decode_accepted_tokens": 150, "spec_decode_acceptance_length": 2.5,
        "spec_decode_acceptance_rate": 50.0, "spec_decode_per_position_acceptance_rates": [0.8, 0.5, 0.2],
    }  # fmt: skip
    plain = {"num_prompts": 1, "max_concurrency": 4, "mean_tpot_ms": 16.0}
    with_, without = write("spec.json", spec), write("plain.json", plain)
    found = asked(capsys, "diagnose", "--from", with_, "--plain-from", without, "--json")
    assert found["speedup"] == pytest.approx(2.0)
    assert found["round_cost"] == pytest.approx(20 / 16)
    # Tokens per second are of all four: 4 / 250 = 16 ms.
    rated = asked(capsys, "diagnose", "--from", with_, "--plain-tok-s", 250, "--json")
    assert rated["plain_s"] == pytest.approx(0.016)
    one = write("one.json", plain | {"max_concurrency": 1})
    assert any(
        "1 sequences at a time, not 4" in n
        for n in asked(capsys, "diagnose", "--from", with_, "--plain-from", one, "--json")["notes"]
    )
    assert "with speculation; give one without" in asked(
        capsys, "diagnose", "--from", with_, "--plain-from", with_, code=2
    )
    assert "give it as --plain-from" in asked(capsys, "diagnose", "--from", without, code=2)


def test_a_table_over_k_is_a_sweep(capsys, write):
    """A / T: 1.7 / 12, 2.5 / 14, 2.9 / 20: K = 3 is best, 1.79x of the 10 ms step in the same file."""

    def row(steps, length, step, batch=1):
        return {
            "batch_size": batch,
            "steps": steps,
            "topk": min(steps, 1),
            "num_draft_tokens": steps + 1 if steps else 0,
            "acc_length": length,
            "step_time": step,
        }

    rows = [row(0, 1.0, 0.010), row(1, 1.7, 0.012), row(3, 2.5, 0.014), row(7, 2.9, 0.020)]
    path = write("a.jsonl", rows, lines=True)
    found = asked(capsys, "diagnose", "--from", path, "--json")
    assert (found["best_k"], found["k"]) == (3, 3)
    assert found["speedup"] == pytest.approx(2.5 / 1.4)
    single = asked(capsys, "diagnose", "--from", path, "--k", 7, "--json")
    assert single["speedup"] == pytest.approx(2.9 / 2)
    assert "its K are 1, 3, 7" in asked(capsys, "diagnose", "--from", path, "--k", 2, code=2)
    both = write(
        "b.jsonl", [*rows, row(0, 1.0, 0.02, 8), row(1, 1.7, 0.03, 8), row(3, 2.5, 0.04, 8)], lines=True
    )
    assert "holds batches 1, 8; add --batch" in asked(capsys, "diagnose", "--from", both, code=2)
    assert asked(capsys, "diagnose", "--from", both, "--batch", 8, "--json")["best_k"] == 3
    assert "--tpot-ms is of one run, --from of several" in asked(
        capsys, "diagnose", "--from", path, "--tpot-ms", 3, code=2
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--batch", 0], "--batch"),
        (["--k", 0], "--k"),
        (["--k", 5000], "--k"),
        (["--plain-tok-s", 0], "--plain-tok-s 0"),
        (["--spec-tok-s", -1], "--spec-tok-s -1"),
    ],
)
def test_typed_numbers_are_checked_before_files_are_used(capsys, files, words, said):
    words = [
        "diagnose",
        "--from",
        files / "vllm_dflash.log",
        "--plain-from",
        files / "vllm_dflash.log",
        *words,
    ]
    assert said in asked(capsys, *words, code=2)


def test_diagnose_asks_for_k_by_its_own_name(capsys, files):
    error = asked(capsys, "diagnose", "--from", files / "sglang_console.txt", "--plain-ms", 20, code=2)
    assert "add --k" in error
    assert "--measured-k" not in error


def test_files_without_times_or_beside_a_sweep(capsys, files, tmp_path):
    assert "nothing measured with speculation" in asked(
        capsys, "diagnose", "--from", files / "vllm.prom", "--plain-ms", 20, code=2
    )
    assert "--from and --sweep" in asked(
        capsys, "diagnose", "--from", files / "vllm.prom", "--sweep", tmp_path / "x.csv", code=2
    )
    assert "no plain run" in asked(capsys, "diagnose", "--from", files / "vllm_dflash.log", code=2)
    assert "cannot be read" in asked(capsys, "diagnose", "--from", tmp_path / "missing.log", code=2)
