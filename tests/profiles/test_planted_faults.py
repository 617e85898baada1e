"""The mistakes of public hardware tables, planted into the shipped profiles one by one: each is caught."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from rooflinekit.evidence import Cited
from rooflinekit.profiles.checks import NOTE, check_hardware
from rooflinekit.profiles.kin import find_home
from rooflinekit.profiles.library import shipped_hardware

SHIPPED = shipped_hardware()
BY_NAME = {one.name: one for one in SHIPPED}
TENSOR = ("tf32", "bf16", "fp16", "fp8", "int8", "fp6", "fp4", "int4", "fp16-acc16", "fp8-acc16")
WITH_16_BITS = [one.name for one in SHIPPED if {"bf16", "fp16"} & one.peak.keys()]
WITH_LINK = [one.name for one in SHIPPED if one.link is not None]


def scaled(cited, factor):
    return replace(cited, value=cited.value * factor, kind="datasheet")


def with_peaks(hardware, names, factor):
    changed = {name: scaled(cited, factor) for name, cited in hardware.peak.items() if name in names}
    return replace(hardware, peak={**hardware.peak, **changed})


def set_peak(hardware, **rates):
    changed = {name: Cited(rate * 1e12, "datasheet", "planted") for name, rate in rates.items()}
    return replace(hardware, peak={**hardware.peak, **changed})


def faults(hardware, shipped=SHIPPED):
    return [finding for finding in check_hardware(hardware, shipped) if not finding.startswith(NOTE)]


@pytest.mark.parametrize("name", WITH_16_BITS)
def test_a_table_that_is_sparse_throughout(name):
    assert any("sparsity" in fault for fault in faults(with_peaks(BY_NAME[name], TENSOR, 2)))


@pytest.mark.parametrize(("name", "rate"), [(one.name, rate) for one in SHIPPED for rate in one.peak])
def test_one_sparse_rate(name, rate):
    assert faults(with_peaks(BY_NAME[name], (rate,), 2))


@pytest.mark.parametrize("name", BY_NAME)
def test_memory_of_another_part_of_the_architecture(name):
    here = BY_NAME[name]
    for other in SHIPPED:
        # Closer than that are the slips of GB and GiB, and what a driver keeps for itself.
        if (
            other.architecture == here.architecture
            and not 0.92 < other.capacity.value / here.capacity.value < 1.09
        ):
            assert faults(replace(here, capacity=other.capacity, visible_capacity=None)), other.name


@pytest.mark.parametrize(
    "name", ["h100-sxm5-80gb", "a100-sxm4-80gb", "l40s", "rtx-4090", "mi300x", "b200-hgx-180gb", "rtx-a6000"]
)
def test_a_sparse_table_is_caught_without_shipped_profiles(name):
    """Units x clock x rate alone: for a device that no profile is shipped of."""
    (fault,) = faults(with_peaks(BY_NAME[name], TENSOR, 2), shipped=())
    assert "is it the rate with sparsity or fp16 accumulation?" in fault


@pytest.mark.parametrize("name", [one.name for one in SHIPPED])
@pytest.mark.parametrize("binary", [2**30 / 1e9, 2**40 / 1e12])
def test_bandwidth_in_gib_or_tib(name, binary):
    planted = replace(BY_NAME[name], bandwidth=scaled(BY_NAME[name].bandwidth, binary))
    assert any("GiB" in fault or "binary" in fault for fault in faults(planted))


@pytest.mark.parametrize("name", WITH_LINK)
def test_a_link_in_both_directions(name):
    planted = replace(BY_NAME[name], link=scaled(BY_NAME[name].link, 2))
    assert any("both directions" in fault or "another SKU" in fault for fault in faults(planted))


@pytest.mark.parametrize("name", ["h100-sxm5-80gb", "b200-hgx-180gb", "mi300x", "v100-sxm2-32gb", "gaudi3"])
def test_a_link_in_both_directions_without_shipped_profiles(name):
    planted = replace(BY_NAME[name], link=scaled(BY_NAME[name].link, 2))
    assert any("both directions" in fault for fault in faults(planted, shipped=()))


SWAPS = [
    ("h100-sxm5-80gb", "h100-pcie-80gb", ("bandwidth", "peak", "units", "link")),
    ("h100-pcie-80gb", "h100-sxm5-80gb", ("bandwidth", "peak", "units", "link")),
    ("h100-nvl-94gb", "h100-pcie-80gb", ("bandwidth", "peak", "units", "link")),
    ("h100-pcie-80gb", "h100-nvl-94gb", ("bandwidth", "peak", "units", "link")),
    ("h200-sxm-141gb", "h100-sxm5-80gb", ("bandwidth",)),
    ("gh200-96gb", "gh200-144gb", ("bandwidth",)),
    ("a100-sxm4-80gb", "a100-sxm4-40gb", ("bandwidth",)),
    ("a100-sxm4-80gb", "a100-pcie-80gb", ("bandwidth", "link")),
    ("a100-pcie-40gb", "a100-pcie-80gb", ("bandwidth",)),
    ("a10", "a10g", ("peak", "units")),
    ("a10g", "a10", ("peak", "units")),
    ("b200-hgx-180gb", "gb200-per-gpu", ("peak", "units")),
    ("gb200-per-gpu", "b200-hgx-180gb", ("peak", "units")),
    ("rtx-5090", "rtx-pro-6000-blackwell-ws", ("peak", "units")),
    ("rtx-pro-6000-blackwell-server", "rtx-pro-6000-blackwell-ws", ("bandwidth", "peak")),
    ("rtx-pro-6000-blackwell-ws", "rtx-pro-6000-blackwell-server", ("bandwidth", "peak")),
    ("rtx-a6000", "rtx-3090", ("bandwidth", "peak", "units")),
    ("mi300x", "mi325x", ("bandwidth",)),
]


@pytest.mark.parametrize(("name", "other", "fields"), SWAPS)
def test_a_number_of_another_sku(name, other, fields):
    """Each number alone, under the title of the right part."""
    for field in fields:
        planted = replace(BY_NAME[name], **{field: getattr(BY_NAME[other], field)})
        if field != "peak":
            planted = replace(planted, **{field: replace(getattr(planted, field), kind="datasheet")})
        found = faults(planted)
        assert any(re.search(rf"is that of .*\b{other}\b.*, not of {name} ", fault) for fault in found), (
            field,
            found,
        )


@pytest.mark.parametrize("name", ["h100-sxm5-80gb", "h200-sxm-141gb", "l40s", "b200-hgx-180gb", "mi300x"])
@pytest.mark.parametrize("dtype", ["fp8", "int8"])
def test_eight_bits_at_the_bf16_rate(name, dtype):
    planted = replace(BY_NAME[name], peak={**BY_NAME[name].peak, dtype: BY_NAME[name].peak["bf16"]})
    for shipped in (SHIPPED, ()):
        assert any(f"peak.{dtype} is 1 times peak.bf16" in fault for fault in faults(planted, shipped))


@pytest.mark.parametrize(
    ("name", "rates", "says"),
    [
        # Figures that are in circulation.
        ("h100-sxm5-80gb", {"bf16": 1979, "fp16": 1979}, "sparsity"),
        ("h200-sxm-141gb", {"bf16": 1979, "fp16": 1979, "tf32": 989}, "sparsity"),
        ("h100-sxm5-80gb", {"fp16": 267.6}, "peak.fp16 is 0.27"),
        ("rtx-4090", {"bf16": 330.3, "fp16": 330.3}, "fp16 accumulation"),
        ("rtx-5090", {"fp8": 838}, "peak.fp8 is 4 times"),
        ("rtx-a6000", {"bf16": 77.4, "fp16": 77.4}, "peak.int8 is 4"),
        ("rtx-6000-ada", {"bf16": 182, "fp16": 182}, "peak.fp8 is 4"),
        ("mi250x-oam", {"int8": 766}, "peak.int8 is 2 times"),
        ("b300-hgx-270gb", {"int8": 4500}, "peak.int8 is 2 times"),
        (
            "gb200-per-gpu",
            {"bf16": 2250, "fp16": 2250, "fp8": 4500, "fp4": 9000},
            "is that of b200-hgx-180gb",
        ),
        ("xeon-8480p", {"bf16": 229.4}, "sparsity or fp16 accumulation"),
        ("a10", {"fp16": 28}, "peak.fp16 is 0.22"),
    ],
)
def test_figures_in_circulation(name, rates, says):
    found = faults(set_peak(BY_NAME[name], **rates))
    assert any(says in fault for fault in found), found


@pytest.mark.parametrize(
    ("name", "terabytes_per_s", "says"),
    [
        ("h100-sxm5-80gb", 3.0, "far from h100-sxm5-80gb (3.352 TB/s)"),
        ("mi300x", 10.3, "far from mi300x (5.325 TB/s)"),
        ("l4", 3.35, "far from l4 (300 GB/s)"),
        ("rtx-5090", 1792.0, "ridge point"),
    ],
)
def test_bandwidths_in_circulation(name, terabytes_per_s, says):
    planted = replace(BY_NAME[name], bandwidth=Cited(terabytes_per_s * 1e12, "datasheet", "planted"))
    assert any(says in fault for fault in faults(planted))


def test_rounded_figures_pass():
    h100 = replace(BY_NAME["h100-sxm5-80gb"], bandwidth=Cited(3.35e12, "datasheet", "rounded"))
    assert faults(set_peak(h100, bf16=989.5, fp16=989.5, fp8=1979, int8=1979, tf32=494.7)) == []
    b200 = replace(BY_NAME["b200-hgx-180gb"], bandwidth=Cited(8e12, "datasheet", "DGX sheet"))
    assert faults(b200) == []


def test_the_label_as_capacity():
    planted = replace(
        BY_NAME["h100-sxm5-80gb"], capacity=Cited(80e9, "datasheet", "80 GB"), visible_capacity=None
    )
    assert any("the GB of the label are GiB" in fault for fault in faults(planted))


def test_what_is_measured_is_left_alone():
    slow = BY_NAME["h100-sxm5-80gb"]
    peak = {"bf16": Cited(770e12, "measured", "x"), "fp8": Cited(1400e12, "measured", "x")}
    slow = replace(slow, peak=peak, bandwidth=Cited(3.0e12, "measured", "x"))
    assert faults(slow) == []


@pytest.mark.parametrize(
    ("title", "name", "home", "sure"),
    [
        ("NVIDIA H100 SXM5 80GB", "mine", "h100-sxm5-80gb", True),
        ("H100 SXM of my cloud", "mine", "h100-sxm5-80gb", False),
        ("NVIDIA H100 PCIe", "mine", "h100-pcie-80gb", False),
        ("NVIDIA H100 NVL", "h100-nvl-94gb", "h100-nvl-94gb", True),
        ("A100 SXM4 40GB", "mine", "a100-sxm4-40gb", True),
        ("NVIDIA A10", "mine", "a10", True),
        ("NVIDIA A10G in AWS G5", "mine", "a10g", True),
        ("NVIDIA GeForce RTX 4090", "mine", "rtx-4090", True),
        ("Some accelerator", "mine", None, False),
    ],
)
def test_the_profile_of_the_same_part(title, name, home, sure):
    found, certain = find_home(replace(BY_NAME["l40s"], title=title, name=name), SHIPPED)
    assert (found.name if found else None, certain) == (home, sure)
