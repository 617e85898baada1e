"""The shipped hardware files against numbers that this package did not make."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import MISSING, fields
from pathlib import Path

import pytest

from rooflinekit.hardware import Hardware
from rooflinekit.profiles.checks import check_hardware
from rooflinekit.profiles.document import read_document
from rooflinekit.profiles.hardware_file import FIELDS, load_hardware
from rooflinekit.profiles.library import hardware_folder, hardware_names
from rooflinekit.profiles.schema import hardware_json_schema, schema_text

NAMES = hardware_names()
CITED = ("capacity", "visible_capacity", "bandwidth", "l2", "link", "units", "tdp", "clock")

# Dense bf16 FLOP per clock and SM: A100 and H100 whitepapers, Ada and RTX Blackwell whitepapers (GeForce
# runs half the rate of the professional part with fp32 accumulation).
FLOP_PER_CLOCK = {
    "h100-sxm5-80gb": 4096,
    "h100-pcie-80gb": 4096,
    "h200-sxm-141gb": 4096,
    "a100-sxm4-40gb": 2048,
    "a100-sxm4-80gb": 2048,
    "a100-pcie-80gb": 2048,
    "l40s": 1024,
    "rtx-4090": 512,
}

# Totals that drivers report (MiB), as people printed them.
DRIVER_MIB = {"h100-sxm5-80gb": 81559, "h100-nvl-94gb": 95830, "h200-sxm-141gb": 143771, "rtx-4090": 24564}


def shipped(name):
    return load_hardware(hardware_folder() / f"{name}.yaml", named_as_file=True)


def reference_ridges():
    table = Path(__file__).parent.parent / "reference" / "ridge_points.csv"
    lines = [line for line in table.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return {row["name"]: row for row in csv.DictReader(lines)}


def all_cited(hardware):
    found = {name: getattr(hardware, name) for name in CITED if getattr(hardware, name) is not None}
    return found | {f"peak.{name}": value for name, value in hardware.peak.items()}


@pytest.mark.parametrize("name", NAMES)
def test_loads_with_origins_and_without_findings(name):
    hardware = shipped(name)
    assert hardware.name == name
    assert check_hardware(hardware) == []
    for field, value in all_cited(hardware).items():
        assert len(value.ref) > 8, field
        assert "/work" not in value.ref, field
        assert "/home" not in value.ref, field
        assert value.kind in ("datasheet", "measured", "assumed"), field
    assert hardware.notes


@pytest.mark.parametrize("name", NAMES)
def test_ridge_points_and_bandwidth(name):
    hardware, row = shipped(name), reference_ridges()[name]
    assert hardware.bandwidth.value == float(row["bandwidth_TB_per_s"] + "e12")
    for dtype in ("tf32", "bf16", "fp16", "fp8", "int8"):
        if row[dtype]:
            assert hardware.ridge_flop_per_byte(dtype) == pytest.approx(float(row[dtype]), rel=0.01), dtype
        else:
            assert dtype not in hardware.peak


def test_the_reference_has_every_shipped_file():
    assert sorted(reference_ridges()) == NAMES


@pytest.mark.parametrize("name", FLOP_PER_CLOCK)
def test_peak_is_units_times_clock_times_rate(name):
    hardware = shipped(name)
    peak = hardware.units.value * hardware.clock.value * FLOP_PER_CLOCK[name]
    assert hardware.peak["bf16"].value == pytest.approx(peak, rel=0.015)


@pytest.mark.parametrize("name", NAMES)
def test_format_ratios(name):
    peak = {key: value.value for key, value in shipped(name).peak.items()}
    assert peak["fp16"] == peak["bf16"]
    assert peak["tf32"] / peak["bf16"] == pytest.approx(0.5, rel=0.015)
    # L40S prints 362.05 and 733: two clocks in one datasheet.
    assert peak.get("fp8", 2 * peak["bf16"]) / peak["bf16"] == pytest.approx(2.0, rel=0.015)
    assert peak["int8"] / peak["bf16"] == pytest.approx(4.0 if name == "rtx-4090" else 2.0, rel=0.015)


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
    expected = {"h200-sxm-141gb": 450e9, "a100-sxm4-80gb": 300e9, "l40s": 32e9, "h100-pcie-80gb": 64e9}
    assert {name: shipped(name).link.value for name in expected} == expected


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
    assert path.read_text(encoding="utf-8").startswith(
        "# yaml-language-server: $schema=schema/hardware.schema.json\nschema: 1\n"
    )
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
