"""What speculation costs in operations rather than time: rejected drafts are computed for nothing."""

from __future__ import annotations

import numpy as np

from rooflinekit.acceptance import expected_tokens
from rooflinekit.errors import AcceptanceError
from rooflinekit.work import Real


def operations_factor(alpha: Real, k: Real, c_hat: Real) -> Real:
    """Operations per emitted token over those of plain decoding.

    ``(1 - alpha) (K c_hat + K + 1) / (1 - alpha^(K+1))``: a round runs K draft steps and K + 1 rows of the
    target for ``expected_tokens`` tokens. Leviathan et al. 2023 (arXiv:2211.17192), Theorem 3.11. It decides
    where the device is compute-bound; in the memory-bound regime :func:`~rooflinekit.speculation.eta` does.

    Parameters
    ----------
    alpha
        Acceptance rate of a drafted token (0..1).
    k
        Drafted tokens per round (gamma in the paper).
    c_hat
        Operations of a draft step per token over those of the target (>= 0): mostly the ratio of parameters.

    Raises
    ------
    AcceptanceError
        A rate outside 0..1, a negative K or a negative ``c_hat``.

    Examples
    --------
    >>> round(operations_factor(0.8, 5, 0.0), 2)
    1.63
    """
    if not np.all(np.asarray(c_hat) >= 0):
        raise AcceptanceError(
            f"ratio of operations c_hat = {c_hat} is negative; give the operations of a draft step over the target's"
        )
    return (k * c_hat + k + 1.0) / expected_tokens(alpha, k)
