"""Calibration against measurements made from a known ceiling: what was planted must come back."""

import math
from dataclasses import asdict, replace

import numpy as np
import pytest

from rooflinekit.app import load_measurements
from rooflinekit.calibration import Calibration, Fit, HeldOut, calibrated
from rooflinekit.errors import CalibrationError, ProfileError, RooflineError
from rooflinekit.evidence import Cited
from rooflinekit.fitting import calibrate_cases, fit_kind, split, usable
from rooflinekit.hardware import Hardware, machine
from rooflinekit.local_profile import local_profile
from rooflinekit.measurement import Measurement, Run
from rooflinekit.measurement_file import to_line
from rooflinekit.profiles.calibration_file import calibration_text, load_calibration, write_calibration
from rooflinekit.readers.models import find_llm
from rooflinekit.validation import validate_cases
from rooflinekit.work import Ceiling, Staircase, work_time_s

ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
SHAPES = [(4096, 4096), (14336, 4096), (4096, 14336), (6144, 4096), (8192, 8192), (2048, 8192), (12288, 4096)]
TRUTH = Ceiling(t0_s=3e-6, memory_efficiency=0.85, compute_efficiency=0.7, p=3.0)
RUN = Run(id="r1", started="2026-01-01T00:00:00+00:00", device={"name": "planted"}, environment={})


def device(bandwidth=2e12, peak=3e14):
    return Hardware(
        name="planted",
        title="planted",
        vendor="nobody",
        architecture="none",
        capacity=Cited(80e9, "assumed", "test"),
        bandwidth=Cited(bandwidth, "datasheet", "test"),
        peak={"bf16": Cited(peak, "datasheet", "test")},
    )


BASE = machine(device())


def linear(out, inner, rows, *, name="r1"):
    return Measurement(
        id=f"{name}/linear {out}x{inner} rows {rows}",
        kind="linear",
        dtype="bf16",
        shape={"out": out, "inner": inner, "rows": rows},
        samples_s=(1.0,),
        weight_bytes=2.0 * out * inner,
        activation_bytes=2.0 * rows * (out + inner),
        flops=2.0 * rows * out * inner,
    )


def attention(context, width):
    heads, kv_heads, dim = 32, 8, 128
    pairs = width * context + width * (width + 1) / 2
    return Measurement(
        id=f"r1/attention {context} width {width}",
        kind="attention",
        dtype="bf16",
        shape={
            "batch": 1,
            "context": context,
            "width": width,
            "heads": heads,
            "kv_heads": kv_heads,
            "head_dim": dim,
        },
        samples_s=(1.0,),
        kv_bytes=2.0 * (context + width) * 2 * kv_heads * dim,
        activation_bytes=4.0 * width * heads * dim,
        flops=4.0 * heads * dim * pairs,
    )


def timed(cases, ceiling, noise=0.0, seed=1, base=BASE):
    """Give cases the times of a ceiling, with multiplicative noise of each sample."""
    rng = np.random.default_rng(seed)
    result = []
    for case in cases:
        there = replace(base, ceilings={(case.kind, "*"): ceiling})
        exact = float(work_time_s(case.work, there))
        result.append(replace(case, samples_s=tuple(exact * np.exp(noise * rng.standard_normal(5)))))
    return result


def linears(shapes=SHAPES, rows=ROWS):
    return [linear(out, inner, r) for out, inner in shapes for r in rows]


# --- recovery


@pytest.mark.parametrize(("noise", "tolerance"), [(0.0, 0.005), (0.03, 0.06)])
@pytest.mark.parametrize(
    "planted", [TRUTH, Ceiling(t0_s=1e-5, memory_efficiency=0.6, compute_efficiency=0.45, p=1.7)]
)
def test_a_planted_ceiling_comes_back(noise, tolerance, planted):
    """Efficiencies within 0.5 % without noise and 6 % with 3 % noise; the knee and t0 more loosely."""
    fit, inside = fit_kind(timed(linears(), planted, noise), BASE)
    assert fit.form.startswith("p-norm")  # tiles of a few rows leave no trace under bandwidth
    assert fit.ceiling.memory_efficiency == pytest.approx(planted.memory_efficiency, rel=tolerance)
    assert fit.ceiling.compute_efficiency == pytest.approx(planted.compute_efficiency, rel=2 * tolerance)
    assert fit.ceiling.p == pytest.approx(planted.p, rel=0.02 if not noise else 0.35)
    assert fit.ceiling.t0_s == pytest.approx(planted.t0_s, rel=0.05 if not noise else 0.6)
    assert fit.n == len(inside)
    assert fit.held_out is not None
    assert fit.held_out.median_abs_error < (0.002 if not noise else 0.04)
    assert fit.held_out_ratio is not None
    assert fit.held_out_ratio.median_abs_error < (0.002 if not noise else 0.06)


@pytest.mark.parametrize("tile", [8.0, 16.0])
def test_planted_tiles_are_recognised(tile):
    """Rows padded to whole tiles: the form with that tile has the least error on unseen shapes."""
    planted = replace(TRUTH, tile=tile, compute_efficiency=0.05)
    fit, _ = fit_kind(timed(linears(rows=(1, 3, 5, 9, 12, 17, 20, 33, 40, 64)), planted), BASE)
    assert fit.form == f"p-norm, tile {tile:g}"
    assert fit.ceiling.tile == tile


def test_attention_is_fitted_by_the_same_law():
    """Several contexts and widths; the efficiency of the cache comes back."""
    cases = timed(
        [attention(c, w) for c in (512, 2048, 8192, 32768, 131072) for w in (1, 2, 4, 8, 16)], TRUTH, 0.01
    )
    fit, _ = fit_kind(cases, BASE)
    assert fit.kind == "attention"
    assert fit.ceiling.memory_efficiency == pytest.approx(0.85, rel=0.03)


def test_without_a_peak_only_the_memory_side_is_told():
    """The device publishes no rate: times are bytes over bandwidth and t0, and the fit still works."""
    bare = replace(BASE, peak_flop_per_s={})
    fit, _ = fit_kind(timed(linears(rows=(1, 2, 4, 8)), TRUTH, base=bare), bare)
    assert fit.ceiling.memory_efficiency == pytest.approx(0.85, rel=0.01)
    assert fit.held_out is not None
    assert fit.held_out.median_abs_error < 0.005


STAIRS = Staircase(
    (1.0, 2.0, 3.0, 4.0, 5.0, 8.0, 9.0, 16.0, 17.0, 32.0),
    (1.0, 1.02, 1.05, 1.06, 1.9, 2.0, 3.4, 3.6, 6.5, 7.0),
    (5.0, 9.0, 17.0),
)


def test_a_staircase_is_chosen_where_the_data_are_one():
    """Switches of kernel at 5, 9 and 17 rows: no smooth law follows them, and the breaks are found."""
    planted = Ceiling(memory_efficiency=0.8, staircase=STAIRS)
    fit, _ = fit_kind(timed(linears(rows=tuple(map(int, STAIRS.rows))), planted, 0.01), BASE)
    assert fit.form == "staircase"
    assert fit.ceiling.staircase is not None
    assert fit.ceiling.staircase.breaks == (5.0, 9.0, 17.0)
    assert [fit.ceiling.staircase.at(r) for r in STAIRS.rows] == pytest.approx(STAIRS.reads, rel=0.05)
    assert fit.held_out is not None
    assert fit.held_out.median_abs_error < 0.03


def test_a_smooth_knee_is_not_made_a_staircase():
    """The table must be clearly better to be preferred."""
    fit, _ = fit_kind(timed(linears(), TRUTH, 0.03), BASE)
    assert fit.form.startswith("p-norm")


# --- the split


def test_the_split_depends_on_names_alone():
    """Order, times and noise change nothing; the same shapes are always held out."""
    cases = linears()
    inside, outside = split(cases)
    shuffled = timed(cases, TRUTH, 0.5)
    shuffled = [shuffled[i] for i in np.random.default_rng(3).permutation(len(shuffled))]
    again, away = split(shuffled)
    assert {c.id for c in again} == {c.id for c in inside}
    assert {c.id for c in away} == {c.id for c in outside}


def test_the_split_holds_out_whole_shapes_and_some_rows():
    """A third of the shapes is never seen; of the others one row and the most rows stay in."""
    inside, outside = split(linears())
    assert not {c.id for c in inside} & {c.id for c in outside}
    assert len(inside) + len(outside) == len(SHAPES) * len(ROWS)
    seen = {c.shape_key for c in inside}
    unseen = {c.shape_key for c in outside} - seen
    assert len(unseen) == int(0.34 * len(SHAPES)) == 2
    for key in seen:
        rows = {c.rows for c in inside if c.shape_key == key}
        assert {1.0, 256.0} <= rows
    assert {c.rows for c in outside if c.shape_key in seen}


@pytest.mark.parametrize(("count", "away"), [(1, 0), (2, 1), (3, 1), (6, 2)])
def test_few_shapes_are_split_too(count, away):
    """One shape: only rows are held out. Two: one whole shape."""
    inside, outside = split(linears(SHAPES[:count]))
    unseen = {c.shape_key for c in outside} - {c.shape_key for c in inside}
    assert len(unseen) == away


def test_fitted_cases_are_never_compared():
    """The ids that the calibration used and those in the validation have nothing in common, and cover the file."""
    cases = timed(linears(), TRUTH, 0.02)
    found = calibrate_cases([RUN], cases, device(), "c", own_profile=False)
    report = validate_cases(cases, calibrated(BASE, found), found, find_llm)
    held = [case for case in cases if case.id not in found.used]
    compared = [one for one in report.cases if one.suite == "linear"]
    assert report.fitted_left_out == len(found.used) == sum(case.id in found.used for case in cases)
    assert sorted(one.measured for one in compared) == sorted(case.median_s for case in held)
    assert len(compared) + len(found.used) == len(cases)
    assert report.passed


# --- what is left out


def test_impossible_times_are_left_out_and_counted():
    """Two cases beat the roof by half; they are neither fitted nor compared with, and the count says so."""
    cases = timed(linears(), TRUTH)
    broken = [
        replace(c, samples_s=(0.5 * float(work_time_s(c.work, BASE)),)) if i in (3, 20) else c
        for i, c in enumerate(cases)
    ]
    kept, reasons = usable(broken, BASE)
    assert dict(reasons) == {"faster than the roof": 2}
    assert len(kept) == len(cases) - 2
    found = calibrate_cases([RUN], broken, device(), "c", own_profile=False)
    assert found.left_out == {"faster than the roof": 2}
    assert not {broken[3].id, broken[20].id} & set(found.used)
    assert found.fits[0].ceiling.memory_efficiency == pytest.approx(0.85, rel=0.01)


def test_two_percent_over_the_roof_are_kept():
    """Clocks and counts are that uncertain."""
    case = linear(4096, 4096, 1)
    exact = float(work_time_s(case.work, BASE))
    kept, _ = usable(
        [replace(case, samples_s=(exact / 1.015,)), replace(case, samples_s=(exact / 1.03,))], BASE
    )
    assert len(kept) == 1


def test_too_little_is_refused():
    """Three cases are no fit; no linear layer is no calibration; two devices are two calibrations."""
    with pytest.raises(CalibrationError, match="fewer than 4"):
        calibrate_cases([RUN], timed(linears(SHAPES[:1], (1, 2)), TRUTH), device(), "c", own_profile=False)
    with pytest.raises(CalibrationError, match="fewer than 4"):
        calibrate_cases([RUN], [], device(), "c", own_profile=False)
    other = replace(RUN, id="r2", device={"name": "another"})
    with pytest.raises(CalibrationError, match="another, planted"):
        calibrate_cases([RUN, other], timed(linears(), TRUTH), device(), "c", own_profile=False)


# --- validation


def test_a_planted_error_of_bandwidth_fails_the_validation():
    """A calibration for a memory 30 % faster than the one measured misses the tolerance, with the sign of the bias."""
    cases = timed(linears(), TRUTH, 0.02)
    found = calibrate_cases([RUN], cases, device(), "c", own_profile=False)
    wrong = calibrated(machine(device(bandwidth=1.3 * 2e12)), found)
    report = validate_cases(cases, wrong, found, find_llm)
    band = next(band for band in report.bands if (band.suite, band.band) == ("linear", "all"))
    assert not report.passed
    assert band.ok is False
    assert band.median_abs_error > band.tolerance == 0.15
    assert band.bias < -0.15
    assert report.as_dict()["pass"] is False


def test_bands_share_out_the_compared_cases():
    """Each row count falls into one band, and the judged band holds all."""
    cases = timed(linears(), TRUTH, 0.02)
    found = calibrate_cases([RUN], cases, device(), "c", own_profile=False)
    report = validate_cases(cases, calibrated(BASE, found), found, find_llm)
    for suite in ("linear", "linear ratio"):
        bands = {band.band: band for band in report.bands if band.suite == suite}
        assert sum(band.n for name, band in bands.items() if name != "all") == bands["all"].n
        assert [band.tolerance for name, band in bands.items() if name != "all"] == [None] * (len(bands) - 1)


def test_a_validation_without_a_comparison_is_not_a_success():
    """Every case was fitted, so nothing was checked: that must not read as passed."""
    cases = timed(linears(), TRUTH, 0.02)
    found = calibrate_cases([RUN], cases, device(), "c", own_profile=False)
    fitted = [case for case in cases if case.id in found.used]
    try:
        report = validate_cases(fitted, calibrated(BASE, found), found, find_llm)
    except RooflineError:
        return
    assert not report.passed


# --- the file


def full():
    table = Ceiling(memory_efficiency=0.812345678, staircase=STAIRS)
    smooth = Ceiling(
        t0_s=2.123456789e-6,
        memory_efficiency=1 / 3,
        compute_efficiency=0.7654321,
        p=2.3456789,
        tile=16.0,
        rows_per_pass=4.0,
    )
    held = HeldOut(n=12, median_abs_error=0.0123456789, p90_abs_error=0.1, bias=-0.0123456789)
    return Calibration(
        name="a-name",
        base="h100-sxm5-80gb",
        stack="pytorch",
        fits=(
            Fit(
                kind="linear",
                dtype="bf16",
                ceiling=table,
                form="staircase",
                n=40,
                standard_errors={"reads": 0.01},
                held_out=held,
            ),
            Fit(
                kind="attention",
                dtype="bf16",
                ceiling=smooth,
                form="p-norm",
                n=20,
                held_out=held,
                held_out_ratio=held,
            ),
            Fit(kind="elementwise", dtype="*", ceiling=Ceiling(t0_s=1e-6), form="launch probe, bf16", n=3),
        ),
        run_ids=("r1", "r2"),
        used=("r1/linear 4096x4096 rows 1", "r1/yes", "r2/1e3", "r2/a: b # c"),
        left_out={"faster than the roof": 3},
        contended=True,
        dtype="bf16",
    )


def close(left, right):
    """Equal structures, floats to six digits."""
    if isinstance(left, dict):
        return set(left) == set(right) and all(close(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(close, left, right))
    if isinstance(left, float):
        return left == right or math.isclose(left, right, rel_tol=1e-6 * 5)
    return left == right


@pytest.mark.parametrize("own", [False, True])
def test_a_calibration_file_gives_back_what_was_written(tmp_path, own):
    """Every number to six digits, every word exactly, also words that YAML would read as something else."""
    found = (
        replace(full(), profile=replace(device(1.2345e11, 6.54321e12), name="local"), base="local")
        if own
        else full()
    )
    path = tmp_path / "new" / "c.yaml"
    write_calibration(found, path, "test 1")
    again = load_calibration(path)
    assert close(asdict(found), asdict(again)), (found, again)
    assert calibration_text(again, "test 1") == path.read_text(encoding="utf-8")
    assert [one.name for one in path.parent.iterdir()] == ["c.yaml"]


@pytest.mark.parametrize("noise", [0.0, 0.03, 0.3])
@pytest.mark.parametrize("rows", [(1, 2, 3, 4), ROWS])
def test_every_fit_can_be_written_and_read(tmp_path, noise, rows):
    """Also fits whose data hardly hold a parameter: the file that was written is accepted."""
    found = calibrate_cases([RUN], timed(linears(rows=rows), TRUTH, noise), device(), "c", own_profile=False)
    path = tmp_path / "c.yaml"
    write_calibration(found, path, "test 1")
    assert close(asdict(found), asdict(load_calibration(path)))


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("schema: 1", "schema: 99", ":1: "),
        ("memory_efficiency: 0.812346", "memory_efficiency: -3", "memory_efficiency"),
        ("memory_efficiency: 0.812346", "memory_efficiency: fast", "memory_efficiency"),
        ("t0: 2.12346 us", "t0: 2.12346", "t0"),
        ("t0: 2.12346 us", "t0: 3 h", "t0"),
        ("p: 2.34568", "p: 0.5", ".p"),
        ("p: 2.34568", "q: 2.34568", "q"),
        ("tile: 16", "tile: 1.5", "tile"),
        ("  form: p-norm\n", "", "form"),
        ("contended: true", "contended: perhaps", "contended"),
        ("stack: pytorch\n", "", "stack"),
        ("stack: pytorch\n", "stack: pytorch\nstack: other\n", "stack"),
        ("stack: pytorch\n", "stack: tensorflow\n", "'tensorflow' is not an engine stack"),
        ("  n: 40", "  n: many", ".n"),
        ("  n: 40", "  n: 0", ".n"),
        ("  n: 40", "  n: -3", ".n"),
        ("    n: 12", "    n: 0", ".n"),
        ("memory_efficiency: 0.812346", "memory_efficiency: 1.2", "1.2 is more than the whole bandwidth"),
        ("compute_efficiency: 0.765432", "compute_efficiency: 1.1", "1.1 is more than the whole peak"),
        ("    - 1.02\n", "    - 0.3\n", "a factor of 0.3 on memory_efficiency"),
        ("    - 1.02\n", "", "staircase"),
        ("    - 3.0\n    - 4.0\n", "    - 4.0\n    - 3.0\n", "rows"),
    ],
)
def test_faults_of_a_calibration_file_are_reported_with_their_line(tmp_path, old, new, where):
    """One ``file:line: field: message`` a fault; nothing is guessed."""
    text = calibration_text(full(), "test 1")
    assert text.count(old) >= 1, text
    path = tmp_path / "c.yaml"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ProfileError) as caught:
        load_calibration(path)
    message = str(caught.value)
    assert f"{path}:" in message
    assert message.split(f"{path}:")[1].split(":", maxsplit=1)[0].isdigit()
    assert where in message


# --- the whole way


def probes():
    read = Measurement(
        id="r1/read", kind="read", dtype="bf16", shape={"bytes": 1}, samples_s=(1e-3,), weight_bytes=1.9e9
    )
    slow, fast = (replace(read, id=f"r1/read {s}", samples_s=(s,)) for s in (1.1e-3, 0.95e-3))
    peak = Measurement(
        id="r1/compute", kind="compute", dtype="bf16", shape={"n": 8192}, samples_s=(1e-3,), flops=2.9e11
    )
    launch = Measurement(
        id="r1/launch",
        kind="launch",
        dtype="bf16",
        shape={"n": 1},
        samples_s=(4e-6,),
        kernels=2.0,
        weight_bytes=1.0,
    )
    return [slow, read, fast, peak, launch]


LOCAL_RUN = replace(
    RUN, device={"name": "planted", "kind": "cuda", "capacity_bytes": 80e9, "llc_bytes": 5e7, "units": 100}
)


def test_a_local_profile_is_made_of_its_probes():
    """The median read is the bandwidth, the fastest product the peak, both measured; the rest are device facts."""
    found = local_profile([LOCAL_RUN], probes())
    assert found.bandwidth.value == pytest.approx(1.9e12)
    assert found.peak["bf16"].value == pytest.approx(2.9e14)
    assert {found.bandwidth.kind, found.peak["bf16"].kind, found.capacity.kind} == {"measured"}
    assert found.usable_bytes == 80e9
    with pytest.raises(CalibrationError, match="no read probe"):
        local_profile([LOCAL_RUN], timed(linears(), TRUTH))


def test_measurements_become_a_device_one_can_ask(tmp_path, monkeypatch):
    """Measurement file, calibration of this machine, validation, prediction: the planted error comes out below 5 %."""
    import rooflinekit as rk
    from rooflinekit.cli import run

    cases = [*probes(), *timed(linears(), TRUTH, 0.02)]
    lines = [to_line(LOCAL_RUN), *map(to_line, cases)]
    source, target = tmp_path / "m.jsonl", tmp_path / "c.yaml"
    source.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert [case.id for case in load_measurements([source])[1]] == [case.id for case in cases]
    assert run(["calibrate", str(source), "--base", "auto", "--out", str(target)]) == 0
    assert run(["validate", str(source), "--calibration", str(target)]) == 0
    monkeypatch.setenv("ROOFLINEKIT_LOCAL", str(target))
    found = rk.predict("llama-3.1-8b", "local", context=0)
    assert found.hardware == "local"
    assert found.expected_error is not None
    assert found.expected_error < 0.05
    # 15.01 GB at 85 % of 2 TB/s, and a launch or two per kernel.
    assert found.step_s == pytest.approx(15.01e9 / (0.85 * 2e12), rel=0.15)
    assert found.evidence["weakest"] == "fitted"


def test_a_cut_last_line_is_left_out_and_any_other_is_refused(tmp_path):
    """An interrupted bench loses its last case only."""
    lines = [to_line(RUN), *map(to_line, timed(linears(SHAPES[:1]), TRUTH))]
    path = tmp_path / "m.jsonl"
    path.write_text("\n".join([*lines, lines[-1][:50]]), encoding="utf-8")
    assert len(load_measurements([path])[1]) == len(ROWS)
    path.write_text("\n".join([lines[0], lines[1][:50], *lines[2:]]), encoding="utf-8")
    with pytest.raises(ProfileError, match=r"m\.jsonl:2"):
        load_measurements([path])


@pytest.mark.parametrize("samples", [(), (0.0,), (-1.0,), (float("nan"),), (float("inf"),)])
def test_measurements_without_a_usable_time_are_refused(tmp_path, samples):
    """A time is positive and finite."""
    path = tmp_path / "m.jsonl"
    path.write_text(
        "\n".join([to_line(RUN), to_line(replace(linear(8, 8, 1), samples_s=samples))]), encoding="utf-8"
    )
    with pytest.raises(ProfileError, match="no usable samples"):
        load_measurements([path])


def test_a_calibration_says_what_it_does_not_cover():
    """Fitted in bf16 and asked for fp8: the linear layers are plain roofline, and listed as such."""
    from rooflinekit.precision import precision
    from rooflinekit.prediction import predict_step
    from rooflinekit.target import Target
    from rooflinekit.transformer import Load

    found = calibrate_cases([RUN], timed(linears(), TRUTH), device(), "c", own_profile=False)
    wide = replace(device(), peak={"bf16": Cited(3e14, "datasheet", ""), "fp8": Cited(6e14, "datasheet", "")})
    on = calibrated(machine(wide), found)
    ask = [
        predict_step(on, Target(find_llm("llama-3.1-8b"), precision(n)), wide, Load(1.0, 10.0), found)
        for n in ("bf16", "fp8")
    ]
    assert "linear" not in ask[0].evidence["without_calibration"]
    assert "attention" in ask[0].evidence["without_calibration"]
    assert "linear" in ask[1].evidence["without_calibration"]
