"""Pictures of a validation: every value that is given is drawn."""

import pytest

from rooflinekit.plot.style import save
from rooflinekit.plot.validation import Curve, curve_panels, efficiency_map, error_bars

CURVE = Curve(
    rows=[1, 16, 64],
    measured=[1.0, 1.1, 1.4],
    predicted=[1.0, 1.05, 1.5],
    low=[1, 1, 1.3],
    high=[1, 1.2, 1.6],
)


def test_curves_show_measured_and_modelled_values(tmp_path):
    """Points are the measured values, the line is the model, a panel for each name; a file comes out."""
    figure = curve_panels({"a": CURVE, "b": CURVE, "c": CURVE, "d": CURVE}, title="t", y_label="y")
    panels = [ax for ax in figure.axes if ax.axison]
    assert [ax.get_title(loc="left") for ax in panels] == ["a", "b", "c", "d"]
    lines = {line.get_label(): list(line.get_ydata()) for line in panels[0].lines}
    assert lines["model"] == CURVE.predicted
    assert lines["measured, held out"] == CURVE.measured
    assert save(figure, tmp_path / "x.png").stat().st_size > 5000


def test_a_plain_guess_is_named():
    """Its line is there only where it is given."""
    curve = Curve(rows=[1, 16], measured=[1, 2], predicted=[1, 2], plain=[1, 3])
    labels = {
        line.get_label()
        for line in curve_panels({"a": curve}, title="t", y_label="y", plain_label="guess").axes[0].lines
    }
    assert "guess" in labels


def test_bars_are_in_percent():
    """A median error of 2 % is a bar of 2."""
    figure = error_bars({"a": [("1-16", 0.02, 0.2)]}, title="t", plain_label="datasheet")
    assert sorted(patch.get_height() for patch in figure.axes[0].patches) == pytest.approx([2, 20])


def test_the_map_writes_shares_and_leaves_gaps():
    """Nothing stands where nothing was measured."""
    figure = efficiency_map([1, 16], ["small", "large"], [[0.5, float("nan")], [0.8, 0.9]], title="t")
    assert sorted(text.get_text() for text in figure.axes[0].texts) == ["50", "80", "90"]
