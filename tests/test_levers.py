"""Levers: every number is the one that `predict` and `recommend` give, by another way or by hand."""

import json

import pytest

from rooflinekit.acceptance import Constant
from rooflinekit.app import levers, predict, recommend
from rooflinekit.cli import run
from rooflinekit.levers import distance, example_chain
from rooflinekit.sampling import acceptance_rate

EXACT = {"calibration": "datasheet"}


@pytest.fixture(scope="module")
def found():
    return levers(
        "llama-3.1-70b", "h100-sxm", "eagle3", alpha=0.8, small="llama-3.1-8b", batch=8, tp=2, **EXACT
    )


@pytest.fixture(scope="module")
def rows(found):
    return {row.name: row for row in found.levers}


def test_weights_by_hand(rows):
    """70.55 B parameters on two ranks; 8 bits keep the 2 x 1.05 B of head and embedding in 16."""
    assert rows["bf16"].resident_bytes == pytest.approx(141.107e9 / 2, rel=1e-4)
    assert rows["w8a16"].resident_bytes == pytest.approx((70.554e9 + 2 * 128256 * 8192) / 2, rel=1e-3)
    assert rows["bf16 + speculation"].resident_bytes > rows["bf16"].resident_bytes


@pytest.mark.parametrize("dtype", ["bf16", "fp8", "w8a16", "w4a16"])
@pytest.mark.parametrize("at", [0, 1])
def test_a_format_alone_is_what_predict_says(rows, dtype, at):
    point = rows[dtype].points[at]
    one = predict("llama-3.1-70b", "h100-sxm", dtype=dtype, batch=point.batch, tp=2, **EXACT)
    assert point.step_s == pytest.approx(one.step_s)
    assert point.tokens_per_s == pytest.approx(point.batch / one.step_s)
    assert point.flops_per_token == pytest.approx(one.flops / point.batch)
    assert point.bytes_per_token * point.batch == pytest.approx(one.flops / one.arithmetic_intensity)
    assert (point.fits, point.remedy) == (one.fits, one.remedy)
    assert point.memory_bytes == pytest.approx(one.memory_bytes)


@pytest.mark.parametrize("dtype", ["bf16", "fp8", "w4a16"])
@pytest.mark.parametrize("at", [0, 1])
def test_speculation_is_what_recommend_says(rows, dtype, at):
    point = rows[f"{dtype} + speculation"].points[at]
    one = recommend(
        "llama-3.1-70b",
        "h100-sxm",
        "eagle3",
        alpha=0.8,
        dtype=dtype,
        batch=point.batch,
        tp=2,
        allow_oversize=True,
        **EXACT,
    )
    assert (point.k, point.acceptance_length) == (one.k, one.best.acceptance_length)
    plain = rows[dtype].points[at]
    assert point.tokens_per_s / plain.tokens_per_s == pytest.approx(one.speedup)


def test_speedups_are_of_the_target_as_it_is(rows):
    for row in rows.values():
        for point, base in zip(row.points, rows["bf16"].points, strict=True):
            assert point.speedup == pytest.approx(point.tokens_per_s / base.tokens_per_s)


def test_parts_do_not_gain_twice(rows):
    """w4a16 leaves less to stream, so drafts and wider rows weigh more: less than the product."""
    for at in (0, 1):
        both = rows["w4a16 + speculation"].points[at]
        product = rows["w4a16"].points[at].speedup * rows["bf16 + speculation"].points[at].speedup
        assert both.of_product == pytest.approx(both.speedup / product)
        assert both.of_product < 1.0
    assert all(point.of_product is None for point in rows["fp8"].points)
    assert all(point.of_product is None for point in rows["bf16 + speculation"].points)


def test_speculation_moves_fewer_bytes_and_more_flops(rows):
    plain, both = rows["bf16"].points[0], rows["bf16 + speculation"].points[0]
    assert both.bytes_per_token < plain.bytes_per_token
    # The verify has K + 1 rows for A tokens; drafting comes on top.
    assert both.flops_per_token > plain.flops_per_token * (both.k + 1) / both.acceptance_length


def test_what_is_known_of_the_output_is_said(rows):
    assert (rows["bf16"].output, rows["bf16"].total_variation) == ("unchanged", 0.0)
    exact = rows["bf16 + speculation"]
    assert exact.output == "unchanged"
    assert 0.0 <= exact.total_variation < 1e-12
    lossy = rows["bf16 + typical acceptance"]
    assert lossy.output == "changed"
    assert lossy.total_variation > 0.05
    for name in ("fp8", "w4a16", "w4a16 + speculation", "llama-3.1-8b, bf16"):
        assert rows[name].output == "changed"
        assert rows[name].total_variation is None
        assert "not computed" in rows[name].reason


@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.8, 1.0])
def test_the_example_has_the_acceptance_asked_for(alpha):
    chain = example_chain(alpha)
    rates = acceptance_rate(chain.verdict.target, chain.verdict.draft)
    assert rates == pytest.approx(alpha, abs=3e-3)  # the rarest token's
    for k in (1, 4, 9):
        assert chain.acceptance_length(k) == pytest.approx(float(Constant(alpha).expected(k)), abs=0.02)
        assert distance(chain, k) < 1e-12
    assert not example_chain(alpha, lossy=True).verdict.lossless


def test_formats_that_make_no_sense_are_named():
    found = levers("llama-3.1-8b", "a100-80gb-sxm", "eagle3", alpha=0.7, formats="fp8,bf16,w4a16", batch=1)
    names = [row.name for row in found.levers]
    assert names == [
        "bf16",
        "w4a16",
        "bf16 + speculation",
        "w4a16 + speculation",
        "bf16 + typical acceptance",
    ]
    ((name, reason),) = found.left_out
    assert name == "fp8"
    assert "no fp8 matrix rate" in reason
    assert len(found.levers[0].points) == 1
    quantised = levers("llama-3.1-8b", "h100-sxm", "eagle3", alpha=0.7, formats="w8a16", dtype="fp8", **EXACT)
    assert quantised.left_out == (("w8a16", "its weights are not smaller than in fp8"),)


COMMAND = ["levers", "--model", "llama-3.1-8b", "--hardware", "h100-sxm", "--drafter", "eagle3"]


def test_the_command_prints_what_json_holds(capsys):
    assert run([*COMMAND, "--alpha", "0.8", "--small", "llama-3.2-1b"]) == 0
    text = capsys.readouterr().out
    assert run([*COMMAND, "--alpha", "0.8", "--small", "llama-3.2-1b", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    for row in data["levers"]:
        assert row["name"] in text
        for point in row["points"]:
            assert f"{point['tokens_per_s']:,.0f}" in text
    assert "unchanged (distance" in text
    assert "changed (not computed)" in text
    assert max(len(line) for line in text.splitlines() if "GFLOP" in line) <= 132


def test_what_does_not_fit_is_said(capsys):
    assert run(["levers", "--model", "llama-3.1-70b", *COMMAND[3:], "--alpha", "0.8", "--batch", "1"]) == 0
    text = capsys.readouterr().out
    assert "bf16 !" in text
    assert "DOES NOT FIT at batch 1: bf16 (what fits: --tp 2" in text


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ([], "acceptance needs exactly one of"),
        (["--alpha", "0.8", "--formats", "fp9"], "number format 'fp9' is unknown"),
        (["--alpha", "0.8", "--batch", "0"], "--batch 0 is out of range"),
        (["--alpha", "0.8", "--max-k", "0"], "--max-k 0 is out of range"),
        (["--alpha", "0.8", "--small", "llama-9"], "llama-9"),
        (["--alpha", "1.8"], "1.8"),
    ],
)
def test_faults_end_with_one_sentence(extra, message, capsys):
    assert run([*COMMAND, *extra]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error
