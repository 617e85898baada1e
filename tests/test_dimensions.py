"""Units as an independent check: the same functions, called with quantities that carry dimensions.

FLOP is a base dimension of its own here: as a mere count, a missing FLOP would pass. Not covered: the
array branch of the norm, staircases (numpy strips dimensions there) and predictions as a whole (floats).
"""

import math
from dataclasses import replace

import pint
import pytest

from rooflinekit import ceiling as ceiling_module
from rooflinekit.acceptance import expected_tokens
from rooflinekit.drafters import BUILDERS
from rooflinekit.drafters.small_lm import SmallLm
from rooflinekit.evidence import Cited
from rooflinekit.hardware import Hardware
from rooflinekit.llm import Linear
from rooflinekit.precision import Format, precision
from rooflinekit.readers.models import find_llm
from rooflinekit.speculation import Round, eta, s_up
from rooflinekit.transformer import Load, all_reduce_work, forward_pass, linear_work
from rooflinekit.work import (
    Ceiling,
    Machine,
    Pass,
    Work,
    p_norm,
    plan_time_s,
    work_terms_s,
    work_time_s,
    works_time_s,
)

UNITS = pint.UnitRegistry()
UNITS.define("FLOP = [operation]")
UNITS.define("octet = [storage]")
B, FLOP, S = UNITS.octet, UNITS.FLOP, UNITS.second
BF16 = precision("bf16")


@pytest.fixture(autouse=True)
def _norm_keeps_dimensions(monkeypatch):
    """The scalar norm ends in ``float(...)``, which only strips what this file looks at."""
    monkeypatch.setattr(ceiling_module, "float", lambda value: value, raising=False)


def machine(**ceiling):
    found = Ceiling(t0_s=2e-6 * S, memory_efficiency=0.9, compute_efficiency=0.8, **ceiling)
    return Machine(
        "m",
        3e12 * B / S,
        {"bf16": 9e14 * FLOP / S},
        4e11 * B / S,
        {(k, "*"): found for k in ("linear", "collective")},
    )


def a_work(kind="linear"):
    return Work("w", kind, "bf16", 7.0, 1e12 * FLOP, 1e9 * B, 1e8 * B, 1e7 * B, 3.0)


@pytest.mark.parametrize("kind", ["linear", "collective"])
@pytest.mark.parametrize(
    "shape", [{}, {"p": 2.0}, {"p": 3.0, "tile": 16.0}, {"rows_per_pass": 4.0, "p": 1.0}]
)
def test_every_term_of_a_work_is_a_time(kind, shape):
    """Bytes over bandwidth, FLOPs over peak and the fixed cost are seconds, and so is their norm."""
    one, two, three = work_terms_s(a_work(kind), machine(**shape))
    assert one.check("[time]")
    assert two.check("[time]")
    assert three == 0.0 or three.check("[time]")
    if kind == "linear":
        assert work_time_s(a_work(kind), machine(**shape)).check("[time]")


def test_the_norm_keeps_the_dimension_of_its_terms():
    """Two times give a time, at any sharpness."""
    for p in (1.0, 2.5, math.inf):
        assert p_norm(3.0 * S, 4.0 * S, p).check("[time]")


def test_a_wrong_machine_is_noticed():
    """The oracle has teeth: a peak given in bytes does not add up."""
    wrong = Machine("m", 3e12 * B / S, {"bf16": 9e14 * B / S}, 0.0, {("linear", "*"): Ceiling(t0_s=0.0 * S)})
    with pytest.raises(pint.DimensionalityError):
        work_time_s(a_work(), wrong)


def test_plans_are_times():
    """A sum of works and a plan of passes are seconds; repeats have no dimension."""
    works = (a_work(), a_work())
    assert (0 * S + works_time_s(works[:1], machine()) - 0 * S).check("[time]")
    assert plan_time_s((Pass(works[:1], 4.0),), machine()).check("[time]")


def typed(works):
    """Give the counts of a pass their dimensions."""
    return [
        Work(
            w.label,
            w.kind,
            w.dtype,
            w.rows,
            w.flops * FLOP,
            w.weight_bytes * B,
            w.kv_bytes * B,
            w.activation_bytes * B,
            w.kernels,
        )
        for w in works
    ]


def test_a_linear_layer_moves_bytes():
    """Parameters times bytes per parameter; rows times elements times bytes per element."""
    octets = replace(BF16, main=Format("t", 16.0 * B, "bf16", 16.0 * B))
    # Rows enter the weights' bytes with a factor of zero, only to broadcast: given a dimension here too.
    work = linear_work(Linear("l", 128, 64), 3.0, octets, 2.0)
    assert work.bytes.check("[storage]")
    assert work.bytes.magnitude == 2 * (128 * 64 * 2 + 3 * (128 + 64) * 2)


def test_an_all_reduce_moves_bytes():
    """Message times a factor without dimension."""
    assert all_reduce_work(4096.0 * B, 2.0, 4).bytes.check("[storage]")


@pytest.mark.parametrize("name", ["llama-3.1-8b", "qwen3-30b-a3b", "deepseek-v3"])
def test_a_whole_pass_is_a_time(name):
    """Every work of a dense, a mixture and a latent-attention model, under one machine."""
    smooth = machine(p=2.0)
    for one in typed(forward_pass(find_llm(name), Load(2.0, 100.0, 3.0), BF16, 2)):
        terms = [term for term in work_terms_s(one, smooth) if not isinstance(term, float) or term]
        assert terms
        assert all(term.check("[time]") for term in terms)


@pytest.mark.parametrize("name", [*BUILDERS, "small-lm"])
def test_a_draft_is_a_time(name):
    """Every pass of every drafter."""
    target = find_llm("llama-3.1-8b")
    drafter = SmallLm(find_llm("llama-3.2-1b"), BF16) if name == "small-lm" else BUILDERS[name](target, BF16)
    for one in drafter.plan(k=4.0, batch=1.0, context=100.0):
        for work in typed(one.works):
            assert work_terms_s(work, machine())[1].check("[time]")


def test_a_round_has_times_and_ratios():
    """rho, R, c and the speedup are ratios; the round and the plain step are times."""
    one = Round(4.0, 3.4, 1e-3 * S, 5e-3 * S, 4e-3 * S, 1e-4 * S, 5e-5 * S)
    assert one.round_s.check("[time]")
    assert one.plain_s.check("[time]")
    for ratio in (one.round_cost, one.verify_ratio, one.draft_cost, one.speedup):
        assert ratio.check("")


def test_the_published_formulas_are_ratios():
    """eta takes a ratio, S_up takes two times: both give a pure number, and the same one."""
    found = s_up(expected_tokens(0.8, 4) - 1.0, 4, 0.05 * S, 1.0 * S)
    assert found.check("")
    assert float(found.to("").magnitude) == pytest.approx(eta(0.8, 4, 0.05))


def test_the_ridge_is_operations_per_byte():
    """Peak over bandwidth; times bytes per weight over two operations per weight it is a count of rows."""
    device = Hardware(
        name="d",
        title="d",
        vendor="v",
        architecture="a",
        capacity=Cited(8e10, "assumed", ""),
        bandwidth=Cited(3e12 * B / S, "assumed", ""),
        peak={"bf16": Cited(9e14 * FLOP / S, "assumed", "")},
    )
    assert device.ridge_flop_per_byte("bf16").check("[operation] / [storage]")
    assert device.ridge_tokens("bf16", 2.0 * B).check("[operation]")
