"""The notebooks run from their first cell to their last, and show pictures."""

import os
import pathlib

import pytest

NOTEBOOKS = sorted(pathlib.Path(__file__).resolve().parent.parent.glob("notebooks/*.ipynb"))
CELL_S = 600


def test_there_are_notebooks():
    assert [path.stem for path in NOTEBOOKS] == ["researcher", "service_owner"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    pytest.importorskip("pandas")
    pytest.importorskip("polars")
    if path.stem == "service_owner" and os.geteuid() != 0:
        pytest.skip("needs root")
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=CELL_S, kernel_name="python3").execute()
    shown = [
        output["data"].get("text/html", "")
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if output.output_type == "execute_result"
    ]
    assert "<svg" in shown[-1], "the last cell shows the section of the report"
    assert any("<table" in html for html in shown)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_what_it_showed(path):
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert not [
        cell for cell in notebook.cells if cell.get("outputs") or cell.get("execution_count")
    ]
