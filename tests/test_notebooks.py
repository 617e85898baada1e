"""Notebooks run from top to bottom, and are committed without their outputs."""

from __future__ import annotations

import asyncio
import json
import shutil
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
LIMIT_S = 60

by_name = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def cells(path: Path, kind: str) -> list[dict]:
    """Cells of one kind."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    return [cell for cell in notebook["cells"] if cell["cell_type"] == kind]


def test_there_are_notebooks():
    assert NOTEBOOKS


@by_name
def test_notebook_is_valid(path):
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(path, as_version=nbformat.NO_CONVERT)
    nbformat.validate(notebook)


@by_name
def test_notebook_is_committed_without_outputs(path):
    dirty = [
        cell["id"] for cell in cells(path, "code") if cell["outputs"] or cell["execution_count"] is not None
    ]
    assert not dirty
    assert "widgets" not in json.loads(path.read_text(encoding="utf-8"))["metadata"]


@by_name
def test_notebook_checks_its_claims(path):
    code = ["".join(cell["source"]) for cell in cells(path, "code")]
    assert sum("assert " in source for source in code) >= len(code) / 2


@by_name
def test_links_of_a_notebook_resolve(path):
    import re

    for cell in cells(path, "markdown"):
        for link in re.findall(r"\]\(([^)#\s]+)", "".join(cell["source"])):
            assert link.startswith("http") or (path.parent / link).exists(), link


@pytest.mark.notebook
@by_name
def test_notebook_runs(path, tmp_path, monkeypatch):
    pytest.importorskip("ipykernel")
    pytest.importorskip("ipywidgets")
    pytest.importorskip("matplotlib")
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    # The user's own start-up files and saved calibration are not what is tested.
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("ROOFLINEKIT_LOCAL", str(tmp_path / "none.yaml"))
    copy = Path(shutil.copy(path, tmp_path))
    notebook = nbformat.read(copy, as_version=4)
    client = nbclient.NotebookClient(
        notebook, timeout=LIMIT_S, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    with warnings.catch_warnings():
        # What Jupyter warns about itself (ports, event loops) is not about the notebook.
        warnings.simplefilter("ignore")
        asyncio.run(client.async_execute())
    produced = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    complaints = [o["text"] for o in produced if o["output_type"] == "stream" and o["name"] == "stderr"]
    assert not complaints
    assert any("image/png" in output.get("data", {}) for output in produced)
