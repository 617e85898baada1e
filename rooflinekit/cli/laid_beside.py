"""The model's own numbers, laid beside measured ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rooflinekit.acceptance import Constant
from rooflinekit.drafting_options import make_drafter
from rooflinekit.errors import AcceptanceError, RooflineError
from rooflinekit.implied import Measured, launch_draft_cost
from rooflinekit.resolve import Setup, load_of, setup
from rooflinekit.speculation import Drafting, Round, speculate
from rooflinekit.transformer import forward_pass

if TYPE_CHECKING:
    from rooflinekit.drafters import Drafter

DEVICE = ("dtype", "kv_dtype", "tp", "calibration", "stack", "routing_overlap", "host")
BESIDE: dict[str, Any] = {
    "context": 4096,
    "dtype": "auto",
    "kv_dtype": "auto",
    "tp": 1,
    "calibration": "auto",
    "stack": None,
    "routing_overlap": 0.0,
    "host": "none",
}
"""Options that only a prediction reads, with their defaults."""


def option(name: str) -> str:
    """Name of an option as it is typed."""
    return "--" + name.replace("_", "-")


def check_beside(given: Mapping[str, Any]) -> None:
    """Refuse options of a prediction where none is asked for."""
    if given["model"] is None and given["hardware"] is None and given["drafter"] is None:
        for name, default in BESIDE.items():
            if given[name] != default:
                raise RooflineError(
                    f"{option(name)} is for the model's own numbers; add --model and --hardware, or leave it out"
                )


def predicted_by(given: Mapping[str, Any], ready: Setup | None) -> str:
    """What a prediction was made with."""
    if ready is None:
        return ""
    calibration = ready.calibration.name if ready.calibration else "datasheet"
    drafter = f" + {given['drafter']}" if given["drafter"] else ""
    llm, load = ready.target.llm.name, f"batch {given['batch']:g}, context {given['context']:g}"
    host = "" if given["host"] == "none" else f", host time {given['host']}"
    return f"{llm}{drafter} on {ready.hardware.name} ({calibration}), {load}{host}"


def ready_for(given: Mapping[str, Any]) -> Setup | None:
    """Target and device, where they are named."""
    names = ("model", "hardware")
    if all(given[name] is None for name in (*names, "drafter")):
        return None
    missing = [option(name) for name in names if given[name] is None]
    if missing:
        raise RooflineError(f"the model's own numbers need {' and '.join(missing)} too; add what is missing")
    return setup(given["model"], given["hardware"], **{name: given[name] for name in DEVICE})


def is_weight_only(ready: Setup | None) -> bool:
    """Whether the target's weights have fewer bits than they are computed in."""
    if ready is None:
        return False
    main = ready.target.precision.main
    return main.bits < main.activation_bits and main.compute in ("bf16", "fp16")


def beside(
    given: Mapping[str, Any], measured: Measured, ready: Setup | None
) -> tuple[Round | None, float | None]:
    """Round of the library's model at the same K, width and acceptance, and c by launches alone."""
    if ready is None:
        return None, None
    load = load_of(given["batch"], given["context"])
    target, device = ready.target, ready.machine
    length, rows = measured.acceptance_length or 1.0, float(measured.rows)
    if given["drafter"] is None:
        verify, plain = (target.step_s(device, load.batch, load.context, width) for width in (rows, 1.0))
        host, plain_host = (device.host_s(load.batch * width) for width in (rows, 1.0))
        return Round(measured.k, length, 0.0, verify, plain, host, plain_host), None
    drafter = make_drafter(given["drafter"], target, hardware=ready.hardware)
    k = float(_trained(drafter, measured.k))
    one = speculate(
        device,
        target,
        drafter,
        Constant(0.0),
        batch=load.batch,
        context=load.context,
        k=k,
        drafting=Drafting(width=rows),
    )
    plan = drafter.plan(k=k, batch=load.batch, context=load.context, tp=target.tp)
    launch = launch_draft_cost(plan, k, forward_pass(target.llm, load, target.precision, target.tp))
    return replace(one, acceptance_length=length), launch


def _trained(drafter: Drafter, k: int) -> int:
    if drafter.max_k is not None and k > drafter.max_k:
        raise AcceptanceError(
            f"K = {k} is past the trained block of {drafter.name} ({drafter.max_k}); check --k and --drafter"
        )
    return k
