"""The shipped hardware files against numbers that this package did not make."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import MISSING, fields
from pathlib import Path

import pytest

from rooflinekit.hardware import CITED, Hardware, machine
from rooflinekit.profiles.checks import check_hardware
from rooflinekit.profiles.document import read_document
from rooflinekit.profiles.families import family_of
from rooflinekit.profiles.hardware_file import FIELDS, load_hardware
from rooflinekit.profiles.library import hardware_folder, hardware_names
from rooflinekit.profiles.schema import hardware_json_schema, schema_text

NAMES = hardware_names()

# Dense bf16 (fp16 before Ampere) FLOP per clock and unit, fp32 accumulation: vendors' whitepapers and ROCm
# pages. GeForce and A10G run half the rate of the professional part of the same die.
FLOP_PER_CLOCK = {
    1024: (
        "v100-sxm2-32gb",
        "t4",
        "a10",
        "rtx-a6000",
        "l4",
        "l40s",
        "rtx-6000-ada",
        "rtx-pro-6000-blackwell-ws",
        "rtx-pro-6000-blackwell-server",
    ),
    512: ("a10g", "rtx-3090", "rtx-4090", "rtx-5090", "rx-7900-xtx"),
    2048: ("a100-sxm4-40gb", "a100-sxm4-80gb", "a100-pcie-40gb", "a100-pcie-80gb", "mi300x", "mi325x"),
    4096: ("h100-sxm5-80gb", "h100-pcie-80gb", "h200-sxm-141gb", "gh200-96gb", "mi355x"),
}
IDENTITY = {name: rate for rate, names in FLOP_PER_CLOCK.items() for name in names} | {"mi250x-oam": 1024}

# Rated below the device's maximum clock: what 8192 FLOP per clock and SM imply (MHz).
IMPLIED_MHZ = {"b200-hgx-180gb": 1856, "gb200-per-gpu": 2008, "gb300-per-gpu": 2008}

# Rates over bf16 that are not the usual 1, 0.5, 2, 2: vendors' tables.
EIGHT_BITS_AT_BF16 = {"fp8": ("gaudi3", "tpu-v5p", "tpu-v6e"), "int8": ("mi250x-oam", "rx-7900-xtx")}
NO_PEAK = {"apple-m3-ultra", "apple-m4-max", "grace-72c"}
GEFORCE = ("rtx-3090", "rtx-4090", "rtx-5090")

# Totals that drivers report (MiB), as people printed them.
DRIVER_MIB = {
    "h100-sxm5-80gb": 81559,
    "h100-nvl-94gb": 95830,
    "h200-sxm-141gb": 143771,
    "gh200-96gb": 97871,
    "gh200-144gb": 146831,
    "b200-hgx-180gb": 183359,
    "h100-pcie-80gb": 81559,
    "b300-hgx-270gb": 275040,
    "gb200-per-gpu": 189471,
    "gb300-per-gpu": 284208,
    "v100-sxm2-32gb": 32768,
    "t4": 15360,
    "l4": 23034,
    "l40s": 46068,
    "a10": 23028,
    "rtx-a6000": 49140,
    "rtx-pro-6000-blackwell-ws": 97887,
    "rtx-pro-6000-blackwell-server": 97887,
    "rtx-4090": 24564,
    "rtx-5090": 32607,
}


def shipped(name):
    return load_hardware(hardware_folder() / f"{name}.yaml", named_as_file=True)


def reference(file):
    table = Path(__file__).parent.parent / "reference" / file
    lines = [line for line in table.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return {row["name"]: row for row in csv.DictReader(lines)}


def all_cited(hardware):
    found = {name: getattr(hardware, name) for name in CITED if getattr(hardware, name) is not None}
    return found | {f"peak.{name}": value for name, value in hardware.peak.items()}


RIDGES, TOKENS = reference("ridge_points.csv"), reference("ridge_tokens.csv")
SHIPPED = [shipped(name) for name in NAMES]


def test_there_is_a_profile_for_every_device_of_the_reference():
    assert sorted(RIDGES) == NAMES, "tests/reference/ridge_points.csv has one row a profile"
    assert len(NAMES) >= 46


@pytest.mark.parametrize("name", NAMES)
def test_loads_with_origins_and_without_findings(name):
    hardware = shipped(name)
    assert hardware.name == name
    findings = check_hardware(hardware, SHIPPED)
    if name in NO_PEAK:
        assert findings.pop().startswith("note: no bf16 or fp16 peak")
    assert findings == []
    for field, value in all_cited(hardware).items():
        assert len(value.ref) > 8, field
        assert not re.search(r"/(work|home|shared|tmp)\b", value.ref), field
        assert value.kind in ("datasheet", "measured", "assumed"), field


@pytest.mark.parametrize("name", NAMES)
def test_ridge_points_and_bandwidth(name):
    hardware, row = shipped(name), RIDGES[name]
    assert hardware.bandwidth.value == pytest.approx(float(row["bandwidth_TB_per_s"]) * 1e12, rel=1e-9)
    assert (hardware.peak == {}) == (name in NO_PEAK)
    for dtype in ("fp64", "tf32", "bf16", "fp16", "fp8", "int8", "fp6", "fp4"):
        if row[dtype]:
            # Printed with one decimal.
            right = pytest.approx(float(row[dtype]), rel=0.01, abs=0.05)
            assert hardware.ridge_flop_per_byte(dtype) == right, dtype
        else:
            assert dtype not in hardware.peak


@pytest.mark.parametrize("name", TOKENS)
def test_ridge_in_tokens(name):
    found = shipped(name).ridge_tokens_by_format()
    printed = {key: float(value) for key, value in TOKENS[name].items() if key != "name" and value}
    assert found.keys() == printed.keys()
    for storage, rows in printed.items():
        assert found[storage] == pytest.approx(rows, rel=0.01, abs=0.5), storage


@pytest.mark.parametrize("name", IDENTITY)
def test_peak_is_units_times_clock_times_rate(name):
    hardware = shipped(name)
    base = hardware.peak.get("bf16") or hardware.peak["fp16"]
    peak = hardware.units.value * hardware.clock.value * IDENTITY[name]
    assert base.value == pytest.approx(peak, rel=0.015)
    assert IDENTITY[name] in family_of(hardware).flop_per_clock


@pytest.mark.parametrize("name", IMPLIED_MHZ)
def test_blackwell_is_rated_below_the_clock_of_the_device(name):
    hardware = shipped(name)
    implied = hardware.peak["bf16"].value / hardware.units.value / 8192
    assert implied == pytest.approx(IMPLIED_MHZ[name] * 1e6, rel=0.001)
    assert implied < hardware.clock.value


@pytest.mark.parametrize("name", sorted(set(NAMES) - NO_PEAK))
def test_format_ratios(name):
    peak = {key: value.value for key, value in shipped(name).peak.items()}
    if "bf16" not in peak:
        assert name in ("t4", "v100-sxm2-32gb", "apple-m2-ultra")
        return
    ratio = {key: value / peak["bf16"] for key, value in peak.items()}
    if name == "gaudi3":
        assert ratio["fp16"] == ratio["tf32"] == pytest.approx(0.25, rel=0.001)
    else:
        assert ratio.get("fp16", 1.0) == 1.0
        assert ratio.get("tf32", 0.5) == pytest.approx(0.5, rel=0.015)
    # L40S prints 362.05 and 733: two clocks in one datasheet.
    fp8 = 1.0 if name in EIGHT_BITS_AT_BF16["fp8"] else 2.0
    assert ratio.get("fp8", fp8) == pytest.approx(fp8, rel=0.015)
    int8 = 4.0 if name in GEFORCE else 1.0 if name in EIGHT_BITS_AT_BF16["int8"] else 2.0
    if name not in ("b300-hgx-270gb", "gb300-per-gpu"):
        assert ratio.get("int8", int8) == pytest.approx(int8, rel=0.015)


@pytest.mark.parametrize("name", GEFORCE)
def test_geforce_is_kept_by_accumulator(name):
    peak = {key: value.value for key, value in shipped(name).peak.items()}
    assert peak["fp16-acc16"] == pytest.approx(2 * peak["fp16"], rel=0.002)
    assert peak.get("fp8-acc16", 0) in (0, pytest.approx(2 * peak.get("fp8", 0), rel=0.002))
    assert not any("-acc" in dtype for dtype in machine(shipped(name)).peak_flop_per_s)


def test_doubt_is_marked():
    marked = {one.name: one.doubtful() for one in SHIPPED if one.doubtful()}
    assert marked["dgx-spark-gb10"] == ["peak.bf16", "peak.fp16", "peak.fp8"]
    assert marked["gh200-144gb"] == ["bandwidth", "l2"]
    assert "h100-sxm5-80gb" not in marked
    for one in SHIPPED:
        for cited in all_cited(one).values():
            assert (
                not re.search("not confirmed|recalled|sources disagree", cited.ref)
                or cited.confidence == "low"
            )


@pytest.mark.parametrize(("name", "mib"), DRIVER_MIB.items())
def test_capacity_is_what_the_driver_reports(name, mib):
    hardware = shipped(name)
    assert hardware.capacity.value == mib * 2**20
    assert hardware.capacity.kind == "measured"


def test_h100_sxm_in_figures():
    h100 = shipped("h100-sxm5-80gb")
    assert h100.bandwidth.value == 3.352e12
    assert h100.peak["bf16"].value == 989.4e12
    assert h100.link.value == 450e9
    assert h100.usable_bytes == 84942979072
    assert h100.l2.value == 50 * 2**20
    # 4-bit weights, bf16 products: 74 tokens hide the FLOPs.
    assert h100.ridge_tokens("bf16", 0.5) == pytest.approx(74, abs=0.5)


def test_links_are_per_direction():
    expected = {
        "h200-sxm-141gb": 450e9,
        "a100-sxm4-80gb": 300e9,
        "b200-hgx-180gb": 900e9,
        "v100-sxm2-32gb": 150e9,
        "l40s": 32e9,
        "h100-pcie-80gb": 64e9,
        "mi300x": 448e9,
        "gaudi3": 600e9,
        "tpu-v6e": 400e9,
    }
    assert {name: shipped(name).link.value for name in expected} == expected


def test_a_mesh_says_what_one_peer_gets():
    assert any("to any one peer it is 64 GB/s" in note for note in shipped("mi300x").notes)


def test_every_gpu_of_a_driver_has_its_names():
    for one in SHIPPED:
        if one.vendor == "NVIDIA" and one.name != "grace-72c":
            assert one.driver_names, one.name
    names = [name for one in SHIPPED for name in one.driver_names]
    assert len(names) == len(set(names))


def test_aliases_are_unique():
    names = [alias for name in NAMES for alias in shipped(name).aliases] + NAMES
    assert len(names) == len(set(names))


def test_the_committed_schema_is_the_one_we_make():
    committed = hardware_folder() / "schema" / "hardware.schema.json"
    assert committed.read_text(encoding="utf-8") == schema_text(), "write schema_text() into it"


@pytest.mark.parametrize("name", NAMES)
def test_shipped_values_match_the_patterns_of_the_schema(name):
    path = hardware_folder() / f"{name}.yaml"
    properties = hardware_json_schema()["properties"]
    assert list(properties) == list(FIELDS)
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "# yaml-language-server: $schema=schema/hardware.schema.json"
    assert "schema: 1" in lines
    root = read_document(path).entries()
    cited = [(properties[key], root[key]) for key in CITED if key in root]
    cited += [(properties["peak"]["properties"][key], node) for key, node in root["peak"].entries().items()]
    for schema, node in cited:
        pattern = schema["properties"]["value"].get("pattern", "[0-9]+$")
        assert re.match(pattern, node.entries()["value"].scalar()), node.path


def test_the_table_of_fields_is_the_dataclass():
    assert set(FIELDS) - {"schema"} == {field.name for field in fields(Hardware)}
    required = {field.name for field in fields(Hardware) if field.default is MISSING}
    assert {name for name, field in FIELDS.items() if field.required} - {"schema"} == required


def test_the_schema_is_json():
    assert json.loads(schema_text()) == hardware_json_schema()
