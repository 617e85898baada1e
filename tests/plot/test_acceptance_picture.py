"""The picture of acceptance by position shows the numbers it was given."""

import json

import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from rooflinekit.acceptance import Decaying, Survival, from_histogram
from rooflinekit.acceptance.fits import fit_decay
from rooflinekit.cli import run
from rooflinekit.plot.acceptance import fits_of, survival_curve


def line(ax, gid):
    """Heights of the line with this name."""
    return next(one for one in ax.lines if one.get_gid() == gid).get_ydata()


@pytest.fixture
def ax():
    return Figure(layout="constrained").add_subplot()


def test_points_are_the_survival_and_lines_the_fits(ax):
    """Measured 0.8, 0.5; the decay as fitted; error bars where counted."""
    found = from_histogram([20, 30, 50])
    assert survival_curve(found, ax) is ax
    assert list(line(ax, "measured")) == [0.8, 0.5]
    model = fit_decay(found).model
    assert list(line(ax, "fit decay")) == pytest.approx([model.survival_at(1), model.survival_at(2)])
    assert len(ax.containers) == 1
    assert ax.get_xlabel()
    assert ax.get_ylabel()


def test_nothing_is_fitted_to_a_fault(ax):
    """The warning stands in the picture instead."""
    found = Survival((0.8, 0.6, 0.01), 105)
    assert fits_of(found) == {}
    survival_curve(found, ax)
    assert any("breaks off after position 2" in " ".join(text.get_text().split()) for text in ax.texts)


def test_a_model_is_drawn_as_a_line(ax):
    """Eight positions of any, or as many as asked for."""
    survival_curve(Decaying(0.8, 0.6), ax, max_k=3)
    assert list(line(ax, "as described")) == pytest.approx([0.8, 0.56, 0.364])
    assert not ax.containers


def test_command_writes_the_picture(tmp_path, capsys):
    """A file and a profile; a K that was not measured is refused."""
    out = tmp_path / "a.svg"
    path = tmp_path / "h.json"
    path.write_text(json.dumps({"histogram": [20, 30, 50]}), encoding="utf-8")
    assert run(["plot", "acceptance", "--acceptance", str(path), "--out", str(out)]) == 0
    assert "fit constant" in out.read_text(encoding="utf-8")
    words = ["plot", "acceptance", "--acceptance", "eagle3-qwen3-8b-mt-bench", "--out", str(out)]
    assert run([*words, "--max-k", "2"]) == 0
    assert run([*words, "--max-k", "4"]) == 2
    assert "--max-k 4 is out of range" in capsys.readouterr().err
