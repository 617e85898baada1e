"""Opening a device, and the CUDA layer on a fake torch."""

from __future__ import annotations

import gc
import importlib
import subprocess
import sys
from types import SimpleNamespace

import pytest

from rooflinekit.errors import DeviceError
from rooflinekit.microbench.buffers import cuda_copies
from rooflinekit.microbench.cuda import BATCH, CudaDevice, calls_per_replay
from rooflinekit.microbench.device import open_device

CALL_MS = 0.01


class FakeCuda:
    """Keeps a stream clock: kernels add to it, events read it."""

    def __init__(self, *, present=True, free=80e9):  # noqa: C901 - one small class for each of torch.cuda
        self.present, self.free = present, free
        self.now_ms, self.capturing, self.log = 0.0, None, []
        outer = self

        class Event:
            def __init__(self, enable_timing):
                assert enable_timing

            def record(self):
                self.at = outer.now_ms

            def elapsed_time(self, other):
                return other.at - self.at

        class CUDAGraph:
            def __init__(self):
                self.calls = []

            def replay(self):
                outer.log.append("replay")
                outer.now_ms += CALL_MS * len(self.calls)

        class graph:  # noqa: N801 - the name in torch
            def __init__(self, target):
                self.target = target

            def __enter__(self):
                assert not gc.isenabled()
                outer.capturing = self.target

            def __exit__(self, *_):
                outer.capturing = None

        class Stream:
            def wait_stream(self, other):
                pass

        class stream:  # noqa: N801
            def __init__(self, _):
                pass

            def __enter__(self):
                pass

            def __exit__(self, *_):
                pass

        self.Event, self.CUDAGraph, self.graph, self.Stream, self.stream = (
            Event,
            CUDAGraph,
            graph,
            Stream,
            stream,
        )

    def kernel(self, index):
        if self.capturing is not None:
            self.capturing.calls.append(index)
        else:
            self.now_ms += CALL_MS

    def is_available(self):
        return self.present

    def is_bf16_supported(self):
        return True

    def current_stream(self):
        return self.Stream()

    def synchronize(self):
        self.log.append("sync")

    def _sleep(self, _cycles):
        self.log.append("sleep")
        self.now_ms += 2.0

    def mem_get_info(self):
        return (self.free, 85e9)

    def empty_cache(self):
        self.log.append("empty")

    def get_device_properties(self, _):
        return SimpleNamespace(
            name="Fake H200",
            L2_cache_size=60 * 2**20,
            multi_processor_count=132,
            major=9,
            minor=0,
            clock_rate=1_980_000,
        )


@pytest.fixture
def fake_torch():
    def make(**options):
        return SimpleNamespace(cuda=FakeCuda(**options), version=SimpleNamespace(cuda="13.0", hip=None))

    return make


def test_cuda_facts(fake_torch):
    facts = CudaDevice(fake_torch()).facts()
    assert facts["kind"] == "cuda"
    assert facts["units"] == 132
    assert facts["capacity_bytes"] == 85e9
    assert facts["llc_bytes"] == 60 * 2**20
    assert facts["dtypes"] == ["bf16", "fp16", "fp32"]


def test_graph_walks_all_copies_and_a_sample_is_one_call(fake_torch):
    torch = fake_torch()
    timer = CudaDevice(torch).timer(torch.cuda.kernel, copies=7)
    assert timer._graph.calls == [i % 7 for i in range(timer.calls)]
    assert timer.calls % 7 == 0
    assert gc.isenabled()
    samples = timer.batch()
    assert [s.seconds for s in samples] == pytest.approx([CALL_MS * 1e-3] * BATCH)
    assert [s.clean for s in samples] == [None] * BATCH


def test_batch_holds_the_stream_before_the_replays(fake_torch):
    torch = fake_torch()
    timer = CudaDevice(torch).timer(torch.cuda.kernel, copies=2)
    torch.cuda.log.clear()
    timer.batch()
    assert torch.cuda.log == ["sleep", *["replay"] * BATCH, "sync"]


def test_throttle_reasons_judge_a_batch(fake_torch, monkeypatch):
    reasons = {"now": 0x4}  # the software power cap is no fault
    nvml = SimpleNamespace(
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByUUID=lambda uuid: uuid,
        nvmlDeviceGetCurrentClocksEventReasons=lambda _: reasons["now"],
        nvmlSystemGetDriverVersion=lambda: b"580.1",
        nvmlDeviceGetPowerManagementLimit=lambda _: 700_000,
        nvmlDeviceGetClockInfo=lambda _, kind: {1: 1980, 2: 3201}[kind],
        nvmlDeviceGetEccMode=lambda _: (1, 1),
    )
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    torch = fake_torch()
    properties = torch.cuda.get_device_properties(0)
    properties.uuid = "abc"
    torch.cuda.get_device_properties = lambda _: properties
    device = CudaDevice(torch)
    assert device.environment()["power_limit_w"] == 700
    assert device.environment()["ecc"] is True
    assert "abc" not in str(device.environment()) + str(device.facts())
    timer = device.timer(torch.cuda.kernel, copies=2)
    assert all(s.clean for s in timer.batch())
    reasons["now"] = 0x40
    assert not any(s.clean for s in timer.batch())


@pytest.mark.parametrize(("call_s", "copies"), [(1e-6, 3), (1e-4, 50), (1.0, 4), (0.0, 5)])
def test_calls_are_a_multiple_of_the_copies(call_s, copies):
    calls = calls_per_replay(call_s, copies)
    assert calls % copies == 0
    assert calls >= copies
    assert calls < 2000 + copies


@pytest.mark.parametrize("nbytes", [1e6, 8e6, 67e6, 525e6, 3e9])
def test_cuda_rotation_follows_the_rule(nbytes):
    copies = cuda_copies(nbytes, 50e6, 80e9)
    assert copies >= 2
    assert copies * nbytes >= 1e9
    assert (copies - 1) * nbytes >= 5 * 50e6


def test_cuda_rotation_stays_within_the_memory():
    assert cuda_copies(1e8, 50e6, 1e9) * 1e8 <= 0.6e9


def test_cuda_that_is_asked_for_and_absent_is_refused(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(DeviceError, match=r"cuda is not available.*--device cpu"):
        open_device("cuda")
    assert open_device("auto").kind == "cpu"


def test_unknown_device_is_refused():
    with pytest.raises(DeviceError, match="choose auto, cpu or cuda"):
        open_device("tpu")


def test_missing_torch_names_the_extra(monkeypatch):
    real = importlib.import_module

    def without(name, *args):
        if name == "torch":
            raise ImportError(name)
        return real(name, *args)

    monkeypatch.setattr(importlib, "import_module", without)
    with pytest.raises(DeviceError, match=r"pip install 'rooflinekit\[bench\]'"):
        open_device("cpu")


def test_import_does_not_load_torch():
    code = "import sys, rooflinekit.microbench; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
