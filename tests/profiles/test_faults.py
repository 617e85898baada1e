"""Whatever is wrong with a hardware file: every fault, its line, one error, nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooflinekit.errors import ProfileError
from rooflinekit.evidence import Cited
from rooflinekit.profiles.checks import check_hardware
from rooflinekit.profiles.hardware_file import load_hardware
from rooflinekit.profiles.library import find_hardware, hardware_folder

GOOD = """\
schema: 1
name: my-card
title: My Card
vendor: ACME
architecture: One
aliases: [card]
capacity: {value: 80 GiB, kind: measured, ref: driver}
visible_capacity: {value: 79 GiB, kind: measured, ref: driver}
bandwidth: {value: 2 TB/s, kind: datasheet, ref: page 1}
peak:
  bf16: {value: 400 TFLOP/s, kind: datasheet, ref: page 2}
  fp8: {value: 800 TFLOP/s, kind: datasheet, ref: page 2}
units: {value: 100, kind: datasheet, ref: page 1}
notes:
  - a note
"""


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "my-card.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def faults(path, **options):
    with pytest.raises(ProfileError) as caught:
        load_hardware(path, **options)
    return [line.removeprefix(f"{path}:") for line in str(caught.value).splitlines()]


def test_the_good_file_is_good(write):
    hardware = load_hardware(write(GOOD), named_as_file=True)
    assert (hardware.bandwidth, hardware.aliases) == (Cited(2e12, "datasheet", "page 1"), ("card",))
    assert check_hardware(hardware) == []


def test_five_faults_are_reported_together(write):
    text = (
        GOOD.replace("2 TB/s", "2e12")
        .replace("400 TFLOP/s", "400 TB/s")
        .replace("fp8: {value: 800", "fp8: {valeu: 800")
        .replace("title: My Card", "title: 2024-01-01")
        .replace("units:", "unitz:")
    )
    assert faults(write(text)) == [
        "3: title: '2024-01-01' is read by YAML as a date; write it in quotes",
        "9: bandwidth.value: '2e12' has no unit; write it like '3.35 TB/s'",
        "11: peak.bf16.value: '400 TB/s' is not in FLOP/s; write it like '989.4 TFLOP/s'",
        "12: peak.fp8.valeu: is not a field here; did you mean value?",
        "12: peak.fp8.value: is missing; add it",
        "13: unitz: is not a field here; did you mean units?",
    ]


@pytest.mark.parametrize(
    ("old", "new", "line", "field", "says"),
    [
        ("schema: 1\n", "", 1, "schema", "is missing"),
        ("schema: 1", "schema: 2", 1, "schema", "upgrade rooflinekit"),
        ("name: my-card", "name: My_Card", 2, "name", "kebab-case"),
        ("name: my-card", "name: other-card", 2, "name", "not the name of the file; write my-card"),
        ("[card]", "[Card X]", 6, "aliases[0]", "kebab-case"),
        ("[card]", "[my-card]", 6, "aliases[0]", "there already"),
        ("[card]", "[card, card]", 6, "aliases[1]", "there already"),
        ("[card]", "card", 6, "aliases", "write a list"),
        ("80 GiB", "80e9", 7, "capacity.value", "no unit; write it like '80 GB'"),
        ("80 GiB", "80 kB", 7, "capacity.value", "not within 1 MB to 100 TB"),
        ("79 GiB", "81 GiB", 8, "visible_capacity", "larger than capacity"),
        ("2 TB/s", "2 EB/s", 9, "bandwidth.value", "not within 1 GB/s to 1 PB/s"),
        ("2 TB/s", "-2 TB/s", 9, "bandwidth.value", "not within"),
        ("2 TB/s", "2000000000000", 9, "bandwidth.value", "has no unit"),
        (
            "2 TB/s, kind: datasheet",
            "2 TB/s, kind: guess",
            9,
            "bandwidth.kind",
            "assumed, datasheet, fitted or measured",
        ),
        ("ref: page 1}\npeak", 'ref: ""}\npeak', 9, "bandwidth.ref", "is empty"),
        ("ref: page 1}\npeak", "ref: 17}\npeak", 9, "bandwidth.ref", "a number"),
        ("bandwidth: {", "bandwidth: {vlaue: 3, ", 9, "bandwidth.vlaue", "did you mean value?"),
        ("  bf16:", "  bf61:", 11, "peak.bf61", "did you mean bf16"),
        ("400 TFLOP/s", "400 TFLOPS", 11, "peak.bf16.value", "not in FLOP/s"),
        ("400 TFLOP/s", "400 MFLOP/s", 11, "peak.bf16.value", "not within 1 GFLOP/s"),
        ("  fp8:", "  bf16:", 12, "peak.bf16", "written twice (first in line 11)"),
        ("value: 100,", "value: 100.5,", 13, "units.value", "whole number"),
        ("  - a note", "  - 3", 15, "notes[0]", "a number"),
        ("notes:", "vendor: B\nnotes:", 14, "vendor", "written twice (first in line 4)"),
    ],
)
def test_one_fault_gives_one_line(write, old, new, line, field, says):
    assert GOOD.count(old) >= 1
    (fault,) = faults(write(GOOD.replace(old, new, 1)), named_as_file=True)
    assert fault.startswith(f"{line}: {field}: ")
    assert says in fault


@pytest.mark.parametrize("field", ["name", "title", "vendor", "architecture", "capacity", "bandwidth"])
def test_required_fields_are_named(write, field):
    text = "".join(line for line in GOOD.splitlines(keepends=True) if not line.startswith(f"{field}:"))
    assert f"1: {field}: is missing; add it" in faults(write(text))


def test_an_empty_peak_is_allowed(write):
    start, end = GOOD.index("peak:"), GOOD.index("units:")
    hardware = load_hardware(write(GOOD[:start] + "peak: {}\n" + GOOD[end:]))
    assert hardware.peak == {}
    assert "note: no bf16" in check_hardware(hardware)[0]


@given(st.binary(max_size=400))
@settings(max_examples=150, deadline=None)
def test_random_bytes_raise_nothing_else(tmp_path_factory, raw):
    path = tmp_path_factory.getbasetemp() / "fuzz.yaml"
    path.write_bytes(raw)
    with pytest.raises(ProfileError):
        load_hardware(path)


SNIPPETS = ["value", "kind", "ref", "peak", "name", "&a", "*a", "!!int ", "<<", "{", "}", "[", "]", ": ", "- ", "? ", "\n", "\n  ", "\t", "|", ">", "'", '"', "#", "---", "...", "%YAML 9.9", "1e9", "\\U00110000", "0x", "é", "\0", "\u2028"]  # fmt: skip


@given(st.lists(st.sampled_from(SNIPPETS), max_size=40).map("".join), st.integers(0, len(GOOD)))
@settings(max_examples=250, deadline=None)
def test_spoilt_files_raise_nothing_else(tmp_path_factory, piece, position):
    path = tmp_path_factory.getbasetemp() / "spoilt.yaml"
    path.write_bytes((GOOD[:position] + piece + GOOD[position:]).encode())
    try:
        load_hardware(path)
    except ProfileError as error:
        assert str(error).startswith(str(path))  # noqa: PT017 - it may also load


def with_peak(hardware, **rates):
    peak = {name: Cited(rate * 1e12, "datasheet", "x") for name, rate in rates.items()}
    return replace(hardware, peak={**hardware.peak, **peak})


@pytest.mark.parametrize(
    ("name", "rates", "says"),
    [
        ("h100-sxm", {"bf16": 1979, "fp16": 1979}, "is peak.bf16 the rate with sparsity"),
        ("h100-sxm", {"fp8": 3958}, "is peak.fp8 the rate with sparsity"),
        ("h100-sxm", {"bf16": 1979, "fp16": 1979, "tf32": 989, "fp8": 3958, "int8": 3958}, "4096 dense"),
        ("rtx-4090", {"bf16": 330.4, "fp16": 330.4}, "512 dense"),
        ("h100-sxm", {"bf16": 0.9894}, "ridge point"),
        ("h100-sxm", {"fp16": 267.6}, "peak.fp16 is"),
        ("l40s", {"tf32": 366}, "is peak.tf32 the rate with sparsity"),
    ],
)
def test_traps_are_found(name, rates, says):
    findings = check_hardware(with_peak(find_hardware(name), **rates))
    assert any(says in finding for finding in findings), findings
    assert not all(finding.startswith("note:") for finding in findings)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"capacity": Cited(80e9, "datasheet", "x")}, "note: capacity is exactly 80 GB"),
        ({"bandwidth": Cited(3.35 * 2**40, "datasheet", "x")}, "round only in binary units"),
        ({"bandwidth": Cited(3.352e9, "datasheet", "x")}, "ridge point"),
    ],
)
def test_slips_of_unit_are_found(change, says):
    findings = check_hardware(replace(find_hardware("h100-sxm"), **change))
    assert any(says in finding for finding in findings), findings


def test_a_measured_cpu_may_have_a_low_ridge():
    cpu = find_hardware("l40s")
    slow = replace(cpu, peak={"bf16": Cited(0.5e12, "measured", "x")}, bandwidth=Cited(5e10, "measured", "x"))
    (finding,) = check_hardware(slow)
    assert finding.startswith("note: the bf16 ridge point is 10 FLOP/B")


def test_other_vendors_may_run_eight_bits_at_the_bf16_rate():
    tpu = replace(
        find_hardware("h100-sxm"), vendor="Google", title="TPU v9", architecture="TPU v9", units=None
    )
    findings = check_hardware(with_peak(tpu, bf16=918, fp16=918, tf32=459, fp8=918, int8=1836))
    assert findings == ["note: peak.fp8 is 1 times peak.bf16, usually 2; keep it if the vendor says so"]


def test_shipped_files_have_no_fault_when_read_as_text():
    for path in hardware_folder().glob("*.yaml"):
        text = path.read_text(encoding="utf-8")
        assert "\t" not in text
        assert text.isascii()
