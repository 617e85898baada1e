"""What was read from an engine's output: acceptance, and measured times beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rooflinekit.acceptance import Acceptance
from rooflinekit.readers.engine_outputs.files import Opened


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One row of a benchmark over K; K = 0 is the plain run.

    Attributes
    ----------
    k, width
        Drafts of a round (depth of a tree), rows of its verify.
    batch
        Concurrent sequences.
    acceptance_length
        Tokens per round, bonus included.
    round_s
        A round (s), a plain step for K = 0.
    """

    k: int
    width: int
    batch: float
    acceptance_length: float
    round_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOutput:
    """One measured setting as an engine printed it; ``None`` where it did not say.

    Attributes
    ----------
    engine, what, where
        Engine or tool; kind of output; the files.
    definition
        How its numbers are defined, in words.
    acceptance
        Acceptance, best form that the file allows; ``None`` for a run without speculation.
    k
        Drafts of a round, at most.
    drafted_per_round
        Drafts of a round on average, where it is not K.
    width
        Rows of a verify, where it is not K + 1 (a tree).
    acceptance_length
        Tokens per round, bonus included.
    rounds, accepted
        Rounds of single sequences, and drafts accepted in them.
    round_s, rounds_per_s
        A round of one sequence (s), or the rounds of all sequences in a second.
    token_s
        Time per token of one sequence (s).
    draft_s
        All drafting of a round (s).
    concurrency
        Sequences running at the same time.
    model
        Name of the target.
    runs
        The rows of a benchmark over K.
    notes
        Warnings.
    """

    engine: str
    what: str
    where: str
    definition: str
    acceptance: Acceptance | None = None
    k: int | None = None
    drafted_per_round: float | None = None
    width: int | None = None
    acceptance_length: float | None = None
    rounds: float | None = None
    accepted: float | None = None
    round_s: float | None = None
    rounds_per_s: float | None = None
    token_s: float | None = None
    draft_s: float | None = None
    concurrency: float | None = None
    model: str | None = None
    runs: tuple[Run, ...] = ()
    notes: tuple[str, ...] = ()

    def round_at(self, concurrency: float | None = None) -> float | None:
        """A round of one sequence (s): as printed, else by Little's law from the rounds in a second.

        ``round_s = concurrency / rounds_per_s``; one sequence where the concurrency is unknown.
        """
        if self.round_s is not None:
            return self.round_s
        if self.rounds_per_s:
            return (concurrency or self.concurrency or 1.0) / self.rounds_per_s
        if self.token_s is not None and self.acceptance_length is not None:
            return self.token_s * self.acceptance_length
        return None

    def token_at(self, concurrency: float | None = None) -> float | None:
        """Time per token of one sequence (s): as printed, else a round over its tokens."""
        if self.token_s is not None:
            return self.token_s
        whole = self.round_at(concurrency)
        return None if whole is None else whole / (self.acceptance_length or 1.0)

    def as_dict(self) -> dict[str, Any]:
        """Plain data: where it is from, and everything that is known."""
        numbers = (
            "k",
            "drafted_per_round",
            "width",
            "acceptance_length",
            "rounds",
            "accepted",
            "draft_s",
            "concurrency",
            "model",
        )
        known = {name: getattr(self, name) for name in numbers if getattr(self, name) is not None}
        times = {"round_s": self.round_at(), "token_s": self.token_at()}
        return {
            **{name: getattr(self, name) for name in ("engine", "what", "where", "definition")},
            **known,
            **{name: value for name, value in times.items() if value is not None},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the user said beside the file.

    Attributes
    ----------
    part
        Which of several things in the file (``FILE#part``).
    k
        K, where the file does not have it.
    batch
        Concurrency, where the file holds several.
    """

    part: str = ""
    k: int | None = None
    batch: float | None = None


def _never(first: Any) -> bool:  # noqa: ARG001 - a text reader's answer to any JSON
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """A reader of one kind of output.

    Attributes
    ----------
    name
        Kebab-case.
    reads
        What it reads, for messages and the manual.
    read
        Reads one file, or the two scrapes of a difference.
    recognises
        Whether the first JSON document of a file is its own.
    markers
        Bytes that occur in its text files and in no other.
    """

    name: str
    reads: str
    read: Callable[[tuple[Opened, ...], Asked], EngineOutput]
    recognises: Callable[[Any], bool] = _never
    markers: tuple[bytes, ...] = ()
