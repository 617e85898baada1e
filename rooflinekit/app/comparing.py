"""Quantisation, a smaller model and speculation side by side: names and options in, a table out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rooflinekit.levers import LeverTable, Option

FORMATS = "fp8,w8a16,w4a16"


def levers(
    model: str,
    hardware: str,
    drafter: str,
    *,
    small: str | None = None,
    formats: str = FORMATS,
    batch: float = 32,
    context: float = 4096,
    max_k: int = 16,
    **options: Any,
) -> LeverTable:
    """Put quantisation, a smaller model and speculation side by side.

    Parameters
    ----------
    model, hardware, drafter, context, max_k
        As in :func:`rooflinekit.recommend`; so are the remaining options, acceptance among them.
    small
        A smaller model to serve instead; None for none.
    formats
        Number formats to quantise the target to, with commas.
    batch
        Sequences of the second half of the table; the first is of one.
    """
    from rooflinekit.acceptance_options import make_acceptance
    from rooflinekit.app.asking import ACCEPTANCE
    from rooflinekit.levers import Option, lever_table
    from rooflinekit.resolve import load_of, number, setup

    number(max_k, "--max-k", 1, 1024)
    load_of(batch, context)
    accepted = make_acceptance(**{name: options.pop(name) for name in ACCEPTANCE if name in options})
    ready = setup(model, hardware, **options)
    built, left_out = quantised(model, hardware, drafter, formats, options)
    if small is not None:
        other = setup(small, hardware, **options | {"dtype": "auto"})
        name = f"{other.target.llm.name}, {other.target.precision.label}"
        built.append(Option(name=name, kind="smaller model", target=other.target, machine=other.machine))
    return lever_table(
        built,
        ready.hardware,
        accepted,
        batches=tuple(dict.fromkeys((1.0, float(batch)))),
        context=context,
        max_k=max_k,
        calibration=ready.calibration.name if ready.calibration else "datasheet",
        left_out=left_out,
    )


def quantised(
    model: str, hardware: str, drafter: str, formats: str, options: dict[str, Any]
) -> tuple[list[Option], list[tuple[str, str]]]:
    """The target as it is and in each format, with its drafter; and the formats that make no sense here."""
    from rooflinekit.drafting_options import make_drafter
    from rooflinekit.errors import ProfileError
    from rooflinekit.levers import Option
    from rooflinekit.memory import resident_weight_bytes
    from rooflinekit.resolve import setup

    built: list[Option] = []
    left_out = []
    for word in ("", *(word.strip() for word in formats.split(",") if word.strip())):
        try:
            one = setup(model, hardware, **(options | {"dtype": word} if word else options))
        except ProfileError as reason:
            if not word:
                raise
            left_out.append((word, str(reason)))
            continue
        llm, numbers = one.target.llm, one.target.precision
        if built and numbers == built[0].target.precision:
            continue
        if word and resident_weight_bytes(llm, numbers) > 0.95 * resident_weight_bytes(
            llm, built[0].target.precision
        ):
            left_out.append((word, f"its weights are not smaller than in {built[0].target.precision.name}"))
            continue
        built.append(
            Option(
                name=numbers.label,
                kind="quantisation" if word else "as it is",
                target=one.target,
                machine=one.machine,
                drafter=make_drafter(drafter, one.target, hardware=one.hardware),
            )
        )
    return built, left_out
