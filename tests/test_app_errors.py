"""What goes wrong for a newcomer: one sentence, exit code 2, no traceback, nothing on standard output."""

import functools
import json

import pytest

import rooflinekit as rk
from rooflinekit.cli import run
from rooflinekit.errors import RooflineError

PREDICT = ("predict", "--model", "llama-3.1-8b", "--hardware", "h100-sxm")
RECOMMEND = ("recommend", "--model", "llama-3.1-8b", "--hardware", "h100-sxm", "--drafter", "eagle3")
ALPHA = (*RECOMMEND, "--alpha", "0.8")
COMPARE = ("compare", "--model", "llama-3.1-8b", "--hardware", "h100-sxm", "--alpha", "0.8", "--drafters")
HUGE = "9" * 400
AXES = ("batch", "context")


def refused(capsys, arguments, *words, lines=1):
    """Run, and return the message of a refusal after checking its form."""
    code = run(list(arguments))
    out, err = capsys.readouterr()
    assert code == 2, f"{code}: {out}{err}"
    assert out == ""
    assert "Traceback" not in err
    if err.startswith("Usage:"):
        assert "Error: " in err
    else:
        assert err.startswith("error: ")
        assert err.count("\n") == lines
    for word in words:
        assert word in err
    return err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("predikt",), ["predict"]),
        (("frobnicate",), ["known", "recommend"]),
        (("predict",), ["--model"]),
        ((*PREDICT, "--batsch", "3"), ["--batsch"]),
        (("hardware", "shwo"), ["shwo"]),
        (("predict", "--model", "llama-3.1-9b", "--hardware", "h100-sxm"), ["llama-3.1-8b"]),
        (("predict", "--model", "", "--hardware", "h100-sxm"), []),
        (("predict", "--model", "llama-3.1-8b", "--hardware", "h100-smx"), ["h100-sxm"]),
        (("predict", "--model", "llama-3.1-8b", "--hardware", "abacus"), ["abacus"]),
        (("predict", "--model", "llama-3.1-8b", "--hardware", ""), []),
        (("predict", "--model", "missing/config.json", "--hardware", "h100-sxm"), ["missing/config.json"]),
        (("predict", "--model", "llama-3.1-8b", "--hardware", "missing.yaml"), ["missing.yaml"]),
        (("models", "show", "nosuch"), ["nosuch"]),
        (("hardware", "show", "nosuch"), ["nosuch"]),
        (("hardware", "check", "missing.yaml"), ["missing.yaml"]),
        ((*ALPHA[:5], "--drafter", "eagle33", "--alpha", "0.8"), ["eagle33", "eagle3"]),
        ((*ALPHA[:5], "--drafter", "small-lm", "--alpha", "0.8"), ["small-lm:"]),
        ((*ALPHA[:5], "--drafter", "small-lm:nosuch", "--alpha", "0.8"), ["nosuch"]),
        ((*ALPHA[:5], "--drafter", "missing/config.json", "--alpha", "0.8"), ["missing/config.json"]),
        ((*COMPARE, "eagle3,eagel"), ["eagel"]),
        ((*COMPARE, ","), ["--drafters"]),
        ((*PREDICT, "--dtype", "bf15"), ["bf15", "bf16"]),
        ((*PREDICT, "--kv-dtype", "nvfp4"), ["nvfp4"]),
        ((*PREDICT, "--dtype", "nvfp4"), ["w4a16"]),
        ((*ALPHA, "--draft-dtype", "bf15"), ["bf15"]),
        ((*PREDICT, "--calibration", "missing.yaml"), ["missing.yaml"]),
        (("validate", "--suite", "hand-value"), ["hand-values"]),
        (("validate",), ["--suite"]),
        (("validate", "missing.jsonl"), ["--calibration"]),
    ],
)
def test_unknown_names_are_refused_with_the_nearest(capsys, arguments, words):
    """A slip of the pen is answered with what was meant, or with what there is."""
    refused(capsys, arguments, *words)


@pytest.mark.parametrize("value", ["-1", "0", "nan", "inf", "-inf", "1e300", "1.5", HUGE])
@pytest.mark.parametrize("option", ["--batch", "--width", "--tp", "--context"])
def test_impossible_numbers_are_refused(capsys, option, value):
    """Zero, negative, fractions, not a number, infinite, huge: each names its option."""
    if (option, value) == ("--context", "0"):
        assert run([*PREDICT, option, value]) == 0
        return
    refused(capsys, (*PREDICT, option, value), option)


@pytest.mark.parametrize("value", ["-1", "0", "nan", "1e9", "2.5", HUGE])
@pytest.mark.parametrize("option", ["--max-k", "--k"])
def test_impossible_drafts_are_refused(capsys, option, value):
    """K is a whole number from 1."""
    refused(capsys, (*ALPHA, option, value), option)


@pytest.mark.parametrize("call", [rk.recommend, rk.outlook])
@pytest.mark.parametrize(
    ("drafter", "accepted", "words"),
    [
        ("dflash", {"alpha": 0.8}, "past the trained block of dflash"),
        ("eagle3", {"survival": "0.8,0.6"}, "past the 2 positions"),
    ],
)
def test_a_k_that_was_not_trained_or_measured_is_refused_by_each_call(call, drafter, accepted, words):
    with pytest.raises(RooflineError, match=words):
        call("llama-3.1-8b", "h100-sxm", drafter, k=40, **accepted)


@pytest.mark.parametrize(
    ("call", "axis"),
    [
        *((functools.partial(call, alpha=0.8), axis) for call in (rk.schedule, rk.table) for axis in AXES),
        *((rk.sweep, axis) for axis in (*AXES, "k", "alpha")),
    ],
)
def test_an_empty_axis_is_refused(call, axis):
    with pytest.raises(RooflineError, match="is empty; give at least one"):
        call("llama-3.1-8b", "h100-sxm", "eagle3", **{axis: ()})


@pytest.mark.parametrize("value", ["-0.1", "1.1", "nan", "inf", "abc", ""])
def test_impossible_rates_are_refused(capsys, value):
    """A probability lies in 0..1, and 80 is not 80 %."""
    refused(capsys, (*RECOMMEND, "--alpha", value))


@pytest.mark.parametrize("value", ["-0.1", "1.1", "nan"])
def test_an_impossible_overlap_is_refused(capsys, value):
    """The share of experts that neighbours have in common lies in 0..1."""
    refused(capsys, (*PREDICT, "--routing-overlap", value), "--routing-overlap")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), ["exactly one", "none was given"]),
        (("--alpha", "0.8", "--survival", "0.8"), ["--alpha and --survival"]),
        (
            ("--alpha", "0.8", "--acceptance-length", "3", "--measured-k", "4"),
            ["--alpha and --acceptance-length"],
        ),
        (("--acceptance-length", "3"), ["--measured-k"]),
        (("--acceptance-length", "6", "--measured-k", "4"), ["between 1 and 5"]),
        (("--acceptance-length", "0.5", "--measured-k", "4"), ["bonus"]),
        (("--acceptance-length", "nan", "--measured-k", "4"), ["between 1 and 5"]),
        (("--acceptance-length", "3", "--measured-k", "0"), ["--measured-k"]),
        (("--acceptance-length", "3", "--measured-k", HUGE), ["--measured-k"]),
        (("--survival", "0.5,0.6"), ["rises", "multiply them up"]),
        (("--survival", "0.8,x"), ["0.8,x"]),
        (("--survival", ""), ["survival"]),
        (("--survival", "0.8,,0.4"), ["survival"]),
        (("--survival", "1.2"), ["1.2"]),
        (("--survival", "nan"), ["nan"]),
        (("--survival", "0.8,0.6", "--k", "3"), ["2 positions"]),
        (("--acceptance", "missing.json"), ["missing.json"]),
    ],
)
def test_acceptance_that_says_nothing_or_too_much_is_refused(capsys, arguments, words):
    """Exactly one possible description."""
    refused(capsys, (*RECOMMEND, *arguments), *words)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00\xff\xfe\x80",
        b"[]",
        b"{}",
        b'{"histogram": []}',
        b'{"histogram": [1, -2]}',
        b'{"histogram": ["a", 1]}',
        b'{"histogram": [true, 1]}',
        b'{"histogram": [NaN, 1]}',
        b'{"histogram": 7}',
        b'{"histogram": null}',
        b'{"histogram": [1, 2], "survival": [0.5]}',
        b'{"survival": [0.9, 0.95]}',
        b'{"survival": [0.9], "rounds": 0}',
        b'{"survival": [0.9], "rounds": 2.5}',
        b'{"survival": [0.9], "rounds": true}',
        b'{"survival": []}',
        b'{"histogram": [1, ' + b"9" * 400 + b"]}",
        b'{"survival": [0.9], "rounds": ' + b"9" * 400 + b"}",
        b'{"histogram": [1, ' + b"9" * 5000 + b"]}",
        b"[" * 100_000,
    ],
)
def test_broken_acceptance_files_are_refused(capsys, tmp_path, content):
    """Empty, binary, of another form, impossible, endless: the file is named."""
    path = tmp_path / "acceptance.json"
    path.write_bytes(content)
    refused(capsys, (*RECOMMEND, "--acceptance", str(path)))


def test_a_folder_is_no_acceptance_file(capsys, tmp_path):
    """The name of a folder is refused as such."""
    refused(capsys, (*RECOMMEND, "--acceptance", str(tmp_path)), "directory")


@pytest.mark.parametrize(
    "content",
    [b"", b"\x00\xff\xfe\x80", b"[]", b"7", b"{}", b"{", b'{"model_type": "llama"}', b"[" * 100_000],
)
@pytest.mark.parametrize("option", ["--model", "--drafter"])
def test_broken_model_files_are_refused(capsys, tmp_path, content, option):
    """A config.json that is empty, binary, no object or lacks its numbers."""
    path = tmp_path / "config.json"
    path.write_bytes(content)
    arguments = {
        "--model": "llama-3.1-8b",
        "--hardware": "h100-sxm",
        "--drafter": "eagle3",
        "--alpha": "0.8",
        option: str(path),
    }
    refused(capsys, ("recommend", *[part for pair in arguments.items() for part in pair]), "config.json")


@pytest.mark.parametrize(
    "content",
    [b"", b"\x00\xff\xfe\x80", b"[]", b"7", b"a: b: c", b"fits: 3", b"schema: 1\nname: x\n", b"[" * 5000],
)
@pytest.mark.parametrize("option", ["--hardware", "--calibration"])
def test_broken_yaml_files_are_refused(capsys, tmp_path, content, option):
    """A profile or calibration that is empty, binary or incomplete: file and line, one problem a line."""
    path = tmp_path / "broken.yaml"
    path.write_bytes(content)
    given = {"--model": "llama-3.1-8b", "--hardware": "h100-sxm", option: str(path)}
    code = run(["predict", *[part for pair in given.items() for part in pair]])
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert "broken.yaml" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00\xff\xfe\x80",
        b"[]\n",
        b"7\n",
        b'{"record": "case"}\n',
        b'{"record": "run", "schema": 99}\n',
        b"{\n{\n",
    ],
)
@pytest.mark.parametrize("command", ["calibrate", "validate"])
def test_broken_measurement_files_are_refused(capsys, tmp_path, content, command):
    """A file that bench did not write is refused, and nothing is left behind."""
    path, out = tmp_path / "m.jsonl", tmp_path / "out" / "c.yaml"
    path.write_bytes(content)
    good = tmp_path / "cal.yaml"
    good.write_text(
        "schema: 1\nname: c\nbase: h100-sxm5-80gb\nstack: pytorch\ndtype: bf16\nfits:\n- kind: linear\n  dtype: bf16\n"
        "  form: p-norm\n  n: 4\n  ceiling: {t0: 1 us, memory_efficiency: 0.9, compute_efficiency: 0.8}\nruns: [r]\nused: [r/a]\n"
    )
    extra = (
        ("--base", "h100-sxm", "--out", str(out)) if command == "calibrate" else ("--calibration", str(good))
    )
    refused(capsys, (command, str(path), *extra), "m.jsonl")
    assert not out.exists()


LONG = "x" * 300


@pytest.mark.parametrize(
    "arguments",
    [
        ("predict", "--model", LONG, "--hardware", "h100-sxm"),
        ("predict", "--model", LONG + ".json", "--hardware", "h100-sxm"),
        ("predict", "--model", "llama-3.1-8b", "--hardware", LONG),
        ("predict", "--model", "llama-3.1-8b", "--hardware", LONG + ".yaml"),
        (*ALPHA[:5], "--drafter", LONG, "--alpha", "0.8"),
        (*PREDICT, "--calibration", LONG),
        (*RECOMMEND, "--acceptance", LONG),
        ("calibrate", "m.jsonl", "--base", "h100-sxm", "--out", LONG + ".yaml"),
    ],
)
def test_names_too_long_for_a_file_are_refused(capsys, arguments):
    """A pasted text in place of a name is not a crash of the file system."""
    refused(capsys, arguments)


def test_a_format_the_device_lacks_names_the_weight_only_one(capsys):
    """fp8 on an A100: the same bytes with bf16 arithmetic is w8a16."""
    refused(
        capsys,
        ("predict", "--model", "llama-3.1-8b", "--hardware", "a100-80gb-sxm", "--dtype", "fp8"),
        "fp8",
        "--dtype w8a16",
    )
    assert run(["predict", "--model", "llama-3.1-8b", "--hardware", "a100-80gb-sxm", "--dtype", "w8a16"]) == 0


@pytest.mark.parametrize("tp", ["3", "7", "64"])
def test_ranks_that_do_not_divide_the_heads_are_refused(capsys, tp):
    """32 heads on three ranks."""
    refused(capsys, (*PREDICT, "--tp", tp), f"over {tp} ranks", "--tp")


def test_a_drafter_that_cannot_be_split_is_named(capsys):
    """64 heads on 32 ranks, but the drafter's 16 not; where the target cannot be split, it is not the drafter."""
    small = ("recommend", "--model", "qwen3-32b", "--drafter", "small-lm:qwen3-0.6b", "--alpha", "0.8")
    place = ("--hardware", "h100-sxm", "--tp")
    refused(capsys, (*small, *place, "32"), "drafter small-lm (qwen3-0.6b", "attention heads 16", "32 ranks")
    assert "drafter" not in refused(capsys, (*small, *place, "3"), "heads 64")


def test_a_draft_past_the_trained_block_is_refused(capsys):
    """DSpark drafts seven."""
    refused(capsys, (*ALPHA[:5], "--drafter", "dspark", "--alpha", "0.8", "--k", "8"), "K = 8", "--k 7")


@pytest.mark.parametrize("ending", ["out.yaml", "sub/out.yaml"])
def test_a_place_that_cannot_be_written_is_refused_before_any_work(capsys, tmp_path, ending):
    """A file where the folder should be."""
    (tmp_path / "file").write_text("")
    out = tmp_path / "file" / ending
    refused(capsys, ("calibrate", "m.jsonl", "--base", "h100-sxm", "--out", str(out)), "cannot be written")


def test_a_folder_as_output_is_refused(capsys, tmp_path):
    """A file name is needed."""
    (tmp_path / "o.yaml").mkdir()
    refused(
        capsys,
        ("calibrate", "m.jsonl", "--base", "h100-sxm", "--out", str(tmp_path / "o.yaml")),
        "is a folder",
    )


def test_an_ending_that_cannot_be_written_is_refused(capsys, tmp_path):
    """A calibration is YAML."""
    refused(capsys, ("calibrate", "m.jsonl", "--base", "h100-sxm", "--out", str(tmp_path / "o.xls")), ".yaml")


def test_a_calibration_of_another_device_is_refused(capsys, tmp_path):
    """Ceilings fitted on one device say nothing about another."""
    path = tmp_path / "c.yaml"
    path.write_text(
        "schema: 1\nname: c\nbase: l40s\nstack: pytorch\ndtype: bf16\nfits: []\nruns: [r]\nused: []\n",
        encoding="utf-8",
    )
    refused(capsys, (*PREDICT, "--calibration", str(path)), "l40s")


def test_local_without_a_measurement_says_how_to_make_one(capsys, tmp_path, monkeypatch):
    """The measured profile of this machine does not exist before it was measured."""
    monkeypatch.setenv("ROOFLINEKIT_LOCAL", str(tmp_path / "none.yaml"))
    refused(capsys, ("predict", "--model", "llama-3.1-8b", "--hardware", "local"), "rooflinekit demo")


@pytest.mark.parametrize(
    "call",
    [
        lambda: rk.predict("llama-3.1-8b", "h100-sxm", batch=0),
        lambda: rk.predict("llama-3.1-8b", "h100-sxm", context=float("nan")),
        lambda: rk.recommend("llama-3.1-8b", "h100-sxm", "eagle3", alpha=2.0),
        lambda: rk.recommend("llama-3.1-8b", "h100-sxm", "eagle3"),
        lambda: rk.recommend(
            "llama-3.1-8b", "h100-sxm", "eagle3", alpha=0.8, acceptance=rk.make_acceptance(alpha=0.5)
        ),
        lambda: rk.compare("llama-3.1-8b", "h100-sxm", ["nosuch"], alpha=0.8),
        lambda: rk.sweep("llama-3.1-8b", "h100-sxm", "dspark", k=[8]),
        lambda: rk.sweep("llama-3.1-8b", "h100-sxm", "eagle3", batch=[0]),
        lambda: rk.sweep("llama-3.1-8b", "h100-sxm", "eagle3", alpha=[1.5]),
    ],
)
def test_the_library_refuses_what_the_command_line_refuses(call):
    """One exception family for everything a user can put right."""
    with pytest.raises(RooflineError):
        call()


def test_errors_of_json_output_are_still_text_on_the_error_stream(capsys):
    """A program that reads the JSON sees an empty stream and the exit code."""
    refused(capsys, (*PREDICT, "--batch", "0", "--json"), "--batch")
    assert json.dumps({}) == "{}"


def test_a_drafter_in_a_format_the_device_lacks_is_refused(capsys):
    place = ("--model", "llama-3.1-8b", "--hardware", "a100-80gb-sxm", "--drafter", "small-lm:llama-3.2-1b")
    words = ("recommend", *place, "--alpha", "0.8", "--draft-dtype")
    refused(capsys, (*words, "fp8"), "no fp8 matrix rate", "--draft-dtype w8a16")
    assert run([*words, "w8a16"]) == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--stack", "nccl"), ["collectives alone", "vllm"]),
        (("--stack", ""), ["empty"]),
        (("--stack", "foo"), ["foo", "trtllm"]),
        (("--stack", "vllm", "--calibration", "datasheet"), ["leave out"]),
        (("--calibration", ""), ["empty", "auto"]),
    ],
)
def test_a_calibration_that_is_none_is_refused(capsys, options, words):
    refused(capsys, ("predict", "--model", "qwen3-8b", "--hardware", "h100-sxm", *options), *words)


def test_options_that_a_suite_or_source_would_ignore_are_refused(capsys):
    refused(capsys, ("validate", "--suite", "kernels", "--calibration", "x.yaml"), "leave out --calibration")
    ignored = ("calibrate", "--source", "aiconfigurator", "--base", "l40s", "--out", "folder")
    refused(capsys, ignored, "leave out --base")


def test_a_stack_is_found_whatever_its_case(capsys):
    assert run(["predict", "--model", "qwen3-8b", "--hardware", "h100-sxm", "--stack", "VLLM", "--json"]) == 0
    assert "vllm" in capsys.readouterr().out
