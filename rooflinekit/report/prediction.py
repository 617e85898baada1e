"""A predicted step as text."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from rooflinekit.prediction import Prediction
from rooflinekit.report.style import BAD, DIM, count, percent, seconds, size, table


def step_name(prediction: Prediction) -> str:
    """What kind of step it is."""
    if prediction.prefill:
        return f"prefill of {prediction.width:g} tokens"
    return "decode step" if prediction.width == 1 else f"verify of {prediction.width:g} rows per sequence"


def source_line(calibration: str, expected: float | None, weakest: str) -> str:
    """Which ceilings were used and how far they can be trusted."""
    if calibration == "datasheet":
        return "datasheet roofline: a lower bound on time; measured kernels are often 20-50 % slower"
    error = f"; median error {percent(expected)} on held-out cases" if expected is not None else ""
    return f"calibration {calibration}{error}" + (f"; weakest evidence: {weakest}" if weakest else "")


def prediction_text(prediction: Prediction) -> RenderableType:
    """Headline, breakdown with the binding roof of each work, memory, evidence."""
    one = prediction
    ranks = f" on {one.tp} ranks" if one.tp > 1 else ""
    head = Text()
    head.append(f"{one.model} in {one.dtype} on {one.hardware}{ranks}: ", "bold")
    head.append(f"{seconds(one.step_s)} per {step_name(one)}", "bold cyan")
    head.append(_between(one))
    head.append(f"  (batch {one.batch:g}, context {one.context:g})")
    rows = table()
    rows.add_column("work")
    for name in ("bytes", "FLOPs", "time", "share"):
        rows.add_column(name, justify="right")
    rows.add_column("bound by")
    for line in sorted(one.breakdown, key=lambda line: -line.time_s):
        share = line.time_s / one.step_s
        rows.add_row(
            line.label,
            size(line.bytes),
            count(line.flops),
            seconds(line.time_s),
            percent(share),
            line.bound,
            style=None if share >= 0.01 else DIM,
        )
    states = " and states" if any(line.kind == "recurrent" for line in one.breakdown) else ""
    moved = f"reads {size(one.weight_bytes)} of weights and {size(one.kv_bytes)} of KV cache{states}"
    facts = [f"{moved}; {one.arithmetic_intensity:.3g} FLOP per byte"]
    if one.prefill:
        facts.append(f"{one.batch * one.width / one.step_s:,.0f} prompt tokens per second")
    elif one.width != 1:
        facts.append(
            f"R(W) = {one.verify_ratio:.3f}: this pass over a plain decode step of {seconds(one.decode_s)}"
        )
    else:
        facts.append(f"{one.batch / one.step_s:,.1f} tokens per second")
    facts.append(source_line(one.calibration, one.expected_error, one.evidence["weakest"]))
    without = one.evidence["without_calibration"]
    if one.calibration != "datasheet" and without:
        facts.append(f"not calibrated: {', '.join(without)} (datasheet roofline)")
    facts += one.notes
    return Group(head, rows, *[Text(fact) for fact in facts], memory_line(one))


def _between(one: Prediction) -> str:
    """The interval of a calibrated prediction."""
    if one.low_s is None or one.high_s is None:
        return ""
    return f" ({seconds(one.low_s)} .. {seconds(one.high_s)})"


def memory_line(one: Prediction) -> Text:
    """Whether it fits, and what would."""
    need = f"{size(one.memory_bytes)} of {size(one.memory_capacity_bytes)} memory per device"
    if one.fits:
        return Text(f"fits: {need}", DIM)
    return Text(f"DOES NOT FIT: needs {need}; {one.remedy}", BAD)
