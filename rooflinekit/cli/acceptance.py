"""``rooflinekit acceptance``."""

from __future__ import annotations

from typing import Any

import click

from rooflinekit.cli.common import JSON, print_json, show


@click.group("acceptance")
def command() -> None:
    """List what others measured, show an acceptance by position, fit a constant or a decaying rate."""


NAME = click.argument("name", metavar="FILE|NAME")
MEASURED_K = click.option(
    "--measured-k", type=int, help="K that it was measured with, where a file lacks it."
)


@command.command("list")
@JSON
def list_(as_json: bool) -> None:  # noqa: FBT001
    """List the shipped profiles: published acceptance by drafter, target and data set."""
    from rooflinekit.acceptance.profiles import acceptance_profiles

    found = acceptance_profiles().values()
    if as_json:
        print_json([one.facts() for one in found])
        return
    from rooflinekit.report.acceptance import profiles_table

    show(profiles_table(found))


@command.command("show")
@NAME
@MEASURED_K
@JSON
def show_(name: str, measured_k: int | None, as_json: bool) -> None:  # noqa: FBT001
    """Show a file or a shipped profile: rates, survival and tokens per round by position.

    A FILE may be what an engine wrote (metrics, log, benchmark result; BEFORE,AFTER of two scrapes; FILE#part).
    """
    from dataclasses import asdict

    from rooflinekit.acceptance.profiles import acceptance_profiles
    from rooflinekit.acceptance.table import by_position
    from rooflinekit.acceptance_options import look_up

    found, read = look_up(name, measured_k)
    profile = acceptance_profiles().get(name)
    rows = by_position(found, profile.largest_k if profile else read.k if read else None)
    if as_json:
        facts = {} if profile is None else profile.facts()
        facts |= {} if read is None else read.as_dict()
        print_json(
            {
                **facts,
                "label": found.label,
                "rounds": found.rounds,
                "positions": [asdict(row) for row in rows],
                "warnings": found.warnings,
            }
        )
        return
    from rooflinekit.report.acceptance import acceptance_text

    if read is not None:
        from rooflinekit.report.engine_output import output_text

        show(output_text(read))
    show(acceptance_text(found, rows, profile))


@command.command("fit")
@NAME
@MEASURED_K
@JSON
def fit(name: str, measured_k: int | None, as_json: bool) -> None:  # noqa: FBT001
    """Fit a constant and a decaying rate to a histogram or survival, and say which is good enough."""
    from rooflinekit.acceptance import Survival
    from rooflinekit.acceptance.fits import fit_constant, fit_decay
    from rooflinekit.acceptance_options import find_acceptance
    from rooflinekit.errors import AcceptanceError
    from rooflinekit.report.acceptance import choice, fits_text

    found = find_acceptance(name, measured_k)
    if not isinstance(found, Survival):
        raise AcceptanceError(
            f"{name} holds no acceptance by position ({found.label}), so there is nothing to fit; give a histogram, "
            "a survival, conditional rates or lengths by K"
        )
    fits = {"constant": fit_constant(found)}
    if len(found.values) > 1:
        fits["decay"] = fit_decay(found)
    if as_json:
        print_json({**{key: plain_fit(one) for key, one in fits.items()}, "good_enough": choice(fits)})
        return
    show(fits_text(found, fits))


def plain_fit(fit: Any) -> dict[str, Any]:
    """Data of a fit for JSON."""
    return {
        **{name: estimate._asdict() for name, estimate in fit.estimates.items()},
        "deviance": fit.deviance,
        "degrees": fit.degrees,
        "p_value": fit.p_value,
        "worst_error": fit.worst_error,
        "worst_k": fit.worst_k,
        "adequate": fit.adequate,
        "warnings": fit.warnings,
    }
