"""From works to times: the norm of two terms, tiles, staircases, ceilings, and laws that always hold."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rooflinekit.work import (
    ROOFLINE,
    Ceiling,
    Machine,
    Pass,
    Staircase,
    Work,
    bound,
    p_norm,
    padded,
    plan_time_s,
    work_terms_s,
    work_time_s,
    works_time_s,
)
from tests.strategies import ceilings, log_floats, machines, staircases, works

terms = st.one_of(st.just(0.0), log_floats(1e-12, 1e3))
sharpness = st.one_of(st.just(math.inf), st.floats(1.0, 64.0))
NVLINK = Machine("m", 2e12, {"bf16": 4e14}, link_bytes_per_s=1e11)


@given(terms, terms, sharpness)
def test_the_norm_lies_between_the_larger_term_and_the_sum(a, b, p):
    """Overlap is never better than perfect and never worse than none."""
    assert max(a, b) * (1 - 1e-12) <= p_norm(a, b, p) <= (a + b) * (1 + 1e-12)


@given(terms, terms, terms, sharpness)
def test_the_norm_grows_with_each_term(a, b, more, p):
    """More bytes or more FLOPs never take less time."""
    assert p_norm(a + more, b, p) >= p_norm(a, b, p) * (1 - 1e-12)
    assert p_norm(a, b + more, p) >= p_norm(a, b, p) * (1 - 1e-12)


@given(terms, terms, st.floats(1.0, 30.0), st.floats(1.0, 2.0))
def test_a_sharper_knee_is_never_slower(a, b, p, factor):
    """The norm falls from the sum at p = 1 to the larger term at infinity."""
    assert p_norm(a, b, p * factor) <= p_norm(a, b, p) * (1 + 1e-12)
    assert p_norm(a, b, 1.0) == pytest.approx(a + b)
    assert p_norm(a, b, math.inf) == max(a, b)
    assert p_norm(a, b, 4096.0) == pytest.approx(max(a, b), rel=1e-3)


@given(terms, terms, sharpness)
def test_the_norm_is_symmetric(a, b, p):
    """It does not matter which term is memory."""
    assert p_norm(a, b, p) == p_norm(b, a, p)


@pytest.mark.parametrize("p", [1.0, 2.0, 16.0, 1e6, math.inf])
@pytest.mark.parametrize(
    ("a", "b"), [(1e300, 1e300), (1e300, 1e-300), (1e-300, 1e-300), (5e-324, 5e-324), (0.0, 1e308)]
)
def test_the_norm_does_not_overflow(a, b, p):
    """Powers are taken of a ratio, so huge and tiny times survive."""
    expected = max(a, b) if min(a, b) < max(a, b) * 1e-3 else max(a, b) * 2 ** (1 / p)
    assert p_norm(a, b, p) == pytest.approx(expected, rel=1e-3, abs=0)
    assert p_norm(np.array([a]), np.array([b]), p)[0] == pytest.approx(expected, rel=1e-3, abs=0)


@given(st.lists(st.tuples(terms, terms), min_size=1, max_size=5), sharpness)
def test_the_norm_of_arrays_is_that_of_their_elements(pairs, p):
    """One call with arrays gives what many calls with floats give; zeros included."""
    a, b = np.array(pairs).T
    found = p_norm(a, b, p)
    assert found == pytest.approx([p_norm(x, y, p) for x, y in pairs], rel=1e-12)
    assert p_norm(a, pairs[0][1], p) == pytest.approx([p_norm(x, pairs[0][1], p) for x in a], rel=1e-12)
    assert p_norm(a[:, None], b[None, :], p).shape == (len(pairs), len(pairs))


@given(st.floats(0.5, 1e5), st.sampled_from([1.0, 8.0, 16.0, 128.0]))
def test_padding_rounds_up_by_less_than_a_tile(rows, tile):
    """Rows are rounded up to whole tiles, alike for floats and arrays."""
    found = padded(rows, tile)
    assert rows <= found
    assert found < rows + tile
    assert tile == 1.0 or found % tile == 0
    assert padded(np.array([rows, rows]), tile) == pytest.approx([found, found])


# --- staircase


@given(staircases())
def test_a_staircase_goes_through_its_measured_points(stairs):
    """At a measured row count the cost is the measured one, also beside a break."""
    assert [stairs.at(row) for row in stairs.rows] == pytest.approx(stairs.reads)


@given(staircases(), st.floats(0.0, 1.0))
def test_a_staircase_interpolates_inside_a_regime_and_never_across_a_break(stairs, share):
    """Between two points: a straight line in one regime, the last measured cost before a break."""
    pairs = zip(
        zip(stairs.rows, stairs.reads, strict=True),
        zip(stairs.rows[1:], stairs.reads[1:], strict=True),
        strict=False,
    )
    for (low, left), (high, right) in pairs:
        rows = low + share * (high - low)
        assume(rows < high)
        expected = left if high in stairs.breaks else left + (right - left) * (rows - low) / (high - low)
        assert stairs.at(rows) == pytest.approx(expected)


def test_a_staircase_keeps_the_cost_before_its_first_row():
    """Fewer rows than were ever measured cost what the fewest measured did."""
    assert Staircase((4.0, 8.0), (1.5, 2.0)).at(1.0) == 1.5


@given(staircases(), st.floats(1.0, 50.0))
def test_a_staircase_grows_with_the_rows_beyond_its_last(stairs, times):
    """Beyond the table the last slope goes on: never falling, never faster than in proportion to the rows."""
    last = stairs.rows[-1]
    found = stairs.at(last * times)
    assert stairs.reads[-1] * (1 - 1e-12) <= found <= stairs.reads[-1] * times * (1 + 1e-12)


def test_the_last_slope_of_a_staircase_goes_on():
    """From 1.0 at 32 rows to 1.2 at 64, the next 64 rows add 0.4; a lone last row grows in proportion."""
    assert Staircase((1.0, 32.0, 64.0), (1.0, 1.0, 1.2)).at(128.0) == pytest.approx(1.6)
    assert Staircase((1.0, 32.0, 64.0), (1.0, 1.0, 3.0), (64.0,)).at(128.0) == pytest.approx(6.0)


def test_beyond_a_flat_staircase_the_peak_binds():
    """A table that was still flat at 64 rows does not hide the compute roof at 4096."""
    flat = Ceiling(staircase=Staircase((1.0, 64.0), (1.0, 1.0)))
    device = Machine("m", 1e12, {"bf16": 1e14}, ceilings={("linear", "bf16"): flat})
    product = Work("l", "linear", "bf16", rows=4096.0, flops=2.0 * 4096 * 1e8, weight_bytes=2e8)
    assert work_time_s(product, device) == pytest.approx(2.0 * 4096 * 1e8 / 1e14)


def test_a_break_stands_between_two_measured_rows():
    """A break at a row that was not measured splits the gap it lies in without touching either end."""
    stairs = Staircase((1.0, 4.0, 9.0), (1.0, 1.2, 3.0), (6.0,))
    assert [stairs.at(r) for r in (1.0, 4.0, 5.0, 5.9, 9.0)] == pytest.approx([1.0, 1.2, 1.2, 1.2, 3.0])


@given(staircases(), st.lists(st.floats(0.5, 1000.0), min_size=1, max_size=6))
def test_a_staircase_of_arrays_is_that_of_its_elements(stairs, rows):
    """Floats in, a float out; arrays in, an array out; the same numbers."""
    assert stairs.at(np.array(rows)) == pytest.approx([stairs.at(row) for row in rows])
    assert isinstance(stairs.at(rows[0]), float)


@pytest.mark.parametrize(
    ("reads", "expected", "name"), [(0.8, 0.8e-3, "memory"), (1.0, 1e-3, "memory"), (3.0, 3e-3, "compute")]
)
def test_a_staircase_replaces_knee_tile_and_passes(reads, expected, name):
    """The time is the table's cost times one read of the bytes, whatever tile or p say beside it."""
    table = Ceiling(staircase=Staircase((1.0, 16.0), (reads, reads)), p=1.0, tile=128.0, rows_per_pass=1.0)
    machine = replace(NVLINK, ceilings={("linear", "bf16"): table})
    work = Work("w", "linear", "bf16", rows=4.0, flops=1e15, weight_bytes=2e9)
    assert work_time_s(work, machine) == pytest.approx(expected)
    assert bound(work, machine) == name


# --- works


@given(works(), log_floats(1e10, 1e13), log_floats(1e11, 1e15))
def test_the_default_ceiling_is_the_plain_roofline(work, bandwidth, peak):
    """With no ceiling the time is the larger of bytes over bandwidth and FLOPs over peak."""
    machine = Machine("m", bandwidth, {work.dtype: peak}, link_bytes_per_s=bandwidth)
    flops = 0.0 if work.kind == "collective" else work.flops
    moved = work.weight_bytes + work.kv_bytes + work.activation_bytes
    assert work_time_s(work, machine) == pytest.approx(max(moved / bandwidth, flops / peak))
    assert machine.ceiling("linear", "bf16") is ROOFLINE


@given(works(), machines(), st.floats(1.0, 10.0))
def test_more_bandwidth_never_lengthens_a_work(work, machine, factor):
    """A faster memory cannot make any piece of work slower, whatever its ceiling."""
    faster = replace(machine, bandwidth_bytes_per_s=factor * machine.bandwidth_bytes_per_s)
    assert work_time_s(work, faster) <= work_time_s(work, machine) * (1 + 1e-12)


@given(works(), machines(), st.floats(1.0, 10.0))
def test_more_compute_and_a_faster_link_never_lengthen_a_work(work, machine, factor):
    """The same for the matrix unit and for the link."""
    peaks = {dtype: factor * peak for dtype, peak in machine.peak_flop_per_s.items()}
    faster = replace(machine, peak_flop_per_s=peaks, link_bytes_per_s=factor * machine.link_bytes_per_s)
    assert work_time_s(work, faster) <= work_time_s(work, machine) * (1 + 1e-12)


@given(works(), machines())
def test_a_time_is_finite_and_at_least_the_bytes_over_the_rated_speed(work, machine):
    """No ceiling of efficiency at most one beats the datasheet; a table may, since it was measured."""
    found = work_time_s(work, machine)
    assert math.isfinite(found)
    assert found >= 0
    speed = machine.link_bytes_per_s if work.kind == "collective" else machine.bandwidth_bytes_per_s
    if machine.ceiling(work.kind, work.dtype).staircase is None:
        assert found >= work.bytes / speed * (1 - 1e-12)


@given(works(), machines())
def test_the_bound_is_the_largest_term(work, machine):
    """The word in the breakdown agrees with the terms behind it."""
    overhead, memory, compute = work_terms_s(work, machine)
    name = bound(work, machine)
    if name == "overhead":
        assert overhead > max(memory, compute)
    else:
        assert max(memory, compute) >= overhead
        expected = "link" if work.kind == "collective" else "memory" if memory >= compute else "compute"
        assert name == expected


@given(works(), machines())
def test_the_time_lies_between_the_largest_term_and_their_sum(work, machine):
    """Terms overlap or add; nothing else happens."""
    split = work_terms_s(work, machine)
    assert max(split) * (1 - 1e-12) <= work_time_s(work, machine) <= sum(split) * (1 + 1e-12)


@given(works(), machines(), st.integers(1, 80))
def test_equal_layers_are_the_sum_of_single_ones(work, machine, count):
    """Times are homogeneous in bytes, FLOPs and kernels, so a group of layers is exact."""
    many = replace(
        work,
        flops=count * work.flops,
        weight_bytes=count * work.weight_bytes,
        kv_bytes=count * work.kv_bytes,
        activation_bytes=count * work.activation_bytes,
        kernels=count * work.kernels,
    )
    assert work_time_s(many, machine) == pytest.approx(count * work_time_s(work, machine))


@given(machines(), st.lists(works(), min_size=1, max_size=4), st.data())
def test_works_with_arrays_are_those_of_their_elements(machine, several, data):
    """One call over a grid gives what one call per point gives."""
    scale = np.array(data.draw(st.lists(st.floats(1.0, 50.0), min_size=1, max_size=4)))
    for work in several:
        grid = replace(
            work,
            rows=work.rows * scale,
            flops=work.flops * scale,
            activation_bytes=work.activation_bytes * scale,
        )
        single = [
            replace(
                work, rows=work.rows * s, flops=work.flops * s, activation_bytes=work.activation_bytes * s
            )
            for s in scale
        ]
        found = np.broadcast_to(work_time_s(grid, machine), scale.shape)
        assert found == pytest.approx([work_time_s(one, machine) for one in single])


@given(machines(), st.lists(works(), max_size=4), st.floats(0.0, 20.0))
def test_a_plan_is_the_sum_of_its_passes(machine, several, repeats):
    """Passes run one after the other, each as often as it says."""
    once = works_time_s(several, machine)
    assert once == pytest.approx(sum(work_time_s(work, machine) for work in several))
    plan = (Pass(tuple(several)), Pass(tuple(several), repeats))
    assert plan_time_s(plan, machine) == pytest.approx((1.0 + repeats) * once)


@given(works(kinds=("linear",)), ceilings(stairs=False))
def test_tiles_and_passes_never_shorten_a_work(work, ceiling):
    """Rounding rows up and reading weights again only cost time."""
    rough = replace(NVLINK, ceilings={("linear", "*"): ceiling}, peak_flop_per_s={work.dtype: 4e14})
    smooth = replace(rough, ceilings={("linear", "*"): replace(ceiling, tile=1.0, rows_per_pass=math.inf)})
    assert work_time_s(work, rough) >= work_time_s(work, smooth) * (1 - 1e-12)


def test_a_format_without_a_peak_has_no_compute_term():
    """Where the device publishes no rate the compute bound is unknown, not infinite and not guessed."""
    work = Work("w", "linear", "fp8", rows=1e4, flops=1e18, weight_bytes=2e9)
    assert work_terms_s(work, NVLINK) == (0.0, pytest.approx(1e-3), 0.0)


def test_a_ceiling_of_one_format_does_not_serve_another():
    """The format's own ceiling comes before the one for any, and none is borrowed."""
    own, anyone = Ceiling(t0_s=1.0), Ceiling(t0_s=2.0)
    machine = replace(
        NVLINK, ceilings={("linear", "bf16"): own, ("linear", "*"): anyone, ("attention", "bf16"): own}
    )
    assert machine.ceiling("linear", "bf16") is own
    assert machine.ceiling("linear", "fp8") is anyone
    assert machine.ceiling("attention", "fp16") is ROOFLINE
