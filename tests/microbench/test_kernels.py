"""The gate catches wrong kernels, and the right ones agree with the reference; counts and buffers."""

from __future__ import annotations

import dataclasses
import math

import pytest

torch = pytest.importorskip("torch")

from rooflinekit.errors import DeviceError  # noqa: E402
from rooflinekit.microbench import kernels as kernels_module  # noqa: E402
from rooflinekit.microbench.attention_kernels import attention_kernels, make_mask  # noqa: E402
from rooflinekit.microbench.buffers import Filler, require_memory  # noqa: E402
from rooflinekit.microbench.correctness import TOLERANCE, attention_error, linear_error  # noqa: E402
from rooflinekit.microbench.kernels import LinearKernel, linear_kernels, read_kernels, reads_right  # noqa: E402
from rooflinekit.microbench.probes.attention import AttentionSweep  # noqa: E402
from rooflinekit.microbench.probes.linear import LinearSweep  # noqa: E402
from rooflinekit.microbench.probes.read import ReadSweep  # noqa: E402
from rooflinekit.microbench.sampling import Limits  # noqa: E402
from rooflinekit.microbench.session import Session  # noqa: E402
from rooflinekit.microbench.shapes import (  # noqa: E402
    LLAMA_1B,
    AttentionShape,
    attention_work,
    linear_work,
    step_works,
    total,
)

DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}


@pytest.fixture
def filler():
    return Filler(torch, "cpu", 0)


@pytest.fixture
def session(fake_device):
    device = fake_device()
    return Session(device, Limits(rounds=3, most_rounds=5), "run", clock=device.clock)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", [1, 2, 6, 7, 17])
def test_linear_kernels_are_right(filler, dtype, rows):
    x, w = filler.tensor((rows, 96), dtype), filler.tensor((130, 96), dtype, 96**-0.5)
    for kernel in linear_kernels(torch, "cpu", DTYPES[dtype]):
        if kernel.takes(rows):
            assert linear_error(torch, kernel.call(x, kernel.prepare(w)), x, w, 0) < TOLERANCE[dtype], (
                kernel.name
            )


@pytest.mark.parametrize("width", [1, 2, 5])
@pytest.mark.parametrize("batch", [1, 3])
def test_attention_kernels_are_right(filler, width, batch):
    q = filler.tensor((batch, 8, width, 16), "fp32")
    k, v = (
        filler.tensor((batch, 2, 40 + width, 16), "fp32"),
        filler.tensor((batch, 2, 40 + width, 16), "fp32"),
    )
    for name, call in attention_kernels(torch).items():
        got = call(q, k, v, make_mask(torch, width, 40 + width, 4, q))
        assert attention_error(torch, got, q, k, v, 0) < TOLERANCE["fp32"], name


def test_gate_sees_a_missing_causal_mask(filler):
    q, k = filler.tensor((1, 4, 2, 16), "bf16"), filler.tensor((1, 2, 4098, 16), "bf16")
    v = filler.tensor((1, 2, 4098, 16), "bf16")
    v[:, :, 4096:] *= 8
    open_mask = make_mask(torch, 2, 4098, 2, q)
    open_mask = dataclasses.replace(open_mask, folded=torch.zeros_like(open_mask.folded))
    got = attention_kernels(torch)["sdpa folded"](q, k, v, open_mask)
    assert attention_error(torch, got, q, k, v, 0) > TOLERANCE["bf16"]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda y: y * 1.05,
        lambda y: y[:, :-1],
        lambda y: torch.where(torch.arange(y.shape[1]) == 3, math.nan, y),
        lambda y: y.roll(1, 1),
        torch.zeros_like,
    ],
)
def test_gate_catches_wrong_results(filler, spoil):
    x, w = filler.tensor((4, 64), "fp32"), filler.tensor((50, 64), "fp32")
    assert linear_error(torch, spoil(x @ w.T), x, w, 0) > TOLERANCE["bf16"]


def planted(monkeypatch, *kernels):
    monkeypatch.setattr("rooflinekit.microbench.session.linear_kernels", lambda *_: kernels)


def right():
    return LinearKernel("right", "plain", lambda w: w, torch.nn.functional.linear)


def wrong():
    return LinearKernel("wrong", "plain", lambda w: w, lambda x, w: torch.nn.functional.linear(x, w) * 1.1)


def test_wrong_kernel_is_dropped_with_a_warning(session, monkeypatch):
    planted(monkeypatch, wrong(), right())
    cases = list(LinearSweep(32, 16, (1, 2), "fp32").run(session))
    linears = [c for c in cases if c.kind == "linear"]
    assert [c.implementation for c in linears] == ["right", "right"]
    assert "wrong was wrong" in linears[0].warnings[0]
    assert len(session.dropped) == 2
    assert not session.wrong


def test_case_without_a_right_kernel_is_not_recorded(session, monkeypatch):
    planted(monkeypatch, wrong())
    assert not list(LinearSweep(32, 16, (1, 2), "fp32").run(session))
    assert len(session.wrong) == 2


def test_kernel_that_spoils_a_buffer_while_timed_is_not_recorded(session, monkeypatch):
    def call(x, w):
        result = torch.nn.functional.linear(x, w)
        call.count += 1
        return result * (1.5 if call.count > 2 else 1.0)  # the gate and the warm-up see right results

    call.count = 0
    planted(monkeypatch, LinearKernel("late", "plain", lambda w: w, call))
    assert [c.kind for c in LinearSweep(32, 16, (1,), "fp32").run(session)] == ["read"]
    assert "after the timing" in session.wrong[0]


def test_best_implementation_is_recorded_with_all_medians(session, monkeypatch):
    times = {"slow": 3e-3, "close": 1.1e-3, "quick": 1e-3}
    ones = [dataclasses.replace(right(), name=name) for name in times]
    planted(monkeypatch, *ones)
    names = iter([*times, "read"])

    device = session.device
    base = type(device).timer

    def timer(call, copies):
        name = next(names, "read")
        device.seconds = times.get(name, 1e-3)
        return base(device, call, copies)

    monkeypatch.setattr(device, "timer", timer)
    session.reader = read_kernels(torch)[0]
    case = next(c for c in LinearSweep(32, 16, (1,), "fp32").run(session) if c.kind == "linear")
    assert case.implementation == "quick"
    assert case.alternatives == pytest.approx(times)
    assert case.ratio == (1.0, 1.0, 1.0)


def test_attention_sweep_records_counts_and_pairs(session):
    sweep = AttentionSweep(AttentionShape(2, 24, 1, 4, 2, 8), (1, 3), "fp32")
    cases = [c for c in sweep.run(session) if c.kind == "attention"]
    assert [c.shape["width"] for c in cases] == [1, 3]
    assert cases[1].kv_bytes == 2 * 27 * 2 * 2 * 8 * 4
    assert cases[1].flops == 4 * 2 * 4 * 8 * (3 * 24 + 6)
    assert cases[1].ratio[0] == 1.0
    assert cases[0].shape_key == cases[1].shape_key


def test_read_kernels_are_right_and_a_wrong_one_is_seen(session, filler):
    buffer = filler.tensor((4096,), "fp32")
    assert all(reads_right(kernel, buffer, torch) for kernel in read_kernels(torch))
    bad = kernels_module.ReadKernel("sum int64", lambda t: t.view(torch.int64)[1:].sum())
    assert not reads_right(bad, buffer, torch)
    case = next(iter(ReadSweep(1 << 16).run(session)))
    assert case.weight_bytes == 1 << 16
    assert session.reader is not None


def test_linear_counts_follow_the_model():
    work = linear_work(3, 5, 7, "bf16")
    assert (work.weight_bytes, work.activation_bytes, work.flops) == (70, 72, 210)


def test_step_counts_are_the_models():
    work = total(step_works(LLAMA_1B, 1024, 4, "bf16"))
    assert LLAMA_1B.parameters == 1_235_746_816
    assert work.weight_bytes == 2 * LLAMA_1B.parameters
    assert work.kv_bytes == 16 * 1028 * 2 * 8 * 64 * 2
    assert work.kernels == 16 * 5 + 1
    one = attention_work(AttentionShape(1, 1024, 4, 32, 8, 64), "bf16")
    assert work.flops == 2 * 4 * LLAMA_1B.parameters + 16 * one.flops


def test_buffers_are_distinct_random_and_reproducible():
    one, again = Filler(torch, "cpu", 5), Filler(torch, "cpu", 5)
    first = one.rotation((300, 70), "bf16", 3, scale=0.5)
    second = again.rotation((300, 70), "bf16", 3, scale=0.5)
    assert len({t.data_ptr() for t in first.tensors}) == 3
    assert first.nbytes == 3 * 300 * 70 * 2
    for a, b in zip(first.tensors, second.tensors, strict=True):
        assert torch.equal(a, b)
    assert not torch.equal(first.tensors[0], first.tensors[1])
    assert first.tensors[0].double().std().item() == pytest.approx(0.5, rel=0.05)


@pytest.mark.parametrize(("shape", "dtype"), [((7, 33), "bf16"), ((5, 3), "fp32"), ((64, 64), "bf16")])
def test_pieces_for_reading_are_equal_whole_words_of_the_same_memory(filler, shape, dtype):
    rotation = filler.rotation(shape, dtype, 9)
    pieces = rotation.pieces(200)
    assert len({p.numel() for p in pieces}) == 1
    for piece in pieces:
        assert piece.view(torch.int64).numel() * 8 >= 200 - 8
    assert pieces[0].data_ptr() == rotation.tensors[0].data_ptr()


def test_large_buffer_is_filled_to_its_end(filler):
    tensor = filler.tensor((5_000_001,), "fp32")
    assert bool((tensor != 0).all())
    assert not torch.equal(tensor[:1000], tensor[-1000:])


def test_no_memory_is_a_device_error_that_names_the_bytes(filler, monkeypatch):
    def full(*_, **__):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory")

    monkeypatch.setattr(torch, "empty", full)
    with pytest.raises(DeviceError, match="no memory for a buffer of 8 GB"):
        filler.tensor((2_000_000_000,), "fp32")
    with pytest.raises(DeviceError, match="needs 10 GB and 4 GB are free"):
        require_memory(10e9, 4e9, "this")
