"""Files, interruption, refusals, plans; one real run of tiny shapes."""

from __future__ import annotations

import json

import pytest

torch = pytest.importorskip("torch")

from rooflinekit.errors import DeviceError, RooflineError  # noqa: E402
from rooflinekit.measurement import without_drift  # noqa: E402
from rooflinekit.measurement_file import load  # noqa: E402
from rooflinekit.microbench import open_device, plan, run_suite  # noqa: E402
from rooflinekit.microbench.probes.attention import AttentionSweep  # noqa: E402
from rooflinekit.microbench.probes.compute import compute_sweep  # noqa: E402
from rooflinekit.microbench.probes.launch import launch_sweep  # noqa: E402
from rooflinekit.microbench.probes.linear import LinearSweep  # noqa: E402
from rooflinekit.microbench.probes.read import ReadSweep  # noqa: E402
from rooflinekit.microbench.probes.step import StepSweep  # noqa: E402
from rooflinekit.microbench.sampling import Limits  # noqa: E402
from rooflinekit.microbench.shapes import AttentionShape, Decoder  # noqa: E402

TINY = Decoder("tiny", 64, 96, 2, heads=4, kv_heads=2, head_dim=16, vocabulary=160)
LIMITS = Limits(half_width=0.5, rounds=3, most_rounds=4, cap_s=0.5, trial_rounds=1)


def sweeps(dtype="fp32"):
    return [
        ReadSweep(1 << 20),
        compute_sweep(64, dtype),
        launch_sweep(dtype),
        LinearSweep(96, 64, (1, 2, 8), dtype, copies=3),
        AttentionSweep(AttentionShape(1, 32, 1, 4, 2, 16), (1, 4), dtype),
        StepSweep(TINY, 32, (1, 4), dtype),
    ]


def run(device, out, **options):
    return run_suite(device, out, limits=LIMITS, **{"sweeps": sweeps(), **options})


def test_file_holds_the_run_and_all_cases(fake_device, tmp_path):
    events = []
    result = run(fake_device(), tmp_path / "m.jsonl", seed=7, progress=events.append)
    runs, cases = load(result.path)
    assert runs[0].options["seed"] == 7
    assert tuple(without_drift(cases)) == result.cases
    assert result.ok
    assert result.clean_share == 1.0
    assert {c.kind for c in cases} == {"read", "compute", "launch", "linear", "attention", "step"}
    assert len({c.id for c in cases}) == len(cases)
    assert all(c.id.startswith(runs[0].id + "/") for c in cases)
    assert [e.name for e in events if e.stage == "start"] == [s.name for s in sweeps()]
    assert [e.measurement for e in events if e.stage == "case"] == without_drift(cases)
    assert all(e.total == 6 for e in events)


def test_run_record_names_no_host_user_or_path(fake_device, tmp_path):
    import getpass
    import platform

    result = run(fake_device(), tmp_path / "m.jsonl", sweeps=sweeps()[:1])
    text = result.path.read_text().splitlines()[0]
    values = json.dumps(list(json.loads(text)["environment"].values()))
    assert platform.node() not in values
    assert str(tmp_path) not in text
    assert f'"{getpass.getuser()}"' not in text


def test_interruption_leaves_a_valid_file(fake_device, tmp_path):
    out = tmp_path / "m.jsonl"
    device = fake_device()

    def stop(event):
        if event.stage == "case" and event.name.startswith("linear"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(device, out, progress=stop)
    _, cases = load(out)
    assert [c.kind for c in cases] == ["read", "compute", "launch", "read", "linear"]
    assert device.released == 4


def test_contended_cases_say_so(fake_device, tmp_path):
    result = run(fake_device(clean=False), tmp_path / "m.jsonl", sweeps=sweeps()[:1])
    assert result.cases[0].warnings[0].startswith("contended")
    assert result.warnings[0].startswith("contended")


def test_unjudged_samples_have_no_flags(fake_device, tmp_path):
    result = run(fake_device(clean=None), tmp_path / "m.jsonl", sweeps=sweeps()[:1])
    assert result.cases[0].clean == ()
    assert not result.cases[0].warnings


def test_existing_file_is_refused_before_measuring(fake_device, tmp_path):
    out = tmp_path / "m.jsonl"
    out.write_text("mine")
    with pytest.raises(RooflineError, match="exists"):
        run(fake_device(), out)
    assert out.read_text() == "mine"
    assert run(fake_device(), out, overwrite=True, sweeps=sweeps()[:1]).ok


@pytest.mark.parametrize("name", ["missing/m.jsonl", "file/m.jsonl"])
def test_unwritable_folder_is_refused_before_measuring(fake_device, tmp_path, name):
    (tmp_path / "file").write_text("")
    device = fake_device()
    with pytest.raises(RooflineError, match="cannot be written"):
        run(device, tmp_path / name)
    assert device.released == 0


def test_short_memory_refuses_the_plan_and_writes_nothing(fake_device, tmp_path):
    out = tmp_path / "m.jsonl"
    with pytest.raises(DeviceError, match="of memory free and budget quick needs"):
        run(fake_device(free=1e4), out)
    assert not out.exists()


def test_optional_sweep_is_skipped_with_its_reason(fake_device, tmp_path):
    big = StepSweep(TINY, 10_000_000, (1,), "fp32")
    events = []
    result = run(
        fake_device(free=1e9), tmp_path / "m.jsonl", sweeps=[sweeps()[0], big], progress=events.append
    )
    assert result.skipped[0][0] == big.name
    assert "are free" in result.skipped[0][1]
    assert result.ok
    assert events[-2].stage == "skip"


def test_nothing_measured_is_an_error(fake_device, tmp_path):
    with pytest.raises(DeviceError, match="nothing could be measured"):
        run(fake_device(free=1e9), tmp_path / "m.jsonl", sweeps=[StepSweep(TINY, 10_000_000, (1,), "fp32")])


def test_wrong_results_make_the_run_not_ok(fake_device, tmp_path, monkeypatch):
    monkeypatch.setattr("rooflinekit.microbench.probes.attention.attention_kernels", lambda _: {})
    result = run(fake_device(), tmp_path / "m.jsonl", sweeps=[*sweeps()[:1], sweeps()[4]])
    assert not result.ok
    assert "no implementation was right" in result.wrong[0]


def test_torch_out_of_memory_skips_a_sweep_and_other_faults_do_not(fake_device, tmp_path):
    class Faulty:
        name, optional = "faulty", True

        def __init__(self, text):
            self.text = text

        def need_bytes(self, _device):
            return 0.0

        def run(self, _session):
            raise RuntimeError(self.text)

    first = sweeps()[:1]
    result = run(
        fake_device(), tmp_path / "a.jsonl", sweeps=[*first, Faulty("CUDA out of memory. Tried\nmore")]
    )
    assert result.skipped == (("faulty", "CUDA out of memory. Tried"),)
    with pytest.raises(RuntimeError, match="illegal"):
        run(fake_device(), tmp_path / "b.jsonl", sweeps=[*first, Faulty("illegal address")])


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_budgets_grow(kind):
    sizes = [len(plan(budget, kind, ("bf16", "fp32"))) for budget in ("quick", "normal", "full")]
    assert sizes == sorted(set(sizes))
    names = [s.name for s in plan("full", kind, ("bf16", "fp32"))]
    assert len(set(names)) == len(names)


def test_unknown_budget_is_refused():
    with pytest.raises(RooflineError, match="choose quick, normal, full"):
        plan("huge")


def test_step_does_not_let_later_tokens_change_the_first(fake_device, tmp_path):
    result = run(fake_device(), tmp_path / "m.jsonl", sweeps=[StepSweep(TINY, 32, (1, 2, 4), "fp32")])
    steps = [c for c in result.cases if c.kind == "step"]
    assert [c.shape["width"] for c in steps] == [1, 2, 4]
    assert not any("logits" in text for c in steps for text in c.warnings)
    assert all(c.error < 1e-5 for c in steps)


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_real_run_of_tiny_shapes(tmp_path, dtype):
    result = run(open_device("cpu"), tmp_path / "m.jsonl", sweeps=sweeps(dtype))
    assert result.ok, result.wrong
    runs, cases = load(result.path)
    assert runs[0].device["kind"] == "cpu"
    assert len(cases) == 13
    for case in cases:
        assert case.samples_s
        assert case.implementation
        assert len(case.clean) in (0, len(case.samples_s))
        assert case.error <= 1e-2
    assert [c.ratio[0] for c in cases if c.shape.get("rows") == 1 and c.kind == "linear"] == [1.0]
