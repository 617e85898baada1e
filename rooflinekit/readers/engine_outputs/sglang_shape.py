"""K and width from SGLang's options, as they stand in logs and in ``server_info``."""

from __future__ import annotations

import re
from typing import Any

from rooflinekit.readers.engine_outputs.fields import find_first

OPTIONS = ("speculative_num_steps", "speculative_num_draft_tokens", "speculative_eagle_topk")
MARKER = b"speculative_num_draft_tokens="
OLD_RATE = (
    "accept rate is A / (K + 1), which counts the bonus token as an accepted draft (SGLang before pull request 23530, "
    "2026): {rate:.2f} printed, {drafts:.2f} of the drafts were accepted"
)


def shape(steps: int | None, nodes: int | None, top: int | None) -> tuple[int | None, int | None]:
    """K, and the width where it is a tree.

    A chain drafts ``num_draft_tokens - 1``: the root counts. With ``eagle_topk`` above 1 K is the depth and
    ``num_draft_tokens`` the width.
    """
    if top is not None and top > 1:
        return steps, nodes
    if nodes is not None and nodes > 1:
        return nodes - 1, None
    return steps, None


def shape_in_text(text: str) -> tuple[int | None, int | None]:
    """Shape from a line that prints the server's options."""
    values: list[int | None] = []
    for name in OPTIONS:
        found = re.search(rf"\b{name}=(\d{{1,4}})\b", text)
        values.append(int(found.group(1)) if found else None)
    return shape(*values)


def shape_in_info(info: Any) -> tuple[int | None, int | None]:
    """Shape from ``server_info``."""
    found = [find_first(info, name) for name in OPTIONS]
    return shape(*(value if type(value) is int and 0 < value < 10_000 else None for value in found))
