"""Measurement files: what is kept, what is refused, and the bandwidth of the moment."""

import json
from dataclasses import replace

import pytest

from rooflinekit.app import calibrate
from rooflinekit.errors import CalibrationError, ProfileError, RooflineError
from rooflinekit.fitting import calibrate_cases, fastest_roof, usable
from rooflinekit.hardware import machine
from rooflinekit.local_profile import local_profile
from rooflinekit.measurement import Measurement, Run, cleanest, fold, median_interval, sweep_of, with_drift
from rooflinekit.measurement_file import load, to_line
from rooflinekit.work import work_time_s

CPU = {"kind": "cpu", "name": "planted", "capacity_bytes": 16e9, "units": 2}
RUN = Run(id="r", started="2026-11-29T10:00:00+00:00", device=CPU, environment={})


def read(sweep, rate, *, clean=True, attempt=0, run="r"):
    """A read probe of 100 MB beside a sweep."""
    return Measurement(
        id=f"{run}/read/{sweep}",
        kind="read",
        dtype="bf16",
        shape={"bytes": 100_000_000, "beside": sweep},
        samples_s=(1e8 / rate,) * 3,
        weight_bytes=1e8,
        clean=(clean,) * 3,
        attempt=attempt,
    )


def linear(sweep, rows, seconds, *, clean=True, attempt=0, run="r"):
    """A matrix of 4096 x 4096 in bf16."""
    return Measurement(
        id=f"{run}/{sweep}/rows={rows}",
        kind="linear",
        dtype="bf16",
        shape={"rows": rows, "out": 4096, "inner": 4096},
        samples_s=(seconds,) * 3,
        weight_bytes=4096 * 4096 * 2.0,
        flops=2.0 * rows * 4096 * 4096,
        clean=(clean,) * 3,
        attempt=attempt,
    )


def test_probe_and_cases_are_of_one_sweep():
    """The probe beside a sweep has an id of its own and belongs to it."""
    assert sweep_of(read("linear/a", 1e9)) == sweep_of(linear("linear/a", 8, 1.0)) == "r/linear/a"
    assert sweep_of(linear("linear/b", 8, 1.0)) == "r/linear/b"


def test_the_cleaner_attempt_is_kept_whole():
    """A repeated sweep replaces probe and cases together, even where one case of the first try was clean."""
    first = [
        read("linear/a", 50e9, clean=False),
        linear("linear/a", 1, 2e-3, clean=False),
        linear("linear/a", 8, 2e-3),
    ]
    second = [
        read("linear/a", 30e9, attempt=1),
        linear("linear/a", 1, 1e-3, attempt=1),
        linear("linear/a", 8, 1e-3, attempt=1),
    ]
    other = [linear("linear/b", 1, 5e-3)]
    kept = cleanest([*first, *other, *second])
    assert {case.attempt for case in kept if sweep_of(case) == "r/linear/a"} == {1}
    assert len(kept) == 4
    assert cleanest(kept + kept) == kept


def test_a_case_is_judged_by_the_read_of_its_own_sweep():
    """Memory at half its usual rate while b was measured, and at 1.5 times while c was."""
    cases = [
        *(read(f"linear/{name}", rate) for name, rate in (("a", 40e9), ("b", 20e9), ("c", 60e9))),
        *(linear(f"linear/{name}", 1, 1e-3) for name in "abcd"),
    ]
    factors = {case.id: case.bandwidth_factor for case in with_drift([RUN], cases)}
    assert [factors[f"r/linear/{name}/rows=1"] for name in "abcd"] == pytest.approx([1.0, 0.5, 1.5, 1.0])
    against = with_drift([RUN], cases, 20e9)
    assert {c.id: c.bandwidth_factor for c in against}["r/linear/a/rows=1"] == 2.0


def test_a_disturbed_probe_and_an_accelerator_move_nothing():
    """What other programs took from a probe is no bandwidth; an accelerator's memory is not shared."""
    cases = [read("linear/a", 40e9), read("linear/b", 9e9, clean=False), linear("linear/b", 1, 1e-3)]
    assert {case.bandwidth_factor for case in with_drift([RUN], cases)} == {1.0}
    gpu = replace(RUN, device={"kind": "cuda"})
    moved = [read("linear/a", 40e9), read("linear/b", 9e9), linear("linear/b", 1, 1e-3)]
    assert {case.bandwidth_factor for case in with_drift([gpu], moved)} == {1.0}


def test_disturbed_and_impossible_cases_are_left_out_and_counted():
    """One undisturbed possible case of three stays."""
    base = machine(local_profile([RUN], [read("a", 40e9)]))
    cases = [
        linear("linear/a", 1, 1e-3),
        linear("linear/a", 2, 1e-3, clean=False),
        linear("linear/a", 3, 1e-5),
    ]
    kept, reasons = usable(cases, fastest_roof(base, [read("a", 40e9)]))
    assert [case.width for case in kept] == [1.0]
    assert reasons == {"disturbed": 1, "faster than the roof": 1}


def test_the_roof_is_the_best_single_sample():
    """A probe's median may hide what the memory gave once; no time under that is impossible."""
    probe = replace(read("a", 40e9), samples_s=(1e8 / 40e9, 1e8 / 40e9, 1e8 / 60e9))
    base = machine(local_profile([RUN], [probe]))
    assert base.bandwidth_bytes_per_s == pytest.approx(40e9)
    assert fastest_roof(base, [probe]).bandwidth_bytes_per_s == pytest.approx(60e9)


def planted_sweep(name, inner, rate, moment, rows=(1, 2, 4, 8, 16, 32)):
    """A sweep of a memory-bound kernel (80 % of the bandwidth of its moment) and the probe beside it."""
    sweep = f"linear/{name}"
    cases = [read(sweep, rate * moment)]
    for m in rows:
        moved = 4096 * inner * 2.0
        one = linear(sweep, m, moved / (0.8 * rate * moment))
        shape = {"rows": m, "out": 4096, "inner": inner}
        cases.append(replace(one, shape=shape, weight_bytes=moved, flops=2.0 * m * 4096 * inner))
    return cases


def test_a_kernel_that_follows_the_memory_is_fitted_at_its_moment():
    """Memory that moved by a factor of three between sweeps does not spoil the fit, and the file says why."""
    moments = {"a": (2048, 0.6), "b": (4096, 1.0), "c": (8192, 1.8), "d": (3072, 1.2)}
    cases = [case for name, (inner, m) in moments.items() for case in planted_sweep(name, inner, 40e9, m)]
    hardware = local_profile([RUN], cases)
    cases = with_drift([RUN], cases, hardware.bandwidth.value)
    found = calibrate_cases([RUN], cases, hardware, "c", own_profile=True)
    (fit,) = [fit for fit in found.fits if fit.kind == "linear"]
    assert fit.follows_bandwidth
    assert float(fit.ceiling.memory_efficiency) == pytest.approx(0.8, rel=0.02)
    assert fit.held_out.median_abs_error < 0.01


def test_a_kernel_that_ignores_the_memory_is_fitted_as_if_it_had_not_moved():
    """The same probes, but times that depend on bytes alone."""
    moments = {"a": (2048, 0.6), "b": (4096, 1.0), "c": (8192, 1.8), "d": (3072, 1.2)}
    cases = []
    for name, (inner, moment) in moments.items():
        probe, *_ = planted_sweep(name, inner, 40e9, moment)
        cases += [probe, *planted_sweep(name, inner, 20e9, 1.0)[1:]]
    hardware = local_profile([RUN], cases)
    found = calibrate_cases([RUN], with_drift([RUN], cases), hardware, "c", own_profile=True)
    (fit,) = [fit for fit in found.fits if fit.kind == "linear"]
    assert not fit.follows_bandwidth
    assert fit.held_out.median_abs_error < 0.01


def test_a_kind_that_was_disturbed_is_not_fitted_and_named():
    """Attention measured beside another program is left out with a warning, linears stay."""
    moments = {"a": (2048, 1.0), "b": (4096, 1.0), "c": (8192, 1.0)}
    cases = [case for name, (inner, m) in moments.items() for case in planted_sweep(name, inner, 40e9, m)]
    heads = {"batch": 1, "heads": 32, "kv_heads": 8, "head_dim": 64}
    cases += [
        Measurement(
            id=f"r/attention/{context}/width={width}",
            kind="attention",
            dtype="bf16",
            shape={**heads, "context": context, "width": width},
            samples_s=(1.0,) * 3,
            kv_bytes=1e6,
            clean=(False,) * 3,
        )
        for context in (1024, 4096)
        for width in (1, 2, 4, 8)
    ]
    found = calibrate_cases([RUN], cases, local_profile([RUN], cases), "c", own_profile=True)
    assert {fit.kind for fit in found.fits} == {"linear"}
    assert found.left_out["disturbed"] == 8
    assert any(warning.startswith("attention: not fitted") for warning in found.warnings)


def test_wholly_disturbed_linears_are_fitted_with_a_warning():
    """Nothing works without linears: they are used all the same, and the calibration says contended."""
    cases = [
        case for n, k in (("a", 2048), ("b", 4096), ("c", 8192)) for case in planted_sweep(n, k, 40e9, 1.0)
    ]
    cases = [replace(case, clean=(False,) * 3) for case in cases]
    found = calibrate_cases([RUN], cases, local_profile([RUN], cases), "c", own_profile=True)
    assert found.contended
    assert any(warning.startswith("linear: most cases were disturbed") for warning in found.warnings)


def test_no_probe_is_no_profile():
    """A profile of this machine needs to know its bandwidth."""
    with pytest.raises(CalibrationError, match="no read probe"):
        local_profile([RUN], [linear("linear/a", 1, 1e-3)])


def test_a_file_is_read_back_as_it_was_written(tmp_path):
    """Every field but the derived factor of the moment."""
    path = tmp_path / "m.jsonl"
    cases = [read("linear/a", 40e9, attempt=1), linear("linear/a", 8, 1e-3, attempt=1)]
    path.write_text("\n".join(to_line(record) for record in (RUN, *cases)) + "\n")
    runs, found = load(path)
    assert runs == [RUN]
    assert found == cases
    assert "bandwidth_factor" not in path.read_text()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"samples_s": []}, "no usable samples"),
        ({"samples_s": [0.0]}, "no usable samples"),
        ({"samples_s": "fast"}, "samples_s"),
        ({"flops": -1.0}, "negative"),
        ({"flops": True}, "flops"),
        ({"id": 3}, "id"),
        ({"shape": {}}, "does not say its rows"),
        ({"shape": {"rows": 1, "out": "x", "inner": 2}}, "does not say its out"),
        ({"ratio": ["x"]}, "ratio"),
        ({"colour": 1}, "colour"),
        ({"schema": 7}, "schema 7"),
        ({"record": "song"}, "neither a run nor a case"),
    ],
)
def test_a_changed_case_is_refused_with_its_line(tmp_path, change, said):
    """One sentence that names file, line and what is wrong."""
    path = tmp_path / "m.jsonl"
    case = json.loads(to_line(linear("linear/a", 8, 1e-3))) | change
    path.write_text(
        to_line(RUN) + "\n" + json.dumps(case) + "\n" + to_line(linear("linear/a", 9, 1e-3)) + "\n"
    )
    with pytest.raises(ProfileError, match=r"m\.jsonl:2: ") as caught:
        load(path)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_last_line_cut_by_an_interruption_is_left_out(tmp_path):
    """Ctrl-C in the middle of a write costs one case, not the file."""
    path = tmp_path / "m.jsonl"
    whole = to_line(linear("linear/a", 8, 1e-3))
    path.write_text(to_line(RUN) + "\n" + whole + "\n" + whole[:40])
    assert len(load(path)[1]) == 1


def test_the_interval_of_a_median_has_the_ranks_of_the_paper():
    """n = 100: ranks 41 and 61; few samples give their whole range."""
    assert median_interval([float(i) for i in range(1, 101)]) == (41.0, 61.0)
    assert median_interval([3.0, 1.0, 2.0]) == (1.0, 3.0)


def test_a_hash_divides_evenly():
    """A thousand shapes fall on both sides of a split at one third."""
    share = sum(fold(f"linear bf16 inner={i}") < 1 / 3 for i in range(1000)) / 1000
    assert 0.28 < share < 0.39


def test_works_of_cases_are_those_of_the_model():
    """The time of a measured case is the time of the work it carries."""
    base = machine(local_profile([RUN], [read("a", 40e9)]))
    case = linear("linear/a", 1, 1e-3)
    assert work_time_s(case.work, base) == pytest.approx(4096 * 4096 * 2 / 40e9)


def test_measurements_of_another_device_are_refused_as_a_base(tmp_path):
    """34 GB/s is no H100; on the profile made of them, memory that moved by a half is fine."""
    path = tmp_path / "m.jsonl"
    moments = {"a": (2048, 0.8), "b": (4096, 1.0), "c": (8192, 1.5)}
    cases = [case for name, (inner, m) in moments.items() for case in planted_sweep(name, inner, 34e9, m)]
    path.write_text("\n".join(to_line(record) for record in (RUN, *cases)) + "\n")
    with pytest.raises(RooflineError, match=r"not the same device.*--base auto"):
        calibrate([path], base="h100-sxm")
    assert calibrate([path]).profile.name == "local"
