"""Pictures of sampling: points and lines are what the exact computation says."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from rooflinekit.acceptance import expected_tokens
from rooflinekit.plot.sampling import distance_of, length_curve, lossy_curve
from rooflinekit.plot.style import save
from rooflinekit.sampling import Chain, blended, contexts, draft_at, random_distributions, speculative

TARGET = random_distributions((6, 6), 3, 0.4)
DRAFT = draft_at(TARGET, 0.6)
EXACT = Chain(speculative(TARGET, DRAFT), contexts(6, 1))


def line(ax, gid):
    (found,) = [one for one in ax.lines if one.get_gid() == gid]
    return np.asarray(found.get_xdata(), dtype=float), np.asarray(found.get_ydata(), dtype=float)


def test_length_curve_shows_the_formula(tmp_path):
    ax = length_curve({"even": EXACT}, ks=(1, 2, 4), sequences=200, rounds=5)
    for gid in ("exact even", "formula even"):
        ks, lengths = line(ax, gid)
        np.testing.assert_allclose(lengths, expected_tokens(0.6, ks), atol=1e-9)
    (sampled,) = ax.containers
    (bars,) = sampled.lines[2]
    for k, (low, high) in zip((1, 2, 4), (segment[:, 1] for segment in bars.get_segments()), strict=True):
        middle, half = (low + high) / 2, (high - low) / 2
        assert abs(middle - expected_tokens(0.6, k)) < 2 * half
    assert save(ax, tmp_path / "one.png").exists()


def test_lossy_curve_shows_distance_and_length(tmp_path):
    chains = [Chain(blended(TARGET, DRAFT, share), contexts(6, 1)) for share in (0.0, 0.5, 1.0)]
    ax = lossy_curve({"blend": chains}, k=3, exact=EXACT)
    distances, lengths = line(ax, "rule blend")
    np.testing.assert_allclose(distances, [0.0, 0.2, 0.4], atol=1e-9)
    np.testing.assert_allclose(lengths, expected_tokens(np.array([0.6, 0.8, 1.0]), 3), atol=1e-9)
    assert line(ax, "exact")[1] == pytest.approx(expected_tokens(0.6, 3))
    assert distance_of(EXACT) < 1e-12
    assert save(ax, tmp_path / "two.png").exists()
