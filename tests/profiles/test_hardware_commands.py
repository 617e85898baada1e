"""``rooflinekit hardware``: list, show, check, new, detect."""

from __future__ import annotations

import json

import pytest

from rooflinekit.cli import run
from rooflinekit.evidence import Cited
from rooflinekit.microbench import inventory
from rooflinekit.profiles.detect import Facts
from rooflinekit.profiles.document import parse_document
from rooflinekit.profiles.hardware_file import hardware_data, load_hardware, read_hardware
from rooflinekit.profiles.library import find_hardware, hardware_folder, hardware_names

VALUES = {
    "bandwidth": lambda row: row["bandwidth_bytes_per_s"],
    "memory": lambda row: row["memory_capacity_bytes"],
    "bf16": lambda row: row["peak_flop_per_s"].get("bf16"),
    "fp8": lambda row: row["peak_flop_per_s"].get("fp8"),
    "ridge": lambda row: row["ridge_tokens"].get("w16a16"),
}


def said(capsys, *arguments, code=0):
    assert run([*arguments]) == code
    out, err = capsys.readouterr()
    return out if code == 0 else out + err


@pytest.mark.parametrize("sort", VALUES)
@pytest.mark.parametrize("reverse", [False, True])
def test_the_list_is_sorted(capsys, sort, reverse):
    options = ("--sort", sort, *(("--reverse",) if reverse else ()))
    rows = json.loads(said(capsys, "hardware", "list", *options, "--json"))
    found = [VALUES[sort](row) for row in rows]
    known = [value for value in found if value is not None]
    assert known == sorted(known, reverse=not reverse)
    assert found[: len(known)] == known, "devices without the number come last"
    assert len(rows) == len(hardware_names())


def test_the_list_is_sorted_by_name(capsys):
    rows = json.loads(said(capsys, "hardware", "list", "--sort", "name", "--json"))
    assert [row["name"] for row in rows] == hardware_names()
    rows = json.loads(said(capsys, "hardware", "list", "--sort", "name", "--reverse", "--json"))
    assert [row["name"] for row in rows] == hardware_names()[::-1]


def test_the_list_has_the_keys_it_had(capsys):
    rows = json.loads(said(capsys, "hardware", "list", "--json"))
    assert rows[0]["bandwidth_bytes_per_s"] == max(row["bandwidth_bytes_per_s"] for row in rows)
    keys = {"name", "aliases", "title", "bandwidth_bytes_per_s", "memory_capacity_bytes", "peak_flop_per_s"}
    assert keys | {"ridge_flop_per_byte", "ridge_tokens", "low_confidence"} <= set(rows[0])


def test_the_list_shows_every_name_and_the_doubt(capsys):
    out = said(capsys, "hardware", "list")
    assert all(f"\n{name} " in out for name in hardware_names())
    (line,) = [line for line in out.splitlines() if line.startswith("dgx-spark-gb10")]
    assert line.split()[5:9] == ["119", "?", "238", "?"]
    (line,) = [line for line in out.splitlines() if line.startswith("rtx-4090")]
    assert line.split()[-3:] == ["164", "164", "41"]


def test_show_has_sources_doubt_and_ridges(capsys):
    out = said(capsys, "hardware", "show", "dgx-spark")
    assert "assumed, low confidence" in out
    assert "xzwgit/gpu-flops-bench" in out
    assert [line.split() for line in out.splitlines() if line.startswith("w4a4")] == [["w4a4", "fp4", "458"]]
    data = json.loads(said(capsys, "hardware", "show", "dgx-spark", "--json"))
    assert data["peak"]["bf16"]["confidence"] == "low"
    assert data["ridge_tokens"]["w4a16"] == pytest.approx(109, abs=0.5)
    assert "compute bound is unknown" in said(capsys, "hardware", "show", "m4-max")


@pytest.mark.parametrize("name", ["apple-m4-max", "m3-ultra", "grace"])
def test_without_a_peak_the_compute_bound_is_unknown(capsys, name):
    out = said(capsys, "predict", "--model", "llama-3.2-1b", "--hardware", name)
    assert "the compute bound is unknown" in out


@pytest.mark.parametrize("name", ["h100-sxm5-80gb", "apple-m4-max", "xeon-8480p"])
def test_shipped_files_pass_the_check(capsys, name):
    out = said(capsys, "hardware", "check", str(hardware_folder() / f"{name}.yaml"))
    assert "well formed and its numbers agree" in out


def test_a_swapped_sku_fails_the_check(capsys, tmp_path):
    text = (hardware_folder() / "h100-sxm5-80gb.yaml").read_text(encoding="utf-8")
    path = tmp_path / "my-h100.yaml"
    path.write_text(text.replace("name: h100-sxm5-80gb", "name: my-h100").replace("3.352 TB/s", "2.039 TB/s"))
    out = said(capsys, "hardware", "check", str(path), code=1)
    assert "bandwidth 2.039 TB/s is that of h100-pcie-80gb" in out
    assert "failed: 1 doubtful number in" in out


def test_new_writes_a_skeleton_that_check_refuses(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "fill in every TODO" in said(capsys, "hardware", "new", "a-test-card")
    lines = said(capsys, "hardware", "check", "a-test-card.yaml", code=2).splitlines()
    left = [line.removeprefix("error: ").split(": ")[1] for line in lines]
    assert left == [
        "title",
        "vendor",
        "architecture",
        "capacity.value",
        "capacity.ref",
        "bandwidth.value",
        "bandwidth.ref",
        "peak.bf16.value",
        "peak.bf16.ref",
    ]
    assert all("still to be filled in" in line for line in lines)


def test_a_skeleton_filled_in_is_a_profile(capsys, tmp_path):
    path = tmp_path / "a-test-card.yaml"
    said(capsys, "hardware", "new", "a-test-card", "--out", str(path))
    text = path.read_text(encoding="utf-8")
    for old, new in (
        ("title: TODO", "title: My Card"),
        ("vendor: TODO", "vendor: ACME"),
        ("architecture: TODO", "architecture: One"),
        ("capacity: {value: TODO", "capacity: {value: 80 GiB"),
        ("bandwidth: {value: TODO", "bandwidth: {value: 2 TB/s"),
        ("bf16: {value: TODO", "bf16: {value: 400 TFLOP/s"),
        ("ref: TODO}", 'ref: "data sheet, p. 1"}'),
    ):
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")
    assert "its numbers agree" in said(capsys, "hardware", "check", str(path))
    # Every commented line is a field as well.
    uncommented = "\n".join(
        line.replace("# ", "", 1)
        if line.lstrip().startswith("# ") and line.split("# ", 1)[1].split(":")[0] in text_fields(text)
        else line
        for line in text.splitlines()
    )
    path.write_text(uncommented, encoding="utf-8")
    out = said(capsys, "hardware", "check", str(path), code=2)
    assert "is not a field" not in out
    assert "peak.fp8-acc16.value: is still to be filled in" in out


def text_fields(text):
    return {
        line.split("# ", 1)[1].split(":")[0]
        for line in text.splitlines()
        if line.lstrip().startswith("# ") and ("value: TODO" in line or ": [" in line)
    }


def test_new_never_overwrites(capsys, tmp_path):
    path = tmp_path / "a-test-card.yaml"
    path.write_text("mine", encoding="utf-8")
    assert "exists and is left as it is" in said(
        capsys, "hardware", "new", "a-test-card", "--out", str(path), code=2
    )
    assert path.read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    ("name", "out", "says"),
    [
        ("My_Card", "x.yaml", "not in kebab-case"),
        ("x" * 500, "x.yaml", "not in kebab-case"),
        ("h100", "x.yaml", "is taken by h100-sxm5-80gb"),
        ("l40s", "x.yaml", "is taken by l40s"),
        ("a-test-card", "x.txt", "use .yaml or .yml"),
    ],
)
def test_new_refuses_in_one_sentence(capsys, tmp_path, name, out, says):
    found = said(capsys, "hardware", "new", name, "--out", str(tmp_path / out), code=2)
    assert says in found
    assert len(found.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def detected(monkeypatch, *facts):
    monkeypatch.setattr(inventory, "gpu_facts", lambda: list(facts))


def test_detect_without_a_gpu_names_the_demo(capsys, monkeypatch):
    detected(monkeypatch)
    assert "no GPU found" in (out := said(capsys, "hardware", "detect"))
    assert "rooflinekit demo" in out
    assert json.loads(said(capsys, "hardware", "detect", "--json")) == []


def test_detect_names_the_profile_and_the_differences(capsys, monkeypatch):
    detected(
        monkeypatch,
        Facts("NVIDIA H100 80GB HBM3", 84942979072.0, 132, 500.0),
        Facts("NVIDIA L40S", 47803531264.0, 142, 350.0),
        Facts("NVIDIA H20"),
    )
    lines = said(capsys, "hardware", "detect").splitlines()
    assert lines[0] == "GPU 0: NVIDIA H100 80GB HBM3: --hardware h100-sxm5-80gb (NVIDIA H100 SXM5 80GB)"
    assert lines[1].startswith("GPU 0: the power limit is 500 W")
    assert lines[3] == "GPU 1: what the driver tells agrees with the profile"
    assert lines[4].startswith("GPU 2: NVIDIA H20 has no profile (similar in name, not the same part:")
    assert "rooflinekit demo" in lines[5]
    data = json.loads(said(capsys, "hardware", "detect", "--json"))
    assert [one["profile"] for one in data] == ["h100-sxm5-80gb", "l40s", None]


@pytest.mark.parametrize(
    ("mark", "says"),
    [
        ("confidence: high", "'high' is not a mark here; write low"),
        ("confidence: [low]", "write a single value"),
    ],
)
def test_only_low_is_a_mark(tmp_path, mark, says):
    text = (hardware_folder() / "l40s.yaml").read_text(encoding="utf-8")
    path = tmp_path / "l40s.yaml"
    path.write_text(text.replace("value: 864 GB/s\n", f"value: 864 GB/s\n  {mark}\n"), encoding="utf-8")
    with pytest.raises(Exception, match=r"bandwidth\.confidence") as caught:
        load_hardware(path)
    assert says in str(caught.value)


@pytest.mark.parametrize("name", hardware_names())
def test_a_profile_inside_a_calibration_is_the_same_profile(name):
    import yaml

    hardware = find_hardware(name)
    root = parse_document(yaml.safe_dump(hardware_data(hardware), sort_keys=False), "calibration")
    again = read_hardware(root)
    root.problems.finish()
    assert again == hardware


def test_a_mark_is_optional():
    assert Cited(1.0, "assumed", "x").confidence is None
