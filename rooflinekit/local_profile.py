"""A complete hardware profile of this machine from what a measurement file recorded."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from rooflinekit.errors import CalibrationError
from rooflinekit.evidence import Cited
from rooflinekit.hardware import Hardware
from rooflinekit.measurement import CLEAN, Measurement, Run


def _cited(run: Run, key: str) -> Cited | None:
    value = run.device.get(key)
    return Cited(float(value), "measured", f"device facts, run {run.id}") if value else None


def local_profile(runs: Sequence[Run], cases: Sequence[Measurement]) -> Hardware:
    """Profile ``local``: bandwidth and peaks are those of the probes, the rest are device facts.

    The bandwidth is the median over the read probes (one beside each sweep), because a shared machine's
    bandwidth moves; the peak of a format is the best median of its compute probes.

    Raises
    ------
    CalibrationError
        No read probe or no memory size was recorded.
    """
    run = runs[0]
    probes = [case for case in cases if case.kind == "read"]
    # Disturbed probes say what was left of the bandwidth, not what there is; better than nothing.
    probes = [case for case in probes if case.clean_share >= CLEAN] or probes
    rates = [case.bytes / case.median_s for case in probes]
    capacity = _cited(run, "capacity_bytes")
    if not rates or capacity is None:
        raise CalibrationError(
            "the measurements hold no read probe or no memory size, so no profile can be made of them; "
            "measure again, or name a shipped profile with --base"
        )
    reference = f"median of {len(rates)} read probes, run {run.id} ({min(rates) / 1e9:.3g}-{max(rates) / 1e9:.3g} GB/s)"
    peaks: dict[str, Cited] = {}
    for case in cases:
        rate = case.flops / case.median_s
        if case.kind == "compute" and (case.dtype not in peaks or rate > peaks[case.dtype].value):
            peaks[case.dtype] = Cited(rate, "measured", f"matrix product, case {case.id}")
    return Hardware(
        name="local",
        title=str(run.device.get("name", "this machine")),
        vendor=str(run.device.get("vendor", "unknown")),
        architecture=str(run.device.get("architecture", run.device.get("kind", "unknown"))),
        capacity=capacity,
        bandwidth=Cited(median(rates), "measured", reference),
        peak=peaks,
        l2=_cited(run, "llc_bytes"),
        units=_cited(run, "units"),
        notes=(
            "Made by `rooflinekit calibrate --base auto`: rates are what this machine reached, not what it is sold as.",
        ),
    )
