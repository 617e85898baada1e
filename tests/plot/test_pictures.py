"""Pictures: what the artists show equals numbers worked out by hand, and files come out whole."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from rooflinekit.acceptance import Constant
from rooflinekit.app import recommend
from rooflinekit.capacity import largest_batch
from rooflinekit.cli import run
from rooflinekit.drafting_options import make_drafter
from rooflinekit.errors import RooflineError
from rooflinekit.measurement import Measurement, Run
from rooflinekit.measurement_file import to_line
from rooflinekit.plot.batch import BatchCurve, batch_curve, batches_up_to, speedups_by_batch
from rooflinekit.plot.labels import Label, place, spread
from rooflinekit.plot.points import fitted_roof, points_of
from rooflinekit.plot.ratios import experts_by_width, measured_ratios, ratios_by_width
from rooflinekit.plot.roofline import roofline
from rooflinekit.plot.speedup import near_runs, speedup_curve
from rooflinekit.plot.style import save
from rooflinekit.plot.tradeoff import best_k, best_k_map, speedup_surface
from rooflinekit.plot.verify import verify_curve
from rooflinekit.precision import precision
from rooflinekit.resolve import setup
from rooflinekit.work import Ceiling, Machine, Staircase

MACHINE = Machine("toy", 2e12, {"bf16": 4e14}, evidence={"bandwidth": "datasheet", "peak bf16": "datasheet"})


@pytest.fixture
def ax():
    return Figure(layout="constrained").add_subplot()


@pytest.fixture(scope="module")
def dense():
    return setup("llama-3.1-8b", "h100-sxm", calibration="datasheet")


@pytest.fixture(scope="module")
def sparse():
    return setup("qwen3-30b-a3b", "h100-sxm", calibration="datasheet")


@pytest.fixture(scope="module")
def answers():
    return [
        recommend("llama-3.1-8b", "h100-sxm", name, alpha=0.8, calibration="datasheet")
        for name in ("eagle3", "dspark")
    ]


def line(ax, gid):
    found = [one for one in ax.lines if one.get_gid() == gid]
    assert len(found) == 1, f"{gid}: {[one.get_gid() for one in ax.lines]}"
    return np.asarray(found[0].get_xdata(), dtype=float), np.asarray(found[0].get_ydata(), dtype=float)


def texts(ax):
    return [text.get_text() for text in ax.texts]


# Roofline


def test_ridge_stands_at_peak_over_bandwidth(ax):
    assert roofline(MACHINE, ax=ax) is ax
    xs, ys = line(ax, "ridge point")
    assert (xs[0], ys[0]) == pytest.approx((200.0, 4e14))  # 4e14 / 2e12
    slope_x, slope_y = line(ax, "roof bandwidth")
    assert slope_y / slope_x == pytest.approx([2e12, 2e12])
    assert line(ax, "roof bf16")[1] == pytest.approx([4e14, 4e14])


def test_ridge_in_tokens_counts_the_bytes_of_a_weight(ax):
    roofline(MACHINE, ax=ax, numbers=precision("w4a16"))
    # 200 FLOP/B x (4 + 16/128) / 8 B per weight / 2 FLOP
    assert any("= 51.6 tokens (w4a16 weights)" in text for text in texts(ax))


def test_decode_of_a_bandwidth_bound_model_lies_on_the_slope(dense, ax):
    points = points_of(dense.machine, dense.target)
    assert [p.label for p in points][:3] == ["decode", "verify K = 1", "verify K = 3"]
    decode = points[0]
    assert decode.flop_per_s / decode.intensity == pytest.approx(3.352e12, rel=2e-3)
    # 2 x 7.5 B parameters read, 2 B each, and a cache of 0.54 GB: a little over 1 FLOP per byte.
    assert 1.0 < decode.intensity < 1.2
    roofline(dense.machine, points, ax)
    assert line(ax, "points decode step")[0][0] == decode.intensity


def test_parts_have_points_of_their_own(sparse):
    points = points_of(sparse.machine, sparse.target, parts=True)
    assert {p.part for p in points} == {"step", "linear", "attention", "experts", "lm head"}
    head = next(p for p in points if p.part == "lm head" and p.group == "decode")
    assert head.intensity == pytest.approx(1.0, rel=0.01)


def test_datasheet_is_dashed_and_measured_is_solid(ax):
    evidence = {"bandwidth": "measured", "peak bf16": "datasheet"}
    roofline(replace(MACHINE, evidence=evidence), ax=ax)
    style = {one.get_gid(): one.get_linestyle() for one in ax.lines}
    assert style["roof bandwidth"] == "-"
    assert style["roof bf16"] == "--"


@pytest.mark.parametrize(
    ("ceiling", "expected"),
    [
        (Ceiling(memory_efficiency=0.5, compute_efficiency=0.8), 3.2e14),
        # 4000 rows: 1.25 reads and 3600 times the last slope of 0.25 / 399, at half the bandwidth.
        (
            Ceiling(memory_efficiency=0.5, staircase=Staircase((1.0, 400.0), (1.0, 1.25))),
            min(4e14, 4000 * 1e12 / (1.25 + 3600 * 0.25 / 399)),
        ),
    ],
    ids=["formula", "staircase"],
)
def test_fitted_roof_reaches_its_efficiencies(ceiling, expected, ax):
    machine = replace(
        MACHINE, ceilings={("linear", "bf16"): ceiling}, evidence={**MACHINE.evidence, "ceilings": "fitted"}
    )
    intensity, rate = fitted_roof(machine, precision("bf16"), np.array([1.0, 4000.0]))
    assert intensity == pytest.approx([1.0, 4000.0])
    assert rate[0] == pytest.approx(1e12)
    assert rate[1] == pytest.approx(expected)
    roofline(machine, ax=ax)
    assert len(line(ax, "roof fitted")[0]) > 100


def test_a_device_without_a_published_peak_says_so(ax):
    roofline(replace(MACHINE, peak_flop_per_s={}), ax=ax)
    assert "no bf16 matrix rate is published" in texts(ax)


# Verify


def test_ratios_start_at_one(dense, sparse):
    for ready in (dense, sparse):
        for part, ratio in ratios_by_width(ready.machine, ready.target, np.arange(1.0, 9.0)).items():
            assert ratio[0] == pytest.approx(1.0), part


def test_experts_read_follow_the_occupancy_law(sparse, ax):
    union, total = experts_by_width(sparse.target, np.array([1.0, 8.0]))
    assert total == 128
    assert union == pytest.approx([8.0, 128 * (1 - (1 - 8 / 128) ** 8)])
    assert verify_curve(sparse.machine, sparse.target, ax) is ax
    assert "51.6 of 128" in texts(ax)
    xs, ys = line(ax, "ratio step")
    assert ys[xs == 8][0] == pytest.approx(
        sparse.target.step_s(sparse.machine, 1.0, 4096.0, 8.0)
        / sparse.target.step_s(sparse.machine, 1.0, 4096.0, 1.0)
    )


def test_dense_model_has_no_expert_line(dense, ax):
    verify_curve(dense.machine, dense.target, ax, baseline=dense.machine)
    gids = {one.get_gid() for one in ax.lines}
    assert "ratio experts" not in gids
    assert {"ratio step", "ratio linear", "ratio attention", "baseline step", "guess"} <= gids


def cases():
    common = {"kind": "linear", "dtype": "bf16", "weight_bytes": 8e6}
    rows = (1, 8, 16)
    return [
        Measurement(
            id=f"a/{out}x1024/{n}",
            shape={"rows": n, "out": out, "inner": 1024},
            samples_s=(1e-4 * (1 + n / 16),),
            flops=8e6 * n,
            ratio=() if n == 16 else (1 + n / 20, 1 + n / 40, 1 + n / 10),
            **common,
        )
        for out in (4096, 2048)
        for n in rows
    ]


def test_measured_ratios_keep_interval_and_split(dense, ax):
    rows = measured_ratios(cases(), MACHINE, used={"a/4096x1024/8"})
    assert [(row.shape, row.width) for row in rows] == [
        ("2048 x 1024", 8), ("2048 x 1024", 16), ("4096 x 1024", 8), ("4096 x 1024", 16),
    ]  # fmt: skip
    eight = rows[2]
    assert (eight.ratio, eight.low, eight.high, eight.fitted) == (1.4, 1.2, 1.8, True)
    assert rows[3].ratio == pytest.approx(2.0 / (1 + 1 / 16))  # no paired ratio: medians
    assert rows[3].low == rows[3].high == rows[3].ratio
    assert eight.predicted == 1.0  # 8 rows stay below the ridge of the toy machine
    verify_curve(dense.machine, dense.target, ax, measured=rows)
    assert line(ax, "measured 4096 x 1024 fitted")[1] == pytest.approx([1.4])
    held = next(one for one in ax.lines if one.get_gid() == "measured 4096 x 1024 held out")
    assert held.get_markerfacecolor() == "white"


# Speedup, trade-off, batch


def test_speedup_curve_marks_best_and_near(answers, ax):
    assert speedup_curve(answers, ax) is ax
    for one in answers:
        xs, ys = line(ax, f"best {one.drafter}")
        assert (xs[0], ys[0]) == (one.k, one.speedup)
        assert line(ax, f"speedup {one.drafter}")[1] == pytest.approx([p.speedup for p in one.curve])
    assert line(ax, "break even")[1] == pytest.approx([1.0, 1.0])
    assert f"dspark\n{answers[1].speedup:.2f}x at K = {answers[1].k}" in texts(ax)


def test_speedup_interval_and_scattered_near_best(answers, ax):
    one = replace(answers[0], low=2.5, high=3.5, near_best=(3, 5, 6))
    assert near_runs(one) == [[3], [5, 6]]
    speedup_curve([one], ax)
    assert line(ax, "interval eagle3")[1] == pytest.approx([2.5, 3.5])


def test_contour_at_one_passes_through_a_known_point(ax):
    # K = 1: eta = (1 + alpha) / (1 + c), so the contour at 1 is alpha = c.
    assert speedup_surface(ax, k=1) is ax
    bold = next(one for one in ax.collections if one.get_gid() == "eta = 1")
    nodes = np.vstack([path.vertices for path in bold.get_paths()])
    assert nodes[:, 0] == pytest.approx(nodes[:, 1], abs=1e-3)


@pytest.mark.parametrize("options", [{}, {"c": 0.05}, {"marks": {"here": (0.8, 0.05)}}])
def test_other_surfaces(options, ax):
    speedup_surface(ax, **options)
    assert not options.get("marks") or "here" in texts(ax)


def test_best_k_is_the_argmax(ax):
    ks, speedups = best_k(np.array([0.0, 0.8, 1.0]), np.array([0.05]), max_k=16)
    # By hand: eta(0.8, K, 0.05) = 2.8014 2.8378 2.8226 at K = 4 .. 6 -> 5 or so is the best.
    by_hand = [(1 - 0.8 ** (k + 1)) / 0.2 / (1 + 0.05 * k) for k in range(1, 17)]
    assert ks[0].tolist() == [1, by_hand.index(max(by_hand)) + 1, 16]
    assert speedups[0] == pytest.approx([1 / 1.05, max(by_hand), 17 / 1.8])
    assert best_k_map(ax, max_k=4) is ax
    assert {"K = 1", "2", "does not pay"} <= set(texts(ax))


def test_batch_curve_marks_where_it_stops(ax):
    batch = np.array([1.0, 4.0, 16.0, 64.0])
    down = BatchCurve("K = 3", batch, np.array([2.0, 1.5, 0.5, 1.5]), np.full(4, 3.0))
    assert down.stops == pytest.approx([8.0])  # half way between 4 and 16 in the logarithm
    assert down.starts == pytest.approx([32.0])
    best = BatchCurve("best K", batch, np.array([2.0, 1.6, 1.2, 1.1]), np.array([5.0, 4.0, 2.0, 1.0]))
    assert batch_curve([down, best], ax, fits_up_to=20.0) is ax
    assert {"stops at 8", "pays at 32", "batch > 20\ndoes not fit"} <= set(texts(ax))


def test_speedups_by_batch_take_the_best_k(dense):
    drafter = make_drafter("dspark", dense.target)
    batches = batches_up_to(8, per_octave=1)
    assert batches.tolist() == [1, 2, 4, 8]
    curves = speedups_by_batch(
        dense.machine, dense.target, drafter, Constant(0.8), batches=batches, ks=(1, 7, 9)
    )
    assert [curve.label for curve in curves] == ["K = 1", "K = 7", "best K"]  # its block ends at 7
    assert np.all(curves[-1].speedup >= curves[0].speedup)
    one = recommend("llama-3.1-8b", "h100-sxm", "dspark", alpha=0.8, batch=4, calibration="datasheet")
    assert (curves[-1].speedup[2], curves[-1].k[2]) == (pytest.approx(one.speedup), one.k)


def test_largest_batch_is_the_last_that_fits(dense):
    drafter = make_drafter("eagle3", dense.target)
    room = largest_batch(dense.target, dense.hardware, drafter, 4096.0)
    # 85 GB less 16 GB of weights and 1 GB of drafter, over 0.55 GB of caches per sequence.
    assert 110 < room < 130


# Labels, files, figures


def test_spread_keeps_gap_order_and_bounds():
    assert spread([0.99, 1.0], 0.1) == pytest.approx([0.9, 1.0])
    assert spread([0.0, 0.01, 0.5], 0.1) == pytest.approx([0.0, 0.1, 0.5])
    assert spread([], 0.1) == []


def test_labels_do_not_cover_each_other(ax):
    ax.plot([0, 1], [0, 1])
    made = place(ax, [Label(0.5, 0.5, "one", "k"), Label(0.51, 0.5, "two", "k")])
    boxes = [note.get_window_extent() for note in made]
    assert not boxes[0].overlaps(boxes[1])


@pytest.mark.parametrize("name", ["a.png", "a.svg", "a.pdf"])
def test_equal_pictures_are_equal_files(tmp_path, name):
    first = save(best_k_map(max_k=2), tmp_path / name).read_bytes()
    assert len(first) > 1000
    assert save(best_k_map(max_k=2).figure, tmp_path / name).read_bytes() == first
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_nothing_half_written(tmp_path, ax):
    with pytest.raises(RooflineError, match=r"\.gif cannot be written; use \.png or \.svg or \.pdf"):
        save(ax, tmp_path / "a.gif")
    with pytest.raises(RooflineError, match="cannot be written"):
        save(ax, tmp_path / "missing" / "a.png")
    assert list(tmp_path.iterdir()) == []


def test_own_figures_leave_no_global_state():
    import matplotlib as mpl

    # Reading `backend` would choose one; everything else is compared.
    names = [name for name in mpl.rcParams if name != "backend"]
    before = [mpl.rcParams[name] for name in names]
    roofline(MACHINE)
    assert [mpl.rcParams[name] for name in names] == before
    if "matplotlib.pyplot" in sys.modules:
        assert sys.modules["matplotlib.pyplot"].get_fignums() == []


def test_drawing_does_not_import_pyplot():
    code = (
        "import sys; from rooflinekit.plot.tradeoff import best_k_map; assert 'matplotlib' not in sys.modules;"
        "best_k_map(max_k=2); assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_missing_matplotlib_names_the_extra(monkeypatch, tmp_path, capsys):
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(RooflineError, match=r"pip install 'rooflinekit\[plot\]'"):
        best_k_map()
    assert run(["plot", "tradeoff", "--out", str(tmp_path / "a.png")]) == 2
    assert "matplotlib" in capsys.readouterr().err


# Command line

LLAMA = ["--model", "llama-3.1-8b", "--hardware", "h100-sxm"]


@pytest.mark.parametrize(
    "words",
    [
        ["roofline", *LLAMA, "--parts"],
        ["verify", *LLAMA, "--max-width", "16"],
        ["speedup", *LLAMA, "--drafters", "eagle3,small-lm:llama-3.2-1b", "--alpha", "0.8", "--max-k", "4"],
        ["tradeoff"],
        ["tradeoff", "--best-k", "--max-k", "4"],
        ["batch", *LLAMA, "--drafter", "eagle3", "--alpha", "0.6", "--max-batch", "16"],
    ],
    ids=lambda words: " ".join(words[:1] + words[1:2]),
)
def test_command_writes_a_picture(words, tmp_path, capsys):
    out = tmp_path / "new folder" / "a.svg"
    assert run(["plot", *words, "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"wrote {out}\n"
    assert out.read_text(encoding="utf-8").rstrip().endswith("</svg>")


def test_command_draws_measurements(tmp_path):
    file = tmp_path / "m.jsonl"
    started = Run(id="a", started="2026-01-01T00:00:00+00:00", device={"name": "x"}, environment={})
    file.write_text("\n".join(to_line(record) for record in (started, *cases())) + "\n", encoding="utf-8")
    out = tmp_path / "a.svg"
    words = ["plot", "verify", *LLAMA, "--measurements", str(file), "--out", str(out)]
    assert run(words) == 0
    assert "measured 4096 x 1024 held out" in out.read_text(encoding="utf-8")
    assert run([*words, "--batch", "2"]) == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["tradeoff", "--out", "a.gif"], ".gif cannot be written"),
        (["roofline", *LLAMA, "--out", "a.gif"], ".gif cannot be written"),
        (["tradeoff", "--k", "3", "--c", "0.1", "--out", "a.png"], "exclude each other"),
        (["tradeoff", "--c", "-1", "--out", "a.png"], "--c -1 is out of range"),
        (["speedup", *LLAMA, "--drafters", ",", "--alpha", "0.8", "--out", "a.png"], "--drafters is empty"),
        (
            ["batch", *LLAMA, "--drafter", "eagle3", "--alpha", "0.8", "--ks", "0", "--out", "a.png"],
            "--ks '0'",
        ),
        (["batch", *LLAMA, "--drafter", "eagle3", "--out", "a.png"], "acceptance needs exactly one"),
        (["verify", *LLAMA, "--measurements", "no.jsonl", "--out", "a.png"], "no.jsonl: cannot be read"),
    ],
)
def test_what_cannot_be_drawn_is_said(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(["plot", *words]) == 2
    assert said in capsys.readouterr().err
    assert list(Path().iterdir()) == []
