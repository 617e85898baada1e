from __future__ import annotations

import subprocess
import sys

import pytest

from rooflinekit.errors import ProfileError
from rooflinekit.profiles import library
from rooflinekit.profiles.hardware_file import load_hardware
from rooflinekit.profiles.library import (
    find_hardware,
    hardware_aliases,
    hardware_folder,
    hardware_names,
    known_hardware,
)

SHORT = {
    "h100-sxm": "h100-sxm5-80gb",
    "h100": "h100-sxm5-80gb",
    "h100-pcie": "h100-pcie-80gb",
    "h100-nvl": "h100-nvl-94gb",
    "h200-sxm": "h200-sxm-141gb",
    "h200": "h200-sxm-141gb",
    "a100-40gb-sxm": "a100-sxm4-40gb",
    "a100-80gb-sxm": "a100-sxm4-80gb",
    "a100": "a100-sxm4-80gb",
    "a100-80gb-pcie": "a100-pcie-80gb",
    "l40s": "l40s",
    "rtx-4090": "rtx-4090",
    "a100-40gb-pcie": "a100-pcie-40gb",
    "gh200": "gh200-96gb",
    "b200": "b200-hgx-180gb",
    "gb200": "gb200-per-gpu",
    "b300": "b300-hgx-270gb",
    "gb300": "gb300-per-gpu",
    "rtx-pro-6000": "rtx-pro-6000-blackwell-ws",
    "rtx-pro-6000-server": "rtx-pro-6000-blackwell-server",
    "v100": "v100-sxm2-32gb",
    "dgx-spark": "dgx-spark-gb10",
    "jetson-orin": "jetson-agx-orin-64gb",
    "jetson-thor": "jetson-agx-thor-t5000",
    "mi250x": "mi250x-oam",
    "m2-ultra": "apple-m2-ultra",
    "m3-ultra": "apple-m3-ultra",
    "m4-max": "apple-m4-max",
    "xeon-8480": "xeon-8480p",
    "grace": "grace-72c",
    **{
        name: name
        for name in (
            "l4", "a10", "a10g", "rtx-a6000", "rtx-6000-ada", "rtx-3090", "rtx-5090", "t4", "mi300x", "mi325x",
            "mi355x", "rx-7900-xtx", "gaudi2", "gaudi3", "tpu-v5e", "tpu-v5p", "tpu-v6e", "tpu-v7x", "epyc-9654",
        )
    },
}  # fmt: skip


@pytest.mark.parametrize(("short", "name"), SHORT.items())
def test_short_names(short, name):
    assert find_hardware(short).name == name
    assert find_hardware(name).name == name


def test_the_quick_scan_sees_the_aliases_that_loading_sees():
    loaded = {
        alias: path.stem for path in hardware_folder().glob("*.yaml") for alias in load_hardware(path).aliases
    }
    assert hardware_aliases() == loaded


@pytest.mark.parametrize("name", ["H100-SXM", " h100_sxm5_80gb ", "RTX_4090"])
def test_spelling_is_forgiven(name):
    assert find_hardware(name).vendor == "NVIDIA"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("h100-smx", "did you mean h100-sxm"),
        ("a100-80gb", "a100-80gb-sxm"),
        ("", "known: a10"),
        ("zzzzzz", "known: a10"),
        ("x" * 5000, "is unknown"),
        ("a\0b", "is unknown"),
        ("..", "is unknown"),
    ],
)
def test_unknown_names_list_the_nearest(name, says):
    with pytest.raises(ProfileError) as caught:
        find_hardware(name)
    assert says in str(caught.value)
    assert "`rooflinekit hardware list`" in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_paths_are_files(tmp_path):
    text = (hardware_folder() / "l40s.yaml").read_text(encoding="utf-8")
    path = tmp_path / "mine.yml"
    path.write_text(text, encoding="utf-8")
    assert find_hardware(path).name == "l40s"
    assert find_hardware(str(path)).name == "l40s"
    with pytest.raises(ProfileError, match=r"absent\.yaml does not exist"):
        find_hardware("absent.yaml")
    with pytest.raises(ProfileError, match="does not exist"):
        find_hardware("folder/absent")


@pytest.mark.parametrize(
    "aliases",
    [
        "[card, other]",
        "\n  - card # short\n  # comment\n  - other",
        "\n- card\n\n- other",
        "[\n  card,\n  other]",
    ],
)
def test_an_own_folder_is_searched_first(tmp_path, monkeypatch, aliases):
    text = (hardware_folder() / "l40s.yaml").read_text(encoding="utf-8")
    own = text.replace("name: l40s", f"name: my-card\naliases: {aliases}")
    (tmp_path / "my-card.yaml").write_text(own, encoding="utf-8")
    (tmp_path / "h100-nvl-94gb.yaml").write_text(
        text.replace("name: l40s", "name: h100-nvl-94gb"), encoding="utf-8"
    )
    (tmp_path / "broken.yaml").write_bytes(b"\xff\xfe")
    monkeypatch.setenv("ROOFLINEKIT_HARDWARE", str(tmp_path))
    assert {"my-card", "h100-sxm5-80gb"} <= set(hardware_names())
    assert hardware_names().count("h100-nvl-94gb") == 1
    assert find_hardware("card").name == find_hardware("other").name == "my-card"
    assert find_hardware("h100-nvl-94gb").title == "NVIDIA L40S"
    assert find_hardware("h100").name == "h100-sxm5-80gb"
    with pytest.raises(ProfileError, match="not UTF-8"):
        find_hardware("broken")


def test_a_wrong_own_folder_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("ROOFLINEKIT_HARDWARE", str(tmp_path / "absent"))
    with pytest.raises(ProfileError, match=r"ROOFLINEKIT_HARDWARE=.* is not a folder"):
        find_hardware("h100")


def test_a_file_under_another_name_is_refused(tmp_path, monkeypatch):
    text = (hardware_folder() / "l40s.yaml").read_text(encoding="utf-8")
    (tmp_path / "my-card.yaml").write_text(text, encoding="utf-8")
    monkeypatch.setenv("ROOFLINEKIT_HARDWARE", str(tmp_path))
    with pytest.raises(ProfileError, match="write my-card"):
        find_hardware("my-card")


def test_a_checkout_without_links_says_so(tmp_path, monkeypatch):
    module = tmp_path / "rooflinekit" / "profiles" / "library.py"
    module.parent.mkdir(parents=True)
    monkeypatch.setattr(library, "__file__", str(module))
    with pytest.raises(ProfileError, match="install rooflinekit again"):
        hardware_folder()
    (tmp_path / "rooflinekit" / "_hardware").write_text("../hardware", encoding="utf-8")
    with pytest.raises(ProfileError, match=r"core\.symlinks"):
        find_hardware("h100")


def test_loading_a_profile_stays_light():
    code = (
        "import sys; from rooflinekit.profiles.library import find_hardware; find_hardware('h100');"
        "heavy = {'pydantic', 'scipy', 'pandas', 'torch', 'matplotlib', 'jsonschema', 'rich', 'xarray'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_file_with_faults_does_not_take_the_list_along(tmp_path, monkeypatch):
    (tmp_path / "half.yaml").write_text("name: half\n", encoding="utf-8")
    monkeypatch.setenv("ROOFLINEKIT_HARDWARE", str(tmp_path))
    found, faulty = known_hardware()
    assert [one.name for one in found] == [name for name in hardware_names() if name != "half"]
    assert len(faulty) == 1
    assert faulty[0].startswith("half.yaml is left out")
