"""Values worked out by hand, asked for as a user asks: through the command line and its JSON."""

import json

import pytest

import rooflinekit as rk
from rooflinekit.cli import run
from rooflinekit.hardware import machine
from rooflinekit.llm import Moe
from rooflinekit.precision import precision
from rooflinekit.profiles.library import find_hardware
from rooflinekit.readers.models import find_llm
from rooflinekit.target import Target
from rooflinekit.transformer import Load, experts_touched

HALF_PERCENT = 0.005  # activations are counted here and not by hand; 3.352 TB/s here, 3.35 by hand

# model, hardware, options, bytes of weights and of cache over bandwidth by hand (ms)
STEPS = [
    ("llama-3.1-70b", "h100-sxm", {}, (139.006e9 + 1.342e9) / 3.35e12 * 1e3),
    ("llama-3.1-70b", "h100-sxm", {}, 41.895),
    ("llama-2-7b", "a100-80gb-sxm", {}, (13.215e9 + 2.147e9) / 2.039e12 * 1e3),
    ("llama-2-7b", "a100-80gb-sxm", {}, 7.534),
    ("qwen3-30b-a3b", "h100-sxm", {}, 1.936),
    ("qwen3-30b-a3b", "h100-sxm", {"width": 8}, 7.83),
    ("qwen3-30b-a3b", "h100-sxm", {"batch": 8}, 8.68),
    ("qwen3-30b-a3b", "h100-sxm", {"batch": 16}, 13.80),
    ("llama-3.1-70b", "h100-sxm", {"context": 32_768}, 44.7),
    ("llama-3.1-70b", "h100-sxm", {"context": 131_072}, 54.3),
]


def ask(capsys, *arguments):
    code = run([*map(str, arguments), "--json"])
    out, err = capsys.readouterr()
    assert code == 0, err
    return json.loads(out)


def predict(capsys, model, hardware, **options):
    given = [part for name, value in options.items() for part in (f"--{name}", value)]
    return ask(
        capsys, "predict", "--model", model, "--hardware", hardware, "--calibration", "datasheet", *given
    )


@pytest.mark.parametrize(("model", "hardware", "options", "milliseconds"), STEPS)
def test_a_step_takes_what_its_bytes_take(capsys, model, hardware, options, milliseconds):
    """Weights and cache over bandwidth, within 0.5 %."""
    assert predict(capsys, model, hardware, **options)["step_s"] * 1e3 == pytest.approx(
        milliseconds, rel=HALF_PERCENT
    )


@pytest.mark.parametrize(("width", "milliseconds"), [(1, 1.936), (8, 7.83)])
def test_a_mixture_at_exactly_the_rounded_bandwidth(width, milliseconds):
    """The hand value on 3.35 TB/s itself, activations besides."""
    base = machine(find_hardware("h100-sxm"))
    from dataclasses import replace

    exact = replace(base, bandwidth_bytes_per_s=3.35e12)
    found = Target(find_llm("qwen3-30b-a3b"), precision("bf16")).step_s(exact, 1.0, 4096.0, float(width))
    assert found * 1e3 == pytest.approx(milliseconds, rel=HALF_PERCENT)


def test_the_bytes_of_a_large_dense_model(capsys):
    """139.006 GB of weights and 1.342 GB of cache: 80 x 2 x 8 x 128 x 2 bytes a token, 4096 of them."""
    found = predict(capsys, "llama-3.1-70b", "h100-sxm")
    assert found["weight_bytes"] == pytest.approx(139.006e9, rel=1e-4)
    assert found["kv_bytes"] == 80 * 2 * 8 * 128 * 2 * 4097
    assert found["resident_bytes"] == 2 * 70_553_706_496
    assert found["arithmetic_intensity"] == pytest.approx(1.0, rel=0.1)


def test_the_bytes_of_a_verified_mixture(capsys):
    """Eight tokens: 26.25 GB with the cache."""
    found = predict(capsys, "qwen3-30b-a3b", "h100-sxm", width=8)
    assert found["weight_bytes"] + found["kv_bytes"] == pytest.approx(26.25e9, rel=1e-3)


@pytest.mark.parametrize(
    ("model", "per_token"), [("deepseek-v3", 70_272), ("llama-3.1-70b", 327_680), ("llama-3.1-8b", 131_072)]
)
def test_cache_per_token(capsys, model, per_token):
    """61 latents of 576 elements; 2 x layers x KV heads x 128 elsewhere; two bytes each."""
    assert ask(capsys, "models", "show", model)["kv_bytes_per_token"] == per_token


def test_experts_of_eight_tokens():
    """51.62 of 128."""
    assert experts_touched(Moe(experts=128, top_k=8, intermediate=768), Load(width=8.0)) == pytest.approx(
        51.62, abs=0.005
    )


def test_a_verify_reads_a_long_cache_once(capsys):
    """131,072 tokens, eight rows: within 2 % of one row, where rereading would take 2.6 times as long."""
    found = predict(capsys, "llama-3.1-70b", "h100-sxm", context=131_072, width=8)
    assert 1.0 <= found["verify_ratio"] < 1.02


def test_formulas():
    """E[tokens](0.8, 4) = 3.3616; eta at c = 0.05 is 2.801; certain acceptance gives K + 1; K = 2 gives 2.44."""
    assert rk.expected_tokens(0.8, 4) == pytest.approx(3.3616, abs=5e-5)
    assert rk.expected_tokens(0.8, 2) == pytest.approx(2.44)
    assert rk.eta(0.8, 4, 0.05) == pytest.approx(2.801, abs=5e-4)
    assert rk.expected_tokens(1.0, 4) == 5.0


def test_what_does_not_fit_is_said_beside_its_time(capsys):
    """70B in bf16 on one H100: the time is given, with the two remedies that work."""
    found = predict(capsys, "llama-3.1-70b", "h100-sxm")
    assert found["fits"] is False
    assert "--tp 2" in found["remedy"]
    assert "fp8" in found["remedy"]
    assert found["memory_bytes"] > found["memory_capacity_bytes"] == 84_942_979_072
    assert found["step_s"] > 0
    for remedy in ({"tp": 2}, {"dtype": "fp8"}):
        assert predict(capsys, "llama-3.1-70b", "h100-sxm", **remedy)["fits"] is True


SPECULATE = (
    "recommend",
    "--model",
    "llama-3.1-70b",
    "--hardware",
    "h100-sxm",
    "--drafter",
    "eagle3",
    "--alpha",
    "0.8",
)


def test_a_recommendation_is_refused_for_what_does_not_fit(capsys):
    """Exit code 2 and one sentence with the way out."""
    assert run([*SPECULATE, "--json"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert "--tp 2" in err
    assert "--allow-oversize" in err


def test_a_recommendation_is_given_for_what_does_not_fit_when_asked(capsys):
    """The same question with --allow-oversize."""
    found = ask(capsys, *SPECULATE, "--allow-oversize")
    assert found["fits"] is False
    assert "--tp 2" in found["remedy"]
    assert found["pays"] is True
    assert found["k"] + 1 - sum(loss["speedup_lost"] for loss in found["loss"]) == pytest.approx(
        found["speedup"]
    )


def test_four_bits_on_an_h100_reach_the_ridge_at_74_rows():
    """n* = P w / (2 BW) at half a byte; 295 rows in bf16."""
    h100 = find_hardware("h100-sxm")
    assert h100.ridge_tokens("bf16", 0.5) == pytest.approx(74, rel=0.01)
    assert h100.ridge_tokens("bf16", 2.0) == pytest.approx(295, rel=0.01)
