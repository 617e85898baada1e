"""How many drafted tokens the target accepts, as one object with one question: ``expected(k)``.

Words (``docs/glossary.md``): the *survival* S_i is the probability that the first i drafts are all
accepted; the *acceptance length* A counts the tokens a round emits, bonus token included:
``A = 1 + S_1 + ... + S_K``.

One file per kind: ``constant``, ``decaying``, ``survival`` (and ``lengths``, which makes one),
``mixture``. ``fits`` fits the first two to counts, ``profiles`` holds what others published.
"""

from rooflinekit.acceptance.base import Acceptance
from rooflinekit.acceptance.constant import Constant, expected_tokens, from_length, solve_alpha
from rooflinekit.acceptance.decaying import Decaying
from rooflinekit.acceptance.lengths import from_lengths
from rooflinekit.acceptance.mixture import Mixture
from rooflinekit.acceptance.survival import Survival, from_conditional, from_histogram

__all__ = [
    "Acceptance",
    "Constant",
    "Decaying",
    "Mixture",
    "Survival",
    "expected_tokens",
    "from_conditional",
    "from_histogram",
    "from_length",
    "from_lengths",
    "solve_alpha",
]
