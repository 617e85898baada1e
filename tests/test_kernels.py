"""Public kernel tables: what the reader makes of them, the forms, the shipped calibrations, and planted faults."""

import gzip
import math
import os
from dataclasses import asdict, replace

import numpy as np
import pytest

import rooflinekit as rk
from rooflinekit import app, kernel_suite, published
from rooflinekit.calibration import calibrated
from rooflinekit.ceiling import Ceiling, ColumnFactors, RowFactors
from rooflinekit.errors import DeviceError, ProfileError, RooflineError
from rooflinekit.foreign_suite import foreign
from rooflinekit.hardware import machine
from rooflinekit.held_out import falls_in_fit
from rooflinekit.kernel_forms import FORMS, choose, fit_form
from rooflinekit.kernel_scope import in_scope
from rooflinekit.kernel_suite import Subject, kernel_report
from rooflinekit.measurement import Measurement
from rooflinekit.profiles.calibration_file import (
    calibration_text,
    calibrations_folder,
    load_calibration,
    shipped_calibration,
)
from rooflinekit.profiles.library import find_hardware
from rooflinekit.published import SHIPPED, calibrations_of, slice_tables, subjects_of
from rooflinekit.readers import kernel_tables
from rooflinekit.readers.aiconfigurator import measurements, weight_copies
from rooflinekit.readers.kernel_slice import FILE, read_slice, write_slice
from rooflinekit.readers.kernel_tables import DEVICES, Table, installed
from rooflinekit.readers.routing_law import touched
from rooflinekit.work import Work, work_time_s

needs_tables = pytest.mark.skipif(not installed(), reason="needs aiconfigurator-core and pyarrow")
DEVICE_NAMES = [DEVICES[system] for system in SHIPPED]
H100 = machine(find_hardware("h100-sxm"))


# --- the reader


def table(name, record, *, stack="vllm", system="h100_sxm", version="1.0"):
    return Table(name, system, stack, version, ({"kernel_source": "k", **record},))


def test_a_linear_row_is_in_si_with_its_own_bytes():
    """4096 x 8192 in bf16 at 3 rows, 0.02 ms: bytes and FLOPs by hand; six copies of 67 MB."""
    (case,) = measurements(
        table("gemm", {"gemm_dtype": "bfloat16", "m": 3, "n": 4096, "k": 8192, "latency": 0.02})
    )
    assert case.median_s == 2e-5
    assert case.weight_bytes == 4096 * 8192 * 2
    assert case.activation_bytes == 3 * (4096 + 8192) * 2
    assert case.flops == 2 * 3 * 4096 * 8192
    assert case.footprint_bytes == 6 * case.weight_bytes
    assert (case.kind, case.dtype, case.inner) == ("linear", "bf16", 8192.0)


@pytest.mark.parametrize(
    ("stack", "version", "weights", "copies"),
    [
        ("trtllm", "1.3.0rc20", 10e6, 5),
        ("trtllm", "1.3.0rc20", 30e6, 2),
        ("trtllm", "1.3.0rc20", 60e6, 1),
        ("vllm", "0.24.0", 1e9, 6),
        ("sglang", "0.5.14", 1e9, 6),
        ("sglang", "0.5.6.post2", 1e9, 1),
    ],
)
def test_weight_copies_follow_the_collectors(stack, version, weights, copies):
    """A cache of 50 MB."""
    assert weight_copies(stack, version, weights, 50e6) == copies


def test_messages_of_an_all_reduce_count_elements():
    """1024 elements are 2048 bytes, of which a ring of four moves 2 x 3/4."""
    (case,) = measurements(table("custom_allreduce", {"num_gpus": 4, "message_size": 1024, "latency": 0.005}))
    assert case.shape["message_bytes"] == 2048
    assert case.activation_bytes == 3072
    assert case.groups == 3.0


def test_a_decode_row_reads_the_cache_once():
    """Eight sequences of 1024 tokens, 32 heads over 8: the cache is counted per KV head, not per query head."""
    record = {
        "attn_dtype": "bfloat16",
        "kv_cache_dtype": "bfloat16",
        "batch_size": 8,
        "step": 1023,
        "num_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "window_size": 0,
        "latency": 0.03,
    }
    (case,) = measurements(table("generation_attention", record))
    assert case.kv_bytes == 8 * 1024 * 2 * 8 * 128 * 2
    assert case.groups == 64.0
    assert measurements(table("generation_attention", {**record, "window_size": 128})) == []


def test_a_row_of_latent_attention_reads_one_latent_for_all_heads():
    """DeepSeek's 512 + 64 elements a token; scores over 576, values over 512 of each head."""
    record = {
        "mla_dtype": "bfloat16",
        "kv_cache_dtype": "bfloat16",
        "batch_size": 8,
        "step": 1023,
        "num_heads": 128,
        "latency": 0.03,
    }
    (case,) = measurements(table("generation_mla", record))
    assert (case.kind, case.rows, case.groups) == ("latent", 128.0, 8.0)
    assert case.kv_bytes == case.footprint_bytes == 8 * 1024 * 1152
    assert case.flops == 2 * 8 * 128 * 1024 * (576 + 512)
    assert measurements(table("generation_mla", {**record, "kv_cache_dtype": "fp8"})) == []
    shipped = app.predict("deepseek-v3", "h200-sxm", stack="sglang", dtype="fp8", kv_dtype="bf16", tp=8)
    (line,) = [one for one in shipped.breakdown if one.kind == "latent"]
    assert line.label == "attention"


def test_latent_attention_falls_back_on_the_attention_of_a_decode():
    """A machine that was measured at grouped queries only."""
    on = replace(H100, ceilings={("attention", "*"): Ceiling(t0_s=5e-6)})
    assert on.ceiling("latent", "bf16").t0_s == 5e-6


def test_routing_laws():
    """128 experts, top 8, as counted independently for these tables: 48/65/107/115, against 51.6/82/112/126 uniform."""
    quotas = [touched(128, 8, tokens, "power_law_1.01") for tokens in (8, 16, 32, 64)]
    assert quotas == pytest.approx([48, 65, 107, 115], abs=1.5)
    assert [touched(128, 8, tokens, "balanced") for tokens in (8, 16, 32, 64)] == [64, 128, 128, 128]
    assert touched(8, 2, 64, "power_law_1.2") <= 8


def test_experts_without_a_gate_have_two_matrices():
    """Nemotron's layers: with three, some of their rows would beat the roof by a quarter."""
    record = {
        "moe_dtype": "bfloat16",
        "num_tokens": 4,
        "hidden_size": 2688,
        "inter_size": 1856,
        "topk": 6,
        "num_experts": 128,
        "moe_tp_size": 1,
        "moe_ep_size": 1,
        "distribution": "balanced",
        "latency": 0.2,
    }
    (case,) = measurements(table("moe", record))
    assert case.weight_bytes == 24 * 2 * 2688 * 1856 * 2
    assert case.rows == 1.0
    assert measurements(table("moe", {**record, "moe_ep_size": 8})) == []


def test_resident_rows_are_kept_apart():
    """One copy of 67 MB lies between one and two caches of the H100: neither cold nor compared."""
    (case,) = measurements(
        table(
            "gemm",
            {"gemm_dtype": "bfloat16", "m": 1, "n": 4096, "k": 8192, "latency": 0.03},
            stack="trtllm",
        )
    )
    scoped = in_scope([case], H100, "trtllm", find_hardware("h100-sxm").l2.value)
    assert scoped.cases == ()
    assert scoped.resident == (case,)
    assert scoped.left_out == {"resident in the cache": 1}


def test_a_missing_package_is_named(monkeypatch):
    """What to install stands in the message."""
    monkeypatch.setattr(kernel_tables.util, "find_spec", lambda *_: None)
    with pytest.raises(DeviceError, match="pip install"):
        kernel_tables.data_folder()
    assert not installed()


def test_the_slice_round_trips(tmp_path):
    """Equal rows, an equal file, and the attribution in its head."""
    tables = read_slice()
    path = tmp_path / "slice.csv.gz"
    write_slice(tables, path)
    assert path.read_bytes() == FILE.read_bytes()
    with gzip.open(path, "rt") as stream:
        assert "Apache-2.0" in stream.read(400)


# --- forms


def planted(kind, ceiling, n=6):
    """Linears with the times of a ceiling, 2 % noise."""
    rng = np.random.default_rng(0)
    found = []
    for out in (2048, 4096, 6144, 8192, 12288, 16384)[:n]:
        for inner in (2048, 5120, 8192, 14336):
            for rows in (1, 2, 4, 8, 16, 17, 32, 64, 65, 128, 129, 256):
                case = Measurement(
                    id=f"p/{out} {inner} {rows}",
                    kind=kind,
                    dtype="bf16",
                    shape={"rows": rows, "out": out, "inner": inner},
                    samples_s=(1.0,),
                    weight_bytes=2.0 * out * inner,
                    activation_bytes=2.0 * rows * (out + inner),
                    flops=2.0 * rows * out * inner,
                )
                exact = float(work_time_s(case.work, replace(H100, ceilings={(kind, "*"): ceiling})))
                found.append(replace(case, samples_s=(exact * math.exp(0.02 * rng.standard_normal()),)))
    return found


def test_terms_that_were_planted_are_chosen_and_come_back():
    """A cost per inner element and a step at 65 rows."""
    truth = Ceiling(
        t0_s=4e-6,
        memory_efficiency=0.85,
        compute_efficiency=0.7,
        p=2.5,
        inner_s=1e-9,
        factors=RowFactors((1.0, 64.0, 65.0, 256.0), (1.0, 1.0, 1.25, 1.25)),
    )
    cases = planted("linear", truth)
    form, _ = choose(cases, H100)
    assert form.by_rows
    assert "inner_s" in form.terms
    assert form.columns == ""
    found, standard = fit_form(form, cases, H100)
    assert found.inner_s == pytest.approx(1e-9, rel=0.15)
    assert found.factors is not None
    assert found.factors.at(65.0) / found.factors.at(64.0) == pytest.approx(1.25, rel=0.03)
    assert standard["memory_efficiency"] < 0.05


@pytest.mark.parametrize("between", [True, False])
def test_planted_steps_in_the_columns_are_chosen_and_come_back(between):
    """Columns that rise one after the other hold between measured ones; columns without an order do not."""
    columns = (2048.0, 4096.0, 6144.0, 8192.0, 12288.0, 16384.0)
    band = (0.8, 0.88, 0.94, 1.0, 1.1, 1.2) if between else (1.3, 0.8, 1.25, 0.75, 1.3, 0.8)
    table = ColumnFactors((64.0,), columns, (band, band), between)
    truth = Ceiling(t0_s=4e-6, memory_efficiency=0.7, compute_efficiency=0.6, p=2.5, columns=table)
    cases = planted("linear", truth)
    form, _ = choose(cases, H100)
    assert form.columns == ("between" if between else "known")
    found, _ = fit_form(form, cases, H100)
    # Four shapes of each column: drawn to 1 by a fifth. A part of a slope goes into the other terms.
    low, high = (0, 5) if between else (3, 4)
    ratio = found.columns.at(1.0, columns[high]) / found.columns.at(1.0, columns[low])
    assert ratio == pytest.approx((band[high] / band[low]) ** 0.8, rel=0.08)
    assert (found.columns.at(1.0, 5000.0) == 1.0) is not between


def test_factors_by_columns_by_hand():
    """Bands end with their last row; between columns the logarithm counts; outside the ends go on."""
    table = ColumnFactors((64.0, 128.0), (1024.0, 4096.0), ((1.0, 1.2), (2.0, 2.2), (3.0, 3.2)))
    rows, columns = np.array([1.0, 64.0, 65.0, 129.0, 1.0]), np.array([1024.0, 2048.0, 4096.0, 1e6, 10.0])
    wanted = [1.0, 1.1, 2.2, 3.2, 1.0]
    assert table.at(rows, columns) == pytest.approx(wanted)
    pairs = zip(rows.tolist(), columns.tolist(), strict=True)
    assert [table.at(row, column) for row, column in pairs] == pytest.approx(wanted)
    assert table.at(rows, 2048.0) == pytest.approx([1.1, 1.1, 2.1, 3.1, 1.1])
    assert table.at(65.0, columns) == pytest.approx([2.0, 2.1, 2.2, 2.2, 2.0])
    known = replace(table, between=False)
    assert known.at(rows, columns) == pytest.approx([1.0, 1.0, 2.2, 1.0, 1.0])


def test_more_tokens_than_experts_take_the_larger_tile():
    """A factor from the first token past the number of experts on."""
    on = replace(H100, ceilings={("experts", "*"): Ceiling(crowded=1.5)})
    tokens = np.array([8.0, 128.0, 129.0])
    works = [Work("e", "experts", "bf16", 1.0, 0.0, 1e9, crowding=one / 128) for one in tokens.tolist()]
    one_by_one = [float(work_time_s(work, on)) for work in works]
    assert np.array(one_by_one) / one_by_one[0] == pytest.approx([1.0, 1.0, 1.5])
    together = work_time_s(Work("e", "experts", "bf16", 1.0, 0.0, 1e9, crowding=tokens / 128), on)
    assert together == pytest.approx(one_by_one)


def test_terms_that_were_not_planted_are_not_chosen():
    """The plain form stands."""
    truth = Ceiling(t0_s=4e-6, memory_efficiency=0.85, compute_efficiency=0.7, p=2.5)
    form, _ = choose(planted("linear", truth), H100)
    assert form.name == "p-norm"


def test_no_fitted_efficiency_passes_one():
    """Bounds of every form; and of every shipped number."""
    for forms in FORMS.values():
        for form in forms:
            ends = zip(form.terms, form.ranges(), strict=False)
            assert all(one.high <= 1.0 for name, one in ends if name.endswith("efficiency"))


# --- ceilings


def test_of_two_kernels_the_faster_one_counts():
    """An all-reduce in one shot wins for small messages, a ring for large ones."""
    ring = Ceiling(t0_s=10e-6, memory_efficiency=0.8)
    both = Ceiling(t0_s=3e-6, memory_efficiency=0.6, one_shot=True, other=ring)
    on = replace(H100, ceilings={("collective", "*"): both})

    def time(message):
        return float(
            work_time_s(Work("a", "collective", "*", 1.0, 0.0, 0.0, 0.0, 2 * 7 / 8 * message, groups=7.0), on)
        )

    link = H100.link_bytes_per_s
    assert time(1e4) == pytest.approx(3e-6 + 7e4 / (0.6 * link))
    assert time(1e8) == pytest.approx(10e-6 + 1.75e8 / (0.8 * link))


def test_attention_of_a_prompt_falls_back_on_that_of_a_decode():
    """A machine that was measured at decode only."""
    on = replace(H100, ceilings={("attention", "*"): Ceiling(t0_s=5e-6)})
    assert on.ceiling("prefill", "bf16").t0_s == 5e-6


# --- shipped calibrations


@pytest.mark.parametrize("name", DEVICE_NAMES)
def test_shipped_calibrations_say_what_they_are(name):
    """Data reference, split, errors on held-out rows; no efficiency above 1; formats of linears."""
    found = shipped_calibration(name)
    assert found is not None
    assert "aiconfigurator-core 0.12.0" in found.source
    assert found.fitted_share == 0.4
    kinds = {(fit.kind, fit.dtype) for fit in found.fits}
    wanted = {("linear", "bf16"), ("attention", "bf16"), ("prefill", "bf16"), ("experts", "bf16")}
    wanted |= {("linear", "fp8")} if name != "a100-sxm4-80gb" else set()
    assert wanted <= kinds
    for fit in found.fits:
        assert fit.ceiling.memory_efficiency <= 1.0
        assert fit.ceiling.compute_efficiency <= 1.0
        assert fit.held_out is None or fit.held_out.median_abs_error <= 0.2
        assert fit.kernel


def test_predictions_say_which_calibration_and_how_wrong_it_is():
    """The default is the shipped one; the datasheet stays; a stack is chosen by name."""
    one = app.predict("llama-3.1-8b", "h100-sxm")
    assert one.calibration == "h100-sxm5-80gb-vllm"
    assert one.low_s < one.step_s < one.high_s
    assert one.high_s / one.low_s < 1.5
    assert 0.0 < one.expected_error < 0.1
    assert one.evidence["by_term"]["ceilings"] == "fitted"
    assert app.predict("llama-3.1-8b", "h100-sxm", stack="trtllm").calibration == "h100-sxm5-80gb-trtllm"
    plain = app.predict("llama-3.1-8b", "h100-sxm", calibration="datasheet")
    assert plain.calibration == "datasheet"
    assert one.step_s > plain.step_s
    with pytest.raises(ProfileError, match="there are vllm"):
        app.predict("llama-3.1-8b", "h100-sxm", stack="nonesuch")
    with pytest.raises(RooflineError, match="leave out --calibration"):
        app.predict("llama-3.1-8b", "h100-sxm", stack="vllm", calibration="datasheet")
    with pytest.raises(ProfileError, match="no calibration is shipped"):
        app.predict("llama-3.1-8b", "mi300x", stack="vllm")


def test_the_workstation_edition_is_not_the_server_edition():
    """The tables were timed on the Server Edition: its memory is 11 % slower, and the other card has no calibration."""
    server, workstation = (find_hardware(f"rtx-pro-6000-blackwell-{one}") for one in ("server", "ws"))
    assert workstation.bandwidth.value / server.bandwidth.value == pytest.approx(28 / 24.962, rel=2e-3)
    assert shipped_calibration(server.name) is not None
    assert shipped_calibration(workstation.name) is None
    assert app.predict("llama-3.1-8b", workstation.name).calibration == "datasheet"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("rows: [17, 64]", "rows: [64, 17]", "is reversed"),
        ("rows: [17, 64]", "rows: [0, 64]", "rows"),
        ("last_rows: [64, 128, 256]", "last_rows: [64, 256, 128]", "do not rise"),
        ("last_rows: [64, 128, 256]", "last_rows: [64, 128]", "must be 3 lists"),
        ("stack: vllm", "stack: vlm", "'vlm' is not an engine stack"),
        ("memory_efficiency: 0.9", "memory_efficiency: 1.9", "more than the whole bandwidth"),
    ],
)
def test_slips_of_the_hand_in_a_shipped_file_are_refused(tmp_path, old, new, says):
    """One sentence with the line, and nothing is used."""
    text = (calibrations_folder() / "h200-sxm-141gb.yaml").read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / "c.yaml"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ProfileError, match=says):
        load_calibration(path)
    reason = text.replace("memory_efficiency: 0.9", "memory_efficiency: 1.9", 1)
    path.write_text(reason.replace("  form:", "  reason: a test\n  form:", 1), encoding="utf-8")
    assert load_calibration(path).fits[0].reason == "a test"


def test_collectives_are_fitted_where_they_were_measured():
    """Two ranks: the latency is no longer assumed."""
    ready = rk.setup("llama-3.1-8b", "h100-sxm", tp=2)
    assert ready.machine.evidence["collective latency"] == "fitted"


@pytest.mark.parametrize("path", sorted(calibrations_folder().glob("*.yaml")), ids=lambda path: path.name)
def test_shipped_files_are_written_as_they_are_read(path):
    """Nothing is lost on the way."""
    found = load_calibration(path)
    assert calibration_text(found, "rooflinekit 0.1.0") == path.read_text(encoding="utf-8")


# `make check` rebuilds the smallest; CI rebuilds all.
REBUILT = SHIPPED if os.environ.get("CI") else SHIPPED[:1]


def numbers(data):
    """All numbers of a nested structure, in order; efficiencies that carry no information are left out."""
    if isinstance(data, dict):
        return [one for key in sorted(data) if key != "standard_errors" for one in numbers(data[key])]
    if isinstance(data, list | tuple):
        return [one for item in data for one in numbers(item)]
    return [data] if isinstance(data, float) and math.isfinite(data) else []


@needs_tables
@pytest.mark.parametrize("system", REBUILT)
def test_shipped_calibrations_are_what_the_command_makes(system):
    """Every number to 0.5 %."""
    for place, made in enumerate(calibrations_of(system)):
        found = shipped_calibration(made.base, None if place == 0 else made.stack)
        assert found.stack == made.stack
        assert [(f.kind, f.dtype, f.form, f.n) for f in found.fits] == [
            (f.kind, f.dtype, f.form, f.n) for f in made.fits
        ]
        assert found.left_out == dict(made.left_out)
        for one, other in zip(found.fits, made.fits, strict=True):
            assert numbers(asdict(one)) == pytest.approx(numbers(asdict(other)), rel=5e-3, abs=5e-4)


@needs_tables
def test_the_slice_is_made_of_held_out_rows():
    """No row of the slice was fitted, and it is what the command writes."""
    shipped = [table for table in read_slice() if table.system == "a100_sxm"]
    made = slice_tables(["a100_sxm"])
    assert sum(len(table.records) for table in made) == sum(len(table.records) for table in shipped)
    for subject in subjects_of(read_slice()):
        share = subject.calibration.fitted_share
        assert not any(falls_in_fit(case, share) for case in subject.cases)


# --- the suites


@pytest.fixture(scope="module")
def subjects():
    return subjects_of(read_slice())


def failed(report):
    return {band.suite for band in report.bands if band.ok is False}


def test_the_slice_holds_what_the_calibrations_state(subjects):
    """Every judged part of every device and stack, and better than the datasheet wherever there are enough rows."""
    report = kernel_report(subjects, stated=True)
    assert failed(report) == set()
    assert report.passed
    judged = [band for band in report.bands if band.ok and " R(W)" not in band.suite]
    assert len({band.suite.split()[0] for band in judged}) == len(SHIPPED)
    assert all(band.median_abs_error < band.plain for band in judged)


def with_bandwidth(subject, factor):
    """The same overlay with every share of the bandwidth off by a factor."""
    fits = tuple(
        replace(fit, ceiling=replace(fit.ceiling, memory_efficiency=fit.ceiling.memory_efficiency * factor))
        for fit in subject.calibration.fits
    )
    return replace(subject, calibration=replace(subject.calibration, fits=fits))


@pytest.mark.parametrize("factor", [0.9, 1.1])
@pytest.mark.parametrize(
    "name", ["h100-sxm5-80gb", "h200-sxm-141gb", "l40s", "rtx-pro-6000-blackwell-server"]
)
def test_a_bandwidth_that_is_ten_percent_off_fails(subjects, name, factor):
    """A shipped overlay with this fault misses on linears of some stack."""
    mine = [with_bandwidth(one, factor) for one in subjects if one.hardware.name == name]
    assert any("linear" in suite for suite in failed(kernel_report(mine, stated=True)))


def test_one_expert_per_choice_fails_on_skewed_routing(subjects):
    """min(E, k rows) on rows whose routing is skewed counts up to half more experts than are read."""

    def disjoint(case):
        if case.kind != "experts" or case.shape["routing"] == "balanced":
            return case
        read = min(case.shape["experts"], case.shape["top_k"] * case.shape["rows"])
        weights = case.weight_bytes * read / case.shape["touched"]
        return replace(case, shape={**case.shape, "touched": read}, weight_bytes=weights)

    mine = [replace(one, cases=[disjoint(case) for case in one.cases]) for one in subjects]
    missed = {suite for suite in failed(kernel_report(mine, stated=True)) if " experts " in suite}
    assert len(missed) >= 5


def test_halved_bytes_of_an_all_reduce_fail(subjects):
    """Half of what a ring moves."""

    def halved(case):
        return (
            replace(case, activation_bytes=case.activation_bytes / 2) if case.kind == "collective" else case
        )

    mine = [replace(one, cases=[halved(case) for case in one.cases]) for one in subjects]
    assert {suite for suite in failed(kernel_report(mine, stated=True)) if "collective" in suite}


def test_a_cache_read_by_every_row_fails(subjects, monkeypatch):
    """Keys and values counted per query row: the prompts of the tables, and the long verify of the hand values."""

    def per_row(case):
        return replace(case, kv_bytes=case.kv_bytes * case.width) if case.kind == "prefill" else case

    mine = [replace(one, cases=[per_row(case) for case in one.cases]) for one in subjects]
    assert len({suite for suite in failed(kernel_report(mine, stated=True)) if "prefill" in suite}) >= 12
    from rooflinekit import mixers, suites

    real = mixers.attended
    monkeypatch.setattr(
        mixers, "attended", lambda load, window: (real(load, window)[0] * load.width, real(load, window)[1])
    )
    assert any("131072" in band.suite for band in suites.hand_values().bands if band.ok is False)


@needs_tables
def test_all_rows_of_a_device_meet_the_limits_of_its_linears():
    """The H100's TensorRT-LLM linears, in full, by the limits that were set before anything was fitted."""
    (subject,) = subjects_of([kernel_tables.read_table("h100_sxm", "gemm", "trtllm")])
    report = kernel_report([subject])
    assert failed(report) == set()
    judged = {(band.suite.split(" ", 2)[2], band.band) for band in report.bands if band.ok}
    assert ("linear bf16 >= 64 MB", "1-64") in judged
    assert ("linear bf16 R(W) >= 64 MB", "65-256") in judged
    assert report.left_out["resident in the cache"] > 0


def test_other_peoples_times_are_met_unfitted():
    """Linears of Llama-2 by vidur: within 12 % up to 64 rows, and twice as good as the datasheet."""
    report = foreign()
    assert report.passed
    assert sum(band.ok is True for band in report.bands) == 4


def test_a_calibration_that_is_off_fails_on_other_peoples_times(monkeypatch):
    """A quarter of the bandwidth missing."""
    from rooflinekit import foreign_suite

    def wrong(name):
        found = shipped_calibration(name)
        return with_bandwidth(Subject(found, find_hardware(name), ()), 0.75).calibration

    monkeypatch.setattr(foreign_suite, "shipped_calibration", wrong)
    assert not foreign_suite.foreign().passed


def test_suites_are_refused_with_a_reason():
    """--full belongs to the kernels."""
    with pytest.raises(RooflineError, match="always run in full"):
        app.validate_suite("hand-values", full=True)
    with pytest.raises(RooflineError, match="hand-values"):
        app.validate_suite("hand-value")
    assert app.validate_suite("foreign").passed


def test_unknown_kinds_are_counted(subjects):
    """Rows without a fit are not dropped silently."""
    one = subjects[0]
    bare = replace(one, calibration=replace(one.calibration, fits=one.calibration.fits[:1]))
    report = kernel_report([bare])
    assert report.left_out["no calibration of this kind"] > 0
    assert kernel_suite.predicted(list(one.cases)[:1], calibrated(H100, one.calibration)).shape == (1,)
    assert published.SOURCE.startswith("aiconfigurator-core")
