"""Fakes: a device whose calls take scripted times on a clock of their own."""

from __future__ import annotations

import itertools

import pytest

torch = pytest.importorskip("torch")

from rooflinekit.microbench.device import Sample  # noqa: E402


class FakeClock:
    """Time that passes only where a test says so."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class FakeTimer:
    """Takes scripted times (s), in a circle; ``clean`` likewise."""

    def __init__(self, clock, seconds, clean=(True,), log=None, name=""):
        self.clock, self.log, self.name = clock, log, name
        self.seconds, self.clean = itertools.cycle(seconds), itertools.cycle(clean)

    def batch(self):
        seconds = next(self.seconds)
        self.clock.now += seconds
        if self.log is not None:
            self.log.append(self.name)
        return (Sample(seconds, next(self.clean)),)


class FakeDevice:
    """Runs real kernels on the CPU once, so that the gate works, and reports a time per call."""

    kind = "cpu"
    torch_device = "cpu"
    dtypes = ("fp32",)
    llc_bytes = 1e6

    def __init__(self, seconds=1e-3, *, clean=True, free=1e12):
        self.torch = torch
        self.clock = FakeClock()
        self.seconds, self.clean, self.free = seconds, clean, free
        self.released = 0

    def facts(self):
        return {"kind": "cpu", "name": "fake", "dtypes": list(self.dtypes)}

    def environment(self):
        return {}

    def free_bytes(self):
        return self.free

    def copies(self, _nbytes):
        return 2

    def synchronise(self):
        pass

    def timer(self, call, _copies):
        call(0)
        return FakeTimer(self.clock, (self.seconds,), (self.clean,))

    def release(self):
        self.released += 1


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def make_timer(clock):
    def make(seconds, clean=(True,), log=None, name=""):
        return FakeTimer(clock, seconds, clean, log, name)

    return make


@pytest.fixture
def fake_device():
    return FakeDevice


@pytest.fixture(autouse=True)
def few_threads():
    """Two threads at most, so that tests do not fight."""
    before = torch.get_num_threads()
    torch.set_num_threads(min(before, 2))
    yield
    torch.set_num_threads(before)
