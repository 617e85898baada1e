"""What torch and nvidia-smi say about GPUs, read from fakes of both."""

from __future__ import annotations

from types import SimpleNamespace

from rooflinekit.microbench import inventory
from rooflinekit.microbench.inventory import gpu_facts, parse_smi, torch_facts
from rooflinekit.profiles.detect import Facts

SMI = """\
GPU-aaaa, NVIDIA H100 80GB HBM3, 81559, 650.00
GPU-bbbb, NVIDIA GB10, [N/A], [N/A]
"""


def fake_torch(*, available=True, uuid="aaaa"):
    one = SimpleNamespace(name="NVIDIA H100 80GB HBM3", total_memory=84942979072, multi_processor_count=132)
    if uuid:
        one.uuid = uuid
    cuda = SimpleNamespace(
        is_available=lambda: available, device_count=lambda: 1, get_device_properties=lambda _: one
    )
    return SimpleNamespace(cuda=cuda)


def test_nvidia_smi_is_read_with_its_gaps():
    found = parse_smi(SMI)
    assert found["aaaa"] == Facts("NVIDIA H100 80GB HBM3", 81559 * 2**20, None, 650.0)
    assert found["bbbb"] == Facts("NVIDIA GB10")
    assert parse_smi("") == parse_smi("No devices were found\n") == {}


def test_torch_with_the_power_limit_of_nvidia_smi():
    assert torch_facts(fake_torch(), parse_smi(SMI)) == [
        Facts("NVIDIA H100 80GB HBM3", 84942979072.0, 132.0, 650.0)
    ]
    assert torch_facts(fake_torch(uuid=""), parse_smi(SMI))[0].power_limit_w is None
    assert torch_facts(fake_torch(available=False), parse_smi(SMI)) == []


def test_without_torch_nvidia_smi_answers(monkeypatch):
    monkeypatch.setattr(inventory, "_run_smi", lambda: SMI)

    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr(inventory.importlib, "import_module", absent)
    assert [facts.name for facts in gpu_facts()] == ["NVIDIA H100 80GB HBM3", "NVIDIA GB10"]


def test_a_machine_without_either_has_no_gpu(monkeypatch):
    monkeypatch.setattr(inventory.importlib, "import_module", lambda _: fake_torch(available=False))
    monkeypatch.setattr(inventory.shutil, "which", lambda _: None)
    assert inventory._run_smi(lambda _: None) == ""
    assert inventory._run_smi(lambda _: "/nonexistent/nvidia-smi") == ""
    monkeypatch.setattr(inventory, "_run_smi", str)
    assert gpu_facts() == []
