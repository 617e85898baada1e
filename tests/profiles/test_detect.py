"""Which profile fits a GPU: by the name its driver gives it, never by resemblance."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rooflinekit.profiles.detect import Facts, match
from rooflinekit.profiles.library import find_hardware, shipped_hardware

KNOWN = shipped_hardware()
MIB = 2**20


@pytest.mark.parametrize(
    ("name", "mib", "units", "limit", "profile"),
    [
        # As nvidia-smi and torch print them.
        ("NVIDIA H100 80GB HBM3", 81559, 132, 700, "h100-sxm5-80gb"),
        ("NVIDIA H100 PCIe", 81559, 114, 350, "h100-pcie-80gb"),
        ("NVIDIA H100 NVL", 95830, 132, 400, "h100-nvl-94gb"),
        ("NVIDIA H200", 143771, 132, 700, "h200-sxm-141gb"),
        ("NVIDIA H200", 143156, 132, 700, "h200-sxm-141gb"),
        ("NVIDIA GH200 480GB", 97871, 132, None, "gh200-96gb"),
        ("NVIDIA GH200 144G HBM3e", 146831, 132, None, "gh200-144gb"),
        ("NVIDIA A100-SXM4-80GB", 81920, 108, 400, "a100-sxm4-80gb"),
        ("A100-SXM4-40GB", 40960, 108, 400, "a100-sxm4-40gb"),
        ("NVIDIA A100 80GB PCIe", 81920, 108, 300, "a100-pcie-80gb"),
        ("NVIDIA A100-PCIE-40GB", 40960, 108, 250, "a100-pcie-40gb"),
        ("NVIDIA B200", 183359, 148, 1000, "b200-hgx-180gb"),
        ("NVIDIA GeForce RTX 4090", 24564, 128, 450, "rtx-4090"),
        ("NVIDIA GeForce RTX 5090", 32607, 170, 575, "rtx-5090"),
        ("NVIDIA RTX 6000 Ada Generation", 49140, 142, 300, "rtx-6000-ada"),
        ("NVIDIA RTX A6000", 48676, 84, 300, "rtx-a6000"),
        ("Tesla T4", 15095, 40, 70, "t4"),
        ("NVIDIA L4", 23034, 58, 72, "l4"),
        ("NVIDIA A10", 23028, 72, 150, "a10"),
        ("NVIDIA A10G", 22587, 80, 300, "a10g"),
        ("NVIDIA GB300", 284208, 152, 1400, "gb300-per-gpu"),
        ("NVIDIA B300 SXM6 AC", 275040, 148, 1100, "b300-hgx-270gb"),
        ("Orin", 62827, 16, None, "jetson-agx-orin-64gb"),
        ("NVIDIA L40S", 46068, 142, 350, "l40s"),
        ("AMD Instinct MI300X", 196592, 304, None, "mi300x"),
    ],
)
def test_names_of_the_driver(name, mib, units, limit, profile):
    found = match(Facts(name, mib * MIB, units, limit), KNOWN)
    assert (found.profile.name, found.differences) == (profile, ())


def test_both_halves_of_a_package_are_said():
    found = match(Facts("AMD Instinct MI250X/MI250", 65520 * MIB, 110), KNOWN)
    assert found.profile.name == "mi250x-oam"
    assert found.differences[0].startswith("memory is 68.7 GB, 50% less")


@pytest.mark.parametrize(
    ("name", "similar"),
    [
        ("NVIDIA GeForce RTX 4090 Laptop GPU", "rtx-4090"),
        ("NVIDIA GeForce RTX 4090 D", "rtx-4090"),
        ("NVIDIA GeForce RTX 3090 Ti", "rtx-3090"),
        ("Tesla V100-SXM2-16GB", "v100-sxm2-32gb"),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "rtx-pro-6000-blackwell-ws"),
        ("NVIDIA H20", "h200-sxm-141gb"),
    ],
)
def test_a_similar_name_is_another_part(name, similar):
    found = match(Facts(name), KNOWN)
    assert found.profile is None
    assert similar in found.similar
    assert found.differences == ()


@pytest.mark.parametrize("name", ["", "llvmpipe", "Quadro K620"])
def test_an_unknown_card(name):
    assert match(Facts(name, 4e9), KNOWN).profile is None


def test_differences_are_said():
    found = match(Facts("NVIDIA H100 80GB HBM3", 20 * 2**30, 16, 500), KNOWN)
    assert found.profile.name == "h100-sxm5-80gb"
    assert found.differences == (
        "memory is 21.47 GB, 75% less than the profile's 84.94 GB",
        "it shows 16 units, the profile has 132",
        "the power limit is 500 W, the profile has 700 W: matrix products may run slower",
    )


def test_a_mig_slice_is_its_gpu_with_less():
    found = match(Facts("NVIDIA A100-SXM4-80GB MIG 3g.40gb", 40 * 2**30, 42), KNOWN)
    assert found.profile.name == "a100-sxm4-80gb"
    assert len(found.differences) == 2


def test_what_the_driver_does_not_tell_is_not_compared():
    assert match(Facts("NVIDIA GB10"), KNOWN).differences == ()


def test_one_name_for_two_parts_is_decided_by_memory():
    large = find_hardware("jetson-orin")
    small = replace(large, name="small", capacity=replace(large.capacity, value=32 * 2.0**30))
    for gib, name in ((62, large.name), (30, "small")):
        assert match(Facts("Orin", gib * 2**30), [small, large]).profile.name == name
