"""Pictures of speculation: what the artists show equals the library's numbers and hand values."""

from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

import rooflinekit as rk
from rooflinekit.acceptance import Constant
from rooflinekit.app.drafting import asked_case
from rooflinekit.capacity import largest_batch
from rooflinekit.cli import run
from rooflinekit.curve import Loss
from rooflinekit.load import Load
from rooflinekit.plot.caption import caption_of
from rooflinekit.plot.crossover import Needed, crossover_curve, needed_by_batch
from rooflinekit.plot.draft_cost import DraftCurve, draft_cost_curve, draft_curves
from rooflinekit.plot.frontier import BEST, PLAIN, Frontier, frontier_curve, frontiers, gaps
from rooflinekit.plot.k_map import draw_k_map, k_map
from rooflinekit.plot.loss import loss_waterfall, merged_losses
from rooflinekit.plot.patches import patches
from rooflinekit.plot.schedule import schedule_curve
from rooflinekit.plot.style import one_two_five, save
from rooflinekit.scheduling import round_time, schedule_verification

LLAMA, QWEN = ("llama-3.1-8b", "h100-sxm"), ("qwen3-30b-a3b", "h200-sxm")
DRAFTERS = ("eagle3", "dflash", "dspark", "small-lm:llama-3.2-1b", "ngram")


def asked(drafter="eagle3", model=LLAMA, alpha=0.6, **options):
    return asked_case(*model, drafter, max_k=16, k=None, options={"alpha": alpha, **options})


@pytest.fixture(scope="module")
def dense():
    return asked()


@pytest.fixture(scope="module")
def sparse():
    return asked(model=QWEN)


@pytest.fixture
def ax():
    return Figure(figsize=(7.2, 5.0), layout="constrained").add_subplot()


def line(ax, gid):
    found = [one for one in ax.lines if one.get_gid() == gid]
    assert len(found) == 1, f"{gid}: {[one.get_gid() for one in ax.lines]}"
    return np.asarray(found[0].get_xdata(), dtype=float), np.asarray(found[0].get_ydata(), dtype=float)


def texts(ax):
    return [text.get_text() for text in ax.texts]


def overlapping(ax):
    """Pairs of texts that cover each other in the finished picture."""
    ax.figure.draw_without_rendering()
    shown = [text for text in ax.texts if text.get_text()]
    boxes = {text.get_text() + str(i): text.get_window_extent() for i, text in enumerate(shown)}
    return [(a, b) for a, b in combinations(boxes, 2) if boxes[a].overlaps(boxes[b])]


# Draft cost


@pytest.mark.parametrize("host", ["none", "vllm"])
def test_draft_time_is_that_of_the_recommendation(host, ax):
    found = [asked(name, host=host) for name in DRAFTERS]
    curves = draft_curves([one.case for one in found], Load(4.0, 4096.0))
    assert draft_cost_curve(curves, ax) is ax
    for curve, name in zip(curves, DRAFTERS, strict=True):
        answer = rk.recommend(*LLAMA, name, alpha=0.6, batch=4, host=host)
        xs, ys = line(ax, f"draft {curve.label}")
        assert xs.tolist() == [point.k for point in answer.curve]
        assert ys == pytest.approx([1e3 * (point.draft_s + point.draft_host_s) for point in answer.curve])
        assert line(ax, "plain step")[1] == pytest.approx([1e3 * answer.best.plain_s] * 2)
    gids = {one.get_gid() for one in ax.lines}
    assert ("device eagle3" in gids) == (host == "vllm")
    # A lookup has no device time that a line could show.
    assert "device ngram" not in gids
    if host == "vllm":
        thin, thick = line(ax, "device eagle3")[1], line(ax, "draft eagle3")[1]
        assert thick - thin == pytest.approx(0.37 * np.arange(1, 17))  # pass_s of the host, a pass a token


def test_kinds_of_drafters_have_their_shapes():
    """Serial in proportion to K, one pass for any K, one pass and a tail, host only."""
    curves = {
        name: draft_curves([asked(name).case], Load(1.0, 4096.0))[0]
        for name in ("eagle3", "dflash", "dspark", "ngram")
    }
    assert curves["eagle3"].words.endswith(" per token")
    assert "+" not in curves["eagle3"].words
    assert curves["dflash"].words.endswith(" for any K")
    assert " + " in curves["dspark"].words
    assert curves["ngram"].words.endswith(" for any K")
    assert not curves["ngram"].device_s.any()


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        ([1e-3, 2e-3, 3e-3], "1 ms per token"),
        ([1e-3, 1e-3, 1.01e-3], "1 ms for any K"),
        ([1.1e-3, 1.3e-3, 1.5e-3], "900 us + 200 us per token"),
        ([2e-3], "2 ms for any K"),
        ([2e-3, 1.5e-3, 1e-3], "2.5 ms - 500 us per token"),
    ],
)
def test_the_slope_is_said_in_words(seconds, words):
    curve = DraftCurve(
        "a", np.arange(1.0, len(seconds) + 1.0), np.array(seconds), np.zeros(len(seconds)), 1.0
    )
    assert curve.words == words


def test_the_second_axis_counts_plain_steps(ax):
    curve = DraftCurve("a", np.array([1.0, 2.0]), np.array([1e-3, 2e-3]), np.zeros(2), 4e-3)
    draft_cost_curve([curve], ax)
    (steps,) = ax.child_axes
    low, high = ax.get_ylim()
    assert steps.get_ylim() == pytest.approx((low / 4.0, high / 4.0))


def test_labels_of_draft_times_do_not_overlap(ax):
    draft_cost_curve(draft_curves([asked(name).case for name in DRAFTERS], Load(1.0, 4096.0)), ax)
    assert overlapping(ax) == []


# Best K by batch and context


@pytest.mark.parametrize("model", [LLAMA, QWEN], ids=["dense", "sparse"])
def test_the_map_shows_the_recommended_k(model, ax):
    one = asked(model=model)
    found = k_map(one.case, one.ready.hardware, max_batch=64, max_context=8192)
    assert draw_k_map(found, ax) is ax
    mesh = next(item for item in ax.collections if item.get_gid() == "best K")
    shown = np.asarray(mesh.get_array()).reshape(len(found.context), len(found.batch))
    for i, j in ((0, 0), (3, 4), (len(found.batch) - 1, len(found.context) - 1)):
        answer = rk.recommend(
            *model,
            "eagle3",
            alpha=0.6,
            batch=found.batch[i],
            context=found.context[j],
            allow_oversize=True,
        )
        assert shown[j, i] == (answer.k if answer.pays else 0)
        assert found.speedup[i, j] == pytest.approx(answer.speedup)
    assert found.fits[-1] == largest_batch(
        one.ready.target, one.ready.hardware, one.case.drafter, found.context[-1]
    )


def test_every_k_written_stands_on_its_own_patch(sparse, ax):
    found = k_map(sparse.case, sparse.ready.hardware)
    draw_k_map(found, ax)
    ax.figure.draw_without_rendering()
    named = 0
    for text in ax.texts:
        words = text.get_text()
        if not (words.isdecimal() or words.startswith("K = ")):
            continue
        x, y = text.get_position()
        i, j = (
            int(np.argmin(np.abs(np.log(axis / at)))) for axis, at in ((found.batch, x), (found.context, y))
        )
        assert found.k[i, j] == int(words.removeprefix("K = "))
        assert x <= found.fits[j] * 1.2
        named += 1
    assert named >= len(np.unique(found.k)) - 1
    # One border, at speedup 1, where it is crossed.
    assert any(item.get_gid() == "does not fit" for item in ax.collections)


@pytest.mark.parametrize("drafter", ["eagle3", "dflash"])
@pytest.mark.parametrize("model", [LLAMA, QWEN], ids=["dense", "sparse"])
def test_names_on_the_map_do_not_overlap(model, drafter, ax):
    one = asked(drafter, model=model)
    draw_k_map(k_map(one.case, one.ready.hardware), ax)
    assert overlapping(ax) == []


def test_the_border_is_where_nothing_pays(ax):
    one = asked(alpha=0.3)
    found = k_map(one.case, one.ready.hardware, max_context=4096)
    assert (found.k == 0).tolist() == (found.speedup <= 1.0).tolist()
    draw_k_map(found, ax)
    border = next(item for item in ax.collections if item.get_gid() == "speedup = 1")
    nodes = np.vstack([path.vertices for path in border.get_paths()])
    # Contours cross the sides of cells: every node lies between a cell that pays and one that does not.
    for x, y in nodes[:: max(1, len(nodes) // 20)]:
        i, j = np.searchsorted(found.batch, x), np.searchsorted(found.context, y)
        around = found.speedup[max(i - 1, 0) : i + 2, max(j - 1, 0) : j + 2]
        assert around.min() <= 1.0 <= around.max()
    assert any("does not" in words for words in texts(ax))


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_maps_of_one_patch_can_be_drawn(alpha, ax):
    one = asked("ngram", alpha=alpha)
    draw_k_map(k_map(one.case, one.ready.hardware, max_batch=2, max_context=64), ax)


@given(
    arrays(
        float, st.tuples(st.integers(1, 6), st.integers(1, 6)), elements=st.sampled_from([0.0, 1.0, np.nan])
    )
)
def test_patches_cover_every_cell_once(values):
    found = patches(values)
    assert sum(one.cells for one in found) == np.count_nonzero(~np.isnan(values))
    for one in found:
        for i, j in one.places:
            assert values[i, j] == one.value
            # No neighbour within the room has another value.
            for a, b in ((i + n, j) for n in range(1 - one.room, one.room)):
                assert values[a, b] == one.value
            for a, b in ((i, j + n) for n in range(1 - one.room, one.room)):
                assert values[a, b] == one.value


def test_a_ring_is_one_patch_and_its_hole_another():
    ring = np.zeros((5, 5))
    ring[1:4, 1:4] = [[1, 1, 1], [1, 2, 1], [1, 1, 1]]
    assert [(one.value, one.cells) for one in patches(ring)] == [(0.0, 16), (1.0, 8), (2.0, 1)]
    assert patches(np.ones((3, 5)))[0].places[0] == (1, 2)


# Frontier


def test_the_frontier_is_tokens_per_second_of_recommendations(dense, ax):
    curves = frontiers(dense.case, context=2048.0, max_batch=64.0, plain_max_batch=70.0, ks=(3,))
    assert [curve.label for curve in curves] == [PLAIN, "K = 3", BEST]
    frontier_curve(curves, ax)
    for batch in (1, 8, 64):
        best = rk.recommend(*LLAMA, "eagle3", alpha=0.6, batch=batch, context=2048)
        fixed = rk.recommend(*LLAMA, "eagle3", alpha=0.6, batch=batch, context=2048, k=3)
        values = (best.plain_tokens_per_s, fixed.tokens_per_s, best.tokens_per_s)
        for curve, per_s in zip(curves, values, strict=True):
            xs, ys = line(ax, f"frontier {curve.label}")
            at = list(curve.batch).index(batch)
            assert (xs[at], ys[at]) == (pytest.approx(per_s), pytest.approx(batch * per_s))
        assert curves[-1].k[list(curves[-1].batch).index(batch)] == best.k
        assert any(f"batch {batch}, K = {best.k}" in words for words in texts(ax))
    assert (curves[0].batch[-1], curves[-1].batch[-1]) == (70, 64)


def test_gaps_by_hand(ax):
    plain = Frontier(
        PLAIN, np.array([1.0, 2.0]), np.array([100.0, 60.0]), np.array([100.0, 120.0]), np.zeros(2)
    )
    best = Frontier(
        BEST, np.array([1.0, 2.0]), np.array([200.0, 70.0]), np.array([200.0, 140.0]), np.array([3.0, 2.0])
    )
    # Both reach 70 to 100: at 85, plain 100 + 15/40 x 20; the best K gives most with one sequence.
    (gap,) = gaps(plain, best, shares=(0.5,))
    assert (gap.user_per_s, gap.plain_per_s, gap.best_per_s) == pytest.approx((85.0, 107.5, 200.0))
    assert gap.gain == pytest.approx(200.0 / 107.5)
    frontier_curve([plain, best], ax)
    arrows = [one for one in ax.lines if one.get_gid() == "gap"]
    # The second, at 92.5, is too near to the first for a label of its own.
    assert [one.get_xdata()[0] for one in arrows] == pytest.approx([79.0])
    assert arrows[0].get_ydata() == pytest.approx([110.5, 200.0])
    assert gaps(plain, replace(best, user_per_s=best.user_per_s + 500.0)) == ()
    assert np.isnan(plain.total_at(101.0))


def test_no_batch_gives_more_at_that_speed(sparse):
    """Interpolation over the grid against every whole batch."""
    curves = frontiers(sparse.case, context=1024.0, max_batch=200.0)
    batch = np.arange(1.0, 201.0)
    step_s = np.array(
        [float(sparse.ready.target.step_s(sparse.ready.machine, b, 1024.0, 1.0)) for b in batch]
    )
    for speed in np.quantile(1.0 / step_s, [0.2, 0.5, 0.9]):
        every = (batch / step_s)[1.0 / step_s >= speed].max()
        assert curves[0].total_at(float(speed)) == pytest.approx(every, rel=0.03)


def test_where_nothing_pays_the_best_is_plain():
    one = asked(alpha=0.0)
    plain, best = frontiers(one.case, context=512.0, max_batch=8.0, ks=())
    assert not best.k.any()
    assert best.total_per_s == pytest.approx(plain.total_per_s)


@pytest.mark.parametrize("model", [LLAMA, QWEN], ids=["dense", "sparse"])
def test_labels_of_the_frontier_do_not_overlap(model, ax):
    one = asked(model=model, alpha=0.7)
    frontier_curve(frontiers(one.case, context=2048.0, max_batch=200.0), ax)
    assert overlapping(ax) == []


# Loss


@pytest.mark.parametrize("options", [{}, {"host": "vllm", "batch": 32}, {"overlap": 0.5, "k": 2}])
def test_the_waterfall_ends_at_the_speedup(options, ax):
    answer = rk.recommend(*LLAMA, "small-lm:llama-3.2-1b", alpha=0.7, **options)
    assert loss_waterfall(answer, ax) is ax
    bars = [(bar.get_gid(), bar.get_x(), bar.get_width()) for bar in ax.patches]
    assert bars[0] == ("bar ideal", 0.0, answer.k + 1.0)
    assert bars[-1] == ("bar speedup", 0.0, answer.speedup)
    shown = {gid.removeprefix("bar "): (x, width) for gid, x, width in bars[1:-1]}
    known = {loss.term: loss.speedup_lost for loss in answer.loss}
    for term, (_, width) in shown.items():
        if term != "other":
            assert width == pytest.approx(abs(known[term]))
    # Every bar begins where the one before ended.
    levels = [answer.k + 1.0]
    for one in merged_losses(answer.loss, answer.k + 1.0):
        assert shown[one.term][0] == pytest.approx(min(levels[-1], levels[-1] - one.speedup_lost))
        levels.append(levels[-1] - one.speedup_lost)
    assert levels[-1] == pytest.approx(answer.speedup)
    assert f"{answer.speedup:.2f}x" in texts(ax)
    assert overlapping(ax) == []


def test_small_losses_are_added_up():
    losses = [
        Loss(term=term, speedup_lost=lost)
        for term, lost in (("a", 2.0), ("b", 0.03), ("c", -0.02), ("d", 1.0))
    ]
    merged = merged_losses(losses, 8.0)
    assert [one.term for one in merged] == ["a", "d", "other"]
    assert merged[-1].speedup_lost == pytest.approx(0.01)
    assert [one.term for one in merged_losses(losses[:2], 8.0)] == ["a", "b"]


# Crossover


def test_what_is_needed_breaks_even(dense):
    """At the rate that is drawn the speedup is 1."""
    (needed,) = needed_by_batch([dense.case], batches=np.array([1.0, 16.0, 200.0]), context=1024.0, ks=(3,))
    for batch, rate, length in zip(needed.batch, needed.rate, needed.length, strict=True):
        # The first draft pass depends a little on the tokens accepted: the cost stays that of alpha 0.6.
        assert Constant(rate).expected(3.0) == pytest.approx(length)
        one = rk.recommend(*LLAMA, "eagle3", alpha=0.6, batch=batch, context=1024, k=3)
        assert length == pytest.approx(one.break_even_acceptance_length)
    assert needed.given_rate == pytest.approx(0.6)


def test_the_crossing_is_where_the_batch_stops_paying(dense, ax):
    batches = np.arange(1.0, 400.0)
    (needed,) = needed_by_batch([dense.case], batches=batches, context=1024.0, ks=(7,))
    crossover_curve([needed], ax)
    assert line(ax, "needed K = 7")[1] == pytest.approx(needed.rate, nan_ok=True)
    assert line(ax, "given K = 7")[1] == pytest.approx([0.6, 0.6])
    speedup = np.asarray(dense.case.rounds(batch=batches, context=1024.0, k=7.0).speedup)
    first = batches[np.argmax(speedup <= 1.0)]
    assert f"stops at {first:.0f}" in texts(ax)
    assert np.ceil(needed.crossings[0]) == first
    x, y = line(ax, "stops K = 7")
    assert (x[0], y[0]) == (pytest.approx(needed.crossings[0]), pytest.approx(0.6))


def test_lengths_and_impossible_rates(ax):
    batch = np.array([1.0, 4.0, 16.0])
    needed = Needed("K = 1", 1, batch, np.array([1.2, 1.8, 2.4]), 1.5)
    assert needed.rate == pytest.approx([0.2, 0.8, np.nan], nan_ok=True)
    assert needed.crossings == pytest.approx([2.0])  # half way between 1 and 4 in the logarithm
    other = Needed("K = 2", 2, batch, np.array([3.0, 1.5, 1.5]), 1.75)
    crossover_curve([needed, other], ax, lengths=True, fits_up_to=10.0)
    assert line(ax, "needed K = 1")[1] == pytest.approx(needed.length)
    assert line(ax, "given K = 2")[1] == pytest.approx([1.75, 1.75])
    assert {
        "K = 1 gives 1.50",
        "K = 2 gives 1.75",
        "stops at 2",
        "pays at 4",
        "batch > 10\ndoes not fit",
    } <= set(texts(ax))


def test_drafters_are_named_and_short_blocks_left_out():
    cases = [asked(name).case for name in ("eagle3", "dspark")]
    found = needed_by_batch(cases, batches=np.array([1.0, 2.0]), context=0.0, ks=(3, 12))
    assert [one.label for one in found] == ["eagle3, K = 3", "eagle3, K = 12", "dspark, K = 3"]


# Confidence-scheduled verification


def test_the_optimum_and_the_best_equal_length_are_marked(ax):
    one = asked("dspark")
    case = one.case
    survival = np.repeat([0.9, 0.3], 128)[:, None] ** np.arange(1.0, 8.0)
    found = schedule_verification(case, survival, 1000.0)
    schedule_curve(survival, round_time(case, survival, 1000.0), ax)
    x, y = line(ax, "best")
    assert (x[0], y[0]) == (256 + sum(found.lengths), pytest.approx(found.tokens / found.round_s))
    x, y = line(ax, "best equal length")
    assert (x[0], y[0]) == (256 * (1 + found.same_length), pytest.approx(found.same_tokens / found.same_s))
    rows, per_s = line(ax, "by confidence")
    assert (rows[0], rows[-1], per_s.max()) == (256, 256 * 8, pytest.approx(found.tokens / found.round_s))
    assert any(f"{100 * found.gain:+.1f} % over equal lengths" in words for words in texts(ax))


def test_equal_lengths_by_hand(ax):
    """Two sequences, a cost of 1 + 0.5 rows: (2 + 1.1) / 3 with one draft each, (2 + 0.9 + 0.8) / 3 unequal."""
    schedule_curve(np.array([[0.9, 0.8], [0.2, 0.1]]), lambda rows: 1.0 + 0.5 * rows, ax)
    assert line(ax, "equal lengths")[1] == pytest.approx([2.0 / 2.0, 3.1 / 3.0, 4.0 / 4.0])
    assert line(ax, "best")[1] == pytest.approx([3.7 / 3.0])
    assert any(words.startswith("1 x 2, 1 x 0 drafts") for words in texts(ax))


# Captions, ticks, files, commands


def test_the_caption_names_all_that_holds():
    one = asked(tp=2, host="vllm", overlap=0.5, draft_cost=0.1)
    said = caption_of(one.case, one.ready.hardware.title, "fit", batch=2, context=100)
    assert said.device == "2 x NVIDIA H100 SXM5 80GB"
    assert said.conditions == (
        "alpha 0.6, bf16, batch 2, context 100, with host time, overlap 0.5, draft time given; fit"
    )


@given(st.floats(1e-3, 1e3), st.floats(1.0, 1e7))
def test_ticks_are_round_and_inside(low, span):
    ticks = one_two_five(low, low * span)
    assert all(low <= tick <= low * span for tick in ticks)
    assert all(a < b for a, b in pairwise(ticks))
    assert len(ticks) <= 13


COMMANDS = [
    ["draft-cost", "--drafters", "eagle3,ngram", "--host", "vllm"],
    ["k-map", "--drafter", "eagle3", "--alpha", "0.6", "--max-batch", "64"],
    ["frontier", "--drafter", "eagle3", "--alpha", "0.6", "--max-batch", "32"],
    ["loss", "--drafter", "eagle3", "--alpha", "0.6"],
    ["tree", "--drafter", "eagle3", "--alpha", "0.6", "--max-nodes", "8"],
    ["tree", "--drafter", "eagle3", "--alpha", "0.6", "--max-nodes", "8", "--kind", "surface"],
    ["crossover", "--drafters", "eagle3,dspark", "--alpha", "0.6", "--lengths"],
    ["schedule", "--drafter", "dspark", "--rates", "0.9,0.3", "--batch", "8"],
]
MODEL = ["--model", "llama-3.1-8b", "--hardware", "h100-sxm"]


@pytest.mark.parametrize("ending", ["png", "svg"])
@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0] + words[-1].strip("-"))
def test_command_writes_a_picture(words, ending, tmp_path, capsys):
    out = tmp_path / f"a.{ending}"
    assert run(["plot", *words, *MODEL, "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"wrote {out}\n"
    written = out.read_bytes()
    assert written.startswith(b"\x89PNG") if ending == "png" else written.rstrip().endswith(b"</svg>")
    if ending == "svg":
        assert b"h100-sxm5-80gb-vllm" in written  # the calibration is named


def test_equal_pictures_are_equal_files(dense, tmp_path):
    found = k_map(dense.case, dense.ready.hardware, max_batch=16, max_context=1024)
    files = [save(draw_k_map(found), tmp_path / f"{name}.svg").read_bytes() for name in "ab"]
    assert files[0] == files[1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["draft-cost", *MODEL, "--drafters", ","], "--drafters is empty"),
        (["draft-cost", *MODEL, "--alpha", "2"], "acceptance rate 2.0 is not in 0..1"),
        (["k-map", *MODEL, "--drafter", "eagle3"], "acceptance needs exactly one"),
        (
            ["k-map", *MODEL, "--drafter", "eagle3", "--alpha", "0.6", "--max-batch", "0"],
            "--max-batch 0 is out of",
        ),
        (
            ["frontier", *MODEL, "--drafter", "eagle3", "--alpha", "0.6", "--ks", "x"],
            "--ks 'x' is not a list",
        ),
        (
            ["frontier", "--model", "llama-3.1-70b", *MODEL[2:], "--drafter", "eagle3", "--alpha", "0.6"],
            "what fits: --tp",
        ),
        (["loss", *MODEL, "--drafter", "dspark", "--alpha", "0.6", "--k", "9"], "past the trained block"),
        (["crossover", *MODEL, "--drafters", "dspark", "--alpha", "0.6", "--ks", "9"], "--ks '9' has no K"),
        (["tree", *MODEL, "--drafter", "eagle3", "--alpha", "0.6", "--kind", "x"], "'x' is not one of"),
        (["schedule", *MODEL, "--drafter", "dspark", "--rates", "0.9,2"], "--rates '0.9,2' is not a list"),
        (["schedule", *MODEL, "--drafter", "dspark", "--rates", "0.9", "--k", "9"], "--k 9 is out of range"),
        (
            ["schedule", *MODEL, "--drafter", "dspark", "--rates", "0.9,0.8", "--batch", "1"],
            "--batch 1 is out",
        ),
    ],
)
def test_what_cannot_be_drawn_is_said(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(["plot", *words, "--out", "a.png"]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error
    assert list(tmp_path.iterdir()) == []
