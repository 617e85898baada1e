"""``rooflinekit diagnose``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from rooflinekit.cli.common import DEVICE, JSON, options, print_json, show
from rooflinekit.cli.recommend import DRAFTER_HELP

PLAIN = options(
    click.option("--plain-ms", type=float, help="One step without speculation, as a stopwatch sees it (ms)."),
    click.option("--plain-tok-s", type=float, help="Or tokens per second without speculation."),
    click.option("--tpot-ms", type=float, help="Time per token with speculation (ms)."),
    click.option("--spec-tok-s", type=float, help="Or tokens per second with it."),
    click.option("--speedup", type=float, help="A ratio that was printed; it is checked."),
    click.option(
        "--batch",
        type=float,
        default=1,
        show_default=True,
        help="Sequences that the tokens per second are of, all together.",
    ),
)
ROUND = options(
    click.option("--k", type=int, help="Drafted tokens per round (depth of a tree)."),
    click.option("--width", type=int, help="Rows of a verify, where not K + 1 (a tree)."),
    click.option("--draft-ms", type=float, help="All drafting of a round (ms)."),
    click.option(
        "--verify-ms", metavar="W=MS,...", help="Verify times by rows, such as 1=8.5,2=13.5,5=20.7."
    ),
    click.option(
        "--weight-only",
        is_flag=True,
        help="Weights have fewer bits than they are computed in (w8a16, w4a16).",
    ),
)
ACCEPTED = options(
    click.option("--acceptance-length", type=float, help="Tokens per round, bonus included."),
    click.option(
        "--accepted", type=float, help="Accepted drafts, over all rounds; with one of the next three."
    ),
    click.option("--rounds", type=float, help="Rounds (verifies)."),
    click.option("--generated", type=float, help="Generated tokens."),
    click.option("--drafted", type=float, help="Drafted tokens."),
    click.option("--survival", help="P(first i drafts all accepted), for example 0.8,0.6,0.45."),
    click.option("--alpha", type=float, help="Constant acceptance rate, 0..1, where nothing was counted."),
)
FILES = options(
    click.option(
        "--from",
        "from_file",
        metavar="FILE",
        help="What the engine wrote (metrics, log, benchmark result): fills in the options; what you type wins.",
    ),
    click.option(
        "--plain-from",
        metavar="FILE",
        help="What the engine wrote in a run without speculation: gives the plain step.",
    ),
)
MORE = options(
    click.option(
        "--sweep",
        type=click.Path(path_type=Path),
        help="CSV: k, acceptance_length, tpot_ms or tok_s; k = 0 is plain.",
    ),
    click.option(
        "--deep-plain-tok-s",
        type=float,
        help="The plain run at a context longer than that of the other options.",
    ),
    click.option("--deep-spec-tok-s", type=float, help="The speculative run at that context."),
)
BESIDE = options(
    click.option(
        "--model", help="Target, to lay predicted numbers beside the measured ones; with --hardware."
    ),
    click.option("--hardware", help="Name of `hardware list`, a YAML file, or local."),
    click.option("--drafter", help=DRAFTER_HELP),
    click.option("--context", type=float, default=4096, show_default=True, help="Tokens in the KV cache."),
)


@click.command("diagnose")
@FILES
@PLAIN
@ACCEPTED
@ROUND
@MORE
@BESIDE
@DEVICE
@JSON
def command(as_json: bool, **given: Any) -> None:  # noqa: FBT001 - click passes it by name
    """Say what measured numbers of speculation imply: break-even, R(W), c, what eats the gain, the best K."""
    from rooflinekit.cli.diagnosing import answer

    filled = None
    if given["from_file"] is not None or given["plain_from"] is not None:
        from rooflinekit.cli.from_file import fill

        source = click.get_current_context().get_parameter_source("batch")
        filled = fill(given, batch_typed=source is not ParameterSource.DEFAULT)
        given = filled.given
    found = answer(given, filled)
    read = [one for one in (filled.read, filled.plain) if one is not None] if filled else []
    notes = filled.notes if filled else ()
    if as_json:
        print_json(
            found.as_dict() | ({"read": [one.as_dict() for one in read], "notes": notes} if read else {})
        )
        return
    from rooflinekit.report.diagnosis import diagnosis_text
    from rooflinekit.report.engine_output import output_text, warning_text

    show(*map(output_text, read), *map(warning_text, notes), diagnosis_text(found))
