"""Gate, judgement and rotation of the CPU layer."""

from __future__ import annotations

from itertools import pairwise

import pytest

from rooflinekit.microbench import procfs
from rooflinekit.microbench.buffers import CPU_FOOTPRINT_BYTES, cpu_copies
from rooflinekit.microbench.cpu import CpuTimer, Cursor, Gate, judge
from rooflinekit.microbench.device import open_device


def gate(answers, clock):
    answers = iter(answers)

    def sleep(seconds):
        clock.now += seconds

    return Gate(lambda: next(answers), longest_s=0.5, clock=clock, sleep=sleep)


def test_gate_waits_until_only_we_run(clock):
    assert gate([2, 1, 0], clock).wait()
    assert clock.now == pytest.approx(2e-3)


def test_gate_gives_up_and_loses_patience(clock):
    one = gate([1] * 10_000, clock)
    assert not one.wait()
    assert clock.now == pytest.approx(0.5, abs=2e-3)
    assert one.patience_s == 0.25
    assert not one.wait()
    assert clock.now == pytest.approx(0.75, abs=4e-3)


def test_gate_opens_where_nobody_can_tell(clock):
    assert gate([None], clock).wait()


@pytest.mark.parametrize(
    ("delay", "ticks", "clean"), [(0.0, 0, True), (1.9e-4, 0, True), (2.1e-4, 0, False), (0.0, 1, False)]
)
def test_sample_is_clean_below_two_per_cent_of_run_delay_and_without_steal(delay, ticks, clean):
    assert judge(procfs.Usage(0.0, 5), procfs.Usage(delay, 5 + ticks), 0.01) is clean


def test_without_proc_samples_are_unjudged(tmp_path):
    assert procfs.usage(tmp_path) is None
    assert procfs.others_running(tmp_path) is None
    assert judge(None, None, 1.0) is None
    total, free = procfs.memory_bytes(tmp_path, tmp_path)
    assert total == free > 1e8
    assert procfs.cpu_name(tmp_path)
    assert procfs.last_level_cache_bytes(tmp_path) == 0.0


def fake_proc(root, running, states, delay=1000):
    for number, state in enumerate(states):
        task = root / "self" / "task" / str(number)
        task.mkdir(parents=True)
        (task / "stat").write_text(f"{number} (odd) name) {state} 1 2 3")
        (task / "schedstat").write_text(f"1 {delay} 3")
    (root / "stat").write_text(f"cpu  1 2 3 4 5 6 7 42 0 0\nprocs_running {running}\n")


def test_threads_of_ours_are_not_others(tmp_path):
    fake_proc(tmp_path, running=3, states="RRS")
    assert procfs.others_running(tmp_path) == 1
    assert procfs.usage(tmp_path) == procfs.Usage(pytest.approx(3e-6), 42)


def test_container_limit_bounds_memory(tmp_path):
    (tmp_path / "meminfo").write_text("MemTotal:  2000000 kB\nMemAvailable: 1500000 kB\n")
    (tmp_path / "memory.max").write_text("1024000000\n")
    (tmp_path / "memory.current").write_text("24000000\n")
    assert procfs.memory_bytes(tmp_path, tmp_path) == (1024e6, 1000e6)


def test_last_level_cache_is_the_highest_index(tmp_path):
    for index, (level, size) in enumerate([(1, "32K"), (2, "1M"), (3, "32768K")]):
        entry = tmp_path / f"index{index}"
        entry.mkdir()
        (entry / "level").write_text(f"{level}\n")
        (entry / "size").write_text(f"{size}\n")
    assert procfs.last_level_cache_bytes(tmp_path) == 32 * 2**20


@pytest.mark.parametrize("nbytes", [1e6, 8388608, 67e6, 525e6, 4e9])
@pytest.mark.parametrize("llc", [4e6, 300e6, 2e9])
def test_rotation_outruns_the_cache(nbytes, llc):
    total = cpu_copies(nbytes, llc) * nbytes
    assert total >= max(2 * llc, CPU_FOOTPRINT_BYTES)
    assert total < max(2 * llc, CPU_FOOTPRINT_BYTES) + nbytes


def test_timers_of_one_rotation_never_take_the_copy_just_touched():
    touched = []
    cursor = Cursor(4)
    open_gate = Gate(lambda: 0)
    timers = [CpuTimer(touched.append, cursor, open_gate, lambda: None) for _ in range(3)]
    del touched[:]
    for timer in timers:
        timer.calls = 3
    for timer in timers * 3:
        timer.batch()
    assert all(after == (before + 1) % 4 for before, after in pairwise(touched))


def test_facts_name_no_host():
    device = open_device("cpu")
    facts = device.facts()
    assert {"kind", "name", "capacity_bytes", "llc_bytes", "units", "dtypes"} <= facts.keys()
    assert facts["dtypes"][-1] == "fp32"
