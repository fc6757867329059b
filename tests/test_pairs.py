"""Script and notebook of each pair tell the same story, in the form in which JupyterLab would save them."""

import subprocess
from pathlib import Path

import nbformat
import pytest

from tools.notebooks import (
    PLANE,
    VIEW,
    Pair,
    clean,
    clean_before_save,
    notebook_text,
    pairs,
    read_notebook,
    read_script,
    script_text,
    tracked,
)
from tools.sync import disagreements


def of_the_project(found: list[Pair], files: list[Path]) -> list[Pair]:
    """The pairs with a side that git tracks; a reader's own notebook need have no script."""
    return [pair for pair in found if {pair.script, pair.notebook} & set(files)]


PAIRS = of_the_project(pairs(), tracked())


def test_there_are_pairs() -> None:
    assert "chapters/8_0_design_problem" in [pair.name for pair in PAIRS]


def test_a_readers_own_notebook_needs_no_script(tmp_path: Path) -> None:
    (tmp_path / "chapters").mkdir()
    for name in ("8_0_a.ipynb", "8_1_b.py", "mine.ipynb"):
        (tmp_path / "chapters" / name).touch()
    assert [pair.name for pair in of_the_project(pairs(tmp_path), tracked(tmp_path))] == [
        "chapters/8_0_a",
        "chapters/8_1_b",
        "chapters/mine",
    ]
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "chapters/8_0_a.ipynb", "chapters/8_1_b.py"], cwd=tmp_path, check=True)
    assert [pair.name for pair in of_the_project(pairs(tmp_path), tracked(tmp_path))] == [
        "chapters/8_0_a",
        "chapters/8_1_b",
    ]


def test_sides_agree() -> None:
    assert disagreements(PAIRS) == []


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_saving_changes_nothing(pair) -> None:
    script = pair.script.read_text(encoding="utf-8")
    notebook = pair.notebook.read_text(encoding="utf-8")
    assert script_text(clean(read_script(script))) == script
    assert notebook_text(clean(read_notebook(notebook))) == notebook


def ran(*counts: int | None):
    """A notebook whose cells ran with these counts, each giving its value."""
    v4 = nbformat.v4
    cells = [v4.new_code_cell("x", execution_count=count) for count in counts]
    for cell in cells:
        value = v4.new_output("execute_result", {"text/plain": "x"}, execution_count=cell.execution_count)
        cell.outputs = [value]
    return v4.new_notebook(cells=cells)


def counts(notebook) -> list[tuple[int | None, int | None]]:
    return [(cell.execution_count, cell.outputs[0].execution_count) for cell in notebook.cells]


def test_a_second_run_in_one_kernel_is_numbered_as_the_first() -> None:
    assert counts(clean(ran(7, 8, 10))) == [(1, 1), (2, 2), (3, 3)]


@pytest.mark.parametrize("order", [(2, 1), (1, None), (1, 1)])
def test_a_run_in_another_order_stays_visible(order: tuple[int | None, ...]) -> None:
    assert counts(clean(ran(*order))) == [(count, count) for count in order]


def test_a_live_view_is_dropped_and_the_picture_kept() -> None:
    v4 = nbformat.v4
    both = v4.new_output("display_data", {VIEW: {"model_id": "a"}, "image/png": "AAAA\n", "text/plain": "6.95 s"})
    alone = v4.new_output("display_data", {VIEW: {"model_id": "b"}})
    notebook = clean(v4.new_notebook(cells=[v4.new_code_cell("x", outputs=[both, alone])]))
    assert [output.data for output in notebook.cells[0].outputs] == [{"image/png": "AAAA", "text/plain": "6.95 s"}]


def test_the_picture_that_jupyterlab_takes_of_a_plane_is_dropped() -> None:
    v4 = nbformat.v4
    drawn = v4.new_output("display_data", {PLANE: {"data": []}, "image/png": "AAAA"})
    notebook = clean(v4.new_notebook(cells=[v4.new_code_cell("x", outputs=[drawn])]))
    assert [output.data for output in notebook.cells[0].outputs] == [{PLANE: {"data": []}}]


def test_pieces_of_a_stream_are_joined() -> None:
    v4 = nbformat.v4
    pieces = [v4.new_output("stream", name=name, text=text) for name, text in [("stdout", "a\n"), ("stdout", "b\n")]]
    pieces.append(v4.new_output("stream", name="stderr", text="c\n"))
    notebook = clean(v4.new_notebook(cells=[v4.new_code_cell("x", outputs=pieces)]))
    assert [(output.name, output.text) for output in notebook.cells[0].outputs] == [
        ("stdout", "a\nb\n"),
        ("stderr", "c\n"),
    ]


@pytest.mark.parametrize(("path", "left_alone"), [("chapters/8_0_x.ipynb", False), ("my notes.ipynb", True)])
def test_only_the_chapters_notebooks_are_cleaned_on_saving(path: str, left_alone: bool) -> None:
    model = {"type": "notebook", "content": {"cells": [], "metadata": {"widgets": {}}}}
    clean_before_save(model, path, contents_manager=None)
    assert ("widgets" in model["content"]["metadata"]) is left_alone
