"""Sync decides by content and by git, and never loses an edit silently."""

import json
import subprocess
from pathlib import Path

import pytest

from tools.execution import run
from tools.notebooks import (
    Pair,
    clean,
    code_cells,
    content,
    notebook_text,
    pairs,
    read_notebook,
    read_script,
    script_text,
)
from tools.sync import NOTEBOOK, SCRIPT, disagreements, main, sync

NAME = "chapters/8_9_try"
FIRST = "# %% [markdown]\n# A question 问题\n\n# %%\nprint(1)\n\n# %%\nprint(2)\n"


def git(root: Path, *words: str) -> None:
    someone = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run(["git", *someone, *words], cwd=root, check=True, capture_output=True)


def commit(root: Path) -> None:
    git(root, "add", "chapters")
    git(root, "commit", "-q", "-m", "state")


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    """A committed pair that agrees, in a repository of its own, with no memory of earlier syncs."""
    git(tmp_path, "init", "-q")
    pair = new_pair(tmp_path)
    commit(tmp_path)
    return pair


def new_pair(root: Path) -> Pair:
    """A pair that agrees, not committed."""
    pair = Pair(root, NAME)
    pair.script.parent.mkdir()
    pair.script.write_text(FIRST, encoding="utf-8")
    assert sync([pair], execute=False) == []
    forget(pair)
    return pair


def forget(pair: Pair) -> None:
    (pair.root / "build" / "agreed.json").unlink()


def edit_script(pair: Pair, old: str, new: str) -> None:
    text = pair.script.read_text(encoding="utf-8")
    assert old in text
    pair.script.write_text(text.replace(old, new), encoding="utf-8")


def edit_notebook(pair: Pair, old: str, new: str) -> None:
    notebook = stored(pair)
    for cell in notebook.cells:
        cell.source = cell.source.replace(old, new)
    pair.notebook.write_text(notebook_text(notebook), encoding="utf-8")


def stored(pair: Pair):
    return read_notebook(pair.notebook.read_text(encoding="utf-8"))


def sources(pair: Pair) -> list[str]:
    return [cell.source for cell in stored(pair).cells]


def both(pair: Pair) -> tuple[bytes, bytes]:
    return pair.script.read_bytes(), pair.notebook.read_bytes()


def refused(pair: Pair, *, reason: str) -> None:
    """Sync refuses, says why and how to choose, and leaves every byte."""
    before = both(pair)
    (said,) = sync([pair], execute=False)
    assert reason in said
    assert f'make sync ARGS="--take py {NAME}"' in said
    assert f'make sync ARGS="--take ipynb {NAME}"' in said
    assert both(pair) == before


def test_an_agreeing_pair_stays_as_it_is(pair: Pair) -> None:
    before = both(pair)
    assert sync([pair], execute=False) == []
    assert both(pair) == before


def test_notebook_follows_an_edited_script(pair: Pair) -> None:
    edit_script(pair, "print(2)", "print(3)")
    assert sync([pair], execute=False) == []
    assert sources(pair)[-1] == "print(3)"


def test_script_follows_an_edited_notebook(pair: Pair) -> None:
    edit_notebook(pair, "print(2)", "print(3)")
    assert sync([pair], execute=False) == []
    assert "print(3)" in pair.script.read_text(encoding="utf-8")
    assert disagreements([pair]) == []


def test_refuses_when_both_were_edited(pair: Pair) -> None:
    edit_script(pair, "print(1)", "print(10)")
    edit_notebook(pair, "print(2)", "print(20)")
    refused(pair, reason="both sides were edited")


def test_refuses_when_committed_different(pair: Pair) -> None:
    edit_script(pair, "print(1)", "print(10)")
    commit(pair.root)
    refused(pair, reason="committed different")


@pytest.mark.parametrize(("side", "other"), [(SCRIPT, NOTEBOOK), (NOTEBOOK, SCRIPT)])
def test_refuses_when_one_side_was_put_back(pair: Pair, side: str, other: str) -> None:
    edit_script(pair, "print(1)", "print(10)")
    assert sync([pair], execute=False) == []
    git(pair.root, "checkout", "--", f"{NAME}.{side}")
    refused(pair, reason=f"the .{side} is as it was committed, the .{other} as both were when they last agreed")


def test_refuses_outside_of_a_repository(tmp_path: Path) -> None:
    pair = new_pair(tmp_path)
    edit_script(pair, "print(1)", "print(10)")
    refused(pair, reason="both sides were edited")


def test_one_refusal_holds_back_all(pair: Pair) -> None:
    other = Pair(pair.root, "chapters/8_8_other")
    other.script.write_text(FIRST, encoding="utf-8")
    assert sync([other], execute=False) == []
    commit(pair.root)
    forget(other)
    edit_script(other, "print(1)", "print(10)")
    edit_script(pair, "print(1)", "print(10)")
    edit_notebook(pair, "print(2)", "print(20)")
    before = both(other)
    assert len(sync([other, pair], execute=False)) == 1
    assert both(other) == before


def test_two_edits_without_a_commit_between(pair: Pair) -> None:
    edit_script(pair, "print(1)", "print(10)")
    assert sync([pair], execute=False) == []
    edit_script(pair, "print(10)", "print(100)")
    assert sync([pair], execute=False) == []
    assert sources(pair)[1] == "print(100)"


def test_an_edit_back_to_an_older_state_is_not_lost(pair: Pair) -> None:
    assert sync([pair], execute=False) == []
    edit_script(pair, "print(1)", "print(10)")
    pair.notebook.write_text(notebook_text(read_script(pair.script.read_text(encoding="utf-8"))), encoding="utf-8")
    commit(pair.root)
    edit_notebook(pair, "print(10)", "print(1)")
    refused(pair, reason="the .py is as it was committed")


@pytest.mark.parametrize(("side", "last"), [(SCRIPT, "print(2)"), (NOTEBOOK, "print(20)")])
def test_the_chosen_side_leads(pair: Pair, side: str, last: str) -> None:
    edit_script(pair, "print(1)", "print(10)")
    edit_notebook(pair, "print(2)", "print(20)")
    assert main(["--no-run", "--take", side, NAME], pair.root) == 0
    assert sources(pair)[-1] == last
    assert disagreements([pair]) == []


def test_taking_a_side_needs_a_name(pair: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--take", "py"], pair.root)
    assert "needs the names" in capsys.readouterr().err


NO_CELL = '{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [1]}'


@pytest.mark.parametrize("arguments", [[], ["--check"]])
@pytest.mark.parametrize("text", ["<<<<<<< HEAD\n{}\n", "[1]", "null", "{}", NO_CELL, ""])
def test_a_file_that_is_no_notebook_is_named(pair: Pair, text: str, arguments: list[str], capsys) -> None:
    pair.notebook.write_text(text, encoding="utf-8")
    edit_script(pair, "print(1)", "print(10)")
    before = both(pair)
    assert main(arguments, pair.root) == 1
    (said,) = capsys.readouterr().err.splitlines()
    assert f"{NAME}.ipynb is not a notebook" in said and f'make sync ARGS="--take py {NAME}"' in said
    assert both(pair) == before
    pair.notebook.unlink()
    assert main(["--no-run", "--take", "py", NAME], pair.root) == 0
    assert disagreements([pair]) == []


@pytest.mark.parametrize("data", [b"# %%\nprint('\xff')\n", "# %%\n1\n".encode("utf-16")])
def test_a_file_that_is_no_script_is_named(pair: Pair, data: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    pair.script.write_bytes(data)
    before = both(pair)
    assert main(["--no-run"], pair.root) == 1
    (said,) = capsys.readouterr().err.splitlines()
    assert f"{NAME}.py is not a script" in said and f'make sync ARGS="--take ipynb {NAME}"' in said
    assert both(pair) == before


def test_a_damaged_file_that_was_committed_does_not_stop_its_mending(pair: Pair) -> None:
    whole = pair.notebook.read_bytes()
    pair.notebook.write_text("[1]", encoding="utf-8")
    commit(pair.root)
    pair.notebook.write_bytes(whole)
    edit_notebook(pair, "print(2)", "print(3)")
    assert sync([pair], execute=False) == []
    assert "print(3)" in pair.script.read_text(encoding="utf-8")


@pytest.mark.parametrize("record", [b"{", b"[1]", b"\xff", b""])
def test_a_damaged_record_is_taken_as_empty(pair: Pair, record: bytes) -> None:
    (pair.root / "build" / "agreed.json").write_bytes(record)
    edit_script(pair, "print(2)", "print(3)")
    assert sync([pair], execute=False) == []
    assert sources(pair)[-1] == "print(3)"
    assert list(json.loads((pair.root / "build" / "agreed.json").read_text(encoding="utf-8"))) == [NAME]


@pytest.mark.parametrize("arguments", [[], ["--check"], ["--take", "py", NAME], ["--take", "ipynb", NAME]])
def test_a_picture_inside_a_cell_is_refused(pair: Pair, arguments: list[str], capsys) -> None:
    notebook = stored(pair)
    notebook.cells[0].attachments = {"a.png": {"image/png": "AAAA"}}
    pair.notebook.write_text(notebook_text(notebook), encoding="utf-8")
    edit_script(pair, "print(2)", "print(3)")
    before = both(pair)
    assert main(arguments, pair.root) == 1
    (said,) = capsys.readouterr().err.splitlines()
    assert f"{NAME}.ipynb, cell 1 holds a picture" in said
    assert "put the picture into a file beside the notebook and link to it" in said
    assert both(pair) == before


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_line_ends_are_no_difference(pair: Pair, end: str) -> None:
    edit_notebook(pair, "print(2)", f"print(2){end}print(3)")
    assert sync([pair], execute=False) == []
    assert disagreements([pair]) == []
    assert sources(pair)[-1] == "print(2)\nprint(3)"
    pair.script.write_bytes(pair.script.read_bytes().replace(b"\n", b"\r\n"))
    assert disagreements([pair]) == []


@pytest.mark.parametrize("blank", ["\n", "\n\n\n", "  ", "\n  \n"])
@pytest.mark.parametrize("old", ["A question 问题", "print(1)", "print(2)"])
def test_a_blank_end_is_no_difference(pair: Pair, old: str, blank: str) -> None:
    edit_notebook(pair, old, old + blank)
    assert disagreements([pair]) == []
    edit_notebook(pair, "print(2)", "print(3)" + blank)
    assert sync([pair], execute=False) == []
    assert disagreements([pair]) == []
    assert sources(pair) == ["A question 问题", "print(1)", "print(3)"]


@pytest.mark.parametrize("source", ["# %% next\nprint(3)", "print('a\u2028b')"])
def test_a_cell_that_a_script_cannot_tell_is_refused(pair: Pair, source: str, capsys) -> None:
    edit_notebook(pair, "print(2)", source)
    before = both(pair)
    assert main(["--no-run"], pair.root) == 1
    assert f"{NAME}, cell 3 would read otherwise in the script" in capsys.readouterr().err
    assert both(pair) == before


def test_an_unknown_name_is_refused(pair: Pair) -> None:
    with pytest.raises(SystemExit, match="no such notebook: chapters/8_7"):
        main(["chapters/8_7"], pair.root)


@pytest.mark.parametrize("side", [SCRIPT, NOTEBOOK])
def test_a_missing_side_is_made(tmp_path: Path, side: str) -> None:
    pair = new_pair(tmp_path)
    git(tmp_path, "init", "-q")
    lost, kept = (pair.script, pair.notebook) if side == SCRIPT else (pair.notebook, pair.script)
    before = lost.read_bytes()
    git(tmp_path, "add", str(kept))
    git(tmp_path, "commit", "-q", "-m", "one side")
    lost.unlink()
    assert pairs(pair.root) == [pair]
    assert disagreements([pair]) == [f"{NAME}.{side} is missing"]
    assert sync([pair], execute=False) == []
    assert lost.read_bytes() == before


@pytest.mark.parametrize("committed", [False, True])
@pytest.mark.parametrize("side", [SCRIPT, NOTEBOOK])
def test_a_side_that_was_taken_away_stays_away(pair: Pair, side: str, committed: bool, capsys) -> None:
    lost = pair.script if side == SCRIPT else pair.notebook
    kept = NOTEBOOK if side == SCRIPT else SCRIPT
    before = lost.read_bytes()
    git(pair.root, "rm", "-q", f"{NAME}.{side}")
    if committed:
        commit(pair.root)
    assert main(["--no-run"], pair.root) == 1
    said = capsys.readouterr().err
    assert f"{NAME}.{side} was committed and is gone" in said and f"here {NAME}.{kept} too" in said
    assert f'make sync ARGS="--take {kept} {NAME}"' in said
    assert not lost.exists()
    assert main(["--no-run", "--take", kept, NAME], pair.root) == 0
    assert lost.read_bytes() == before


def test_a_side_that_was_renamed_alone_brings_nothing_back(pair: Pair) -> None:
    git(pair.root, "mv", f"{NAME}.py", "chapters/8_8_renamed.py")
    (said,) = sync(pairs(pair.root), execute=False)
    assert f"{NAME}.py was committed and is gone" in said
    assert not pair.script.exists() and not Pair(pair.root, "chapters/8_8_renamed").notebook.exists()
    git(pair.root, "mv", f"{NAME}.ipynb", "chapters/8_8_renamed.ipynb")
    assert sync(pairs(pair.root), execute=False) == []


def test_check_says_what_differs_and_changes_nothing(pair: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check"], pair.root) == 0
    edit_script(pair, "print(1)", "print(10)")
    before = both(pair)
    assert main(["--check"], pair.root) == 1
    assert f"{NAME}.py and {NAME}.ipynb differ" in capsys.readouterr().err
    assert both(pair) == before


@pytest.mark.long
def test_cells_keep_their_ids_and_unchanged_ones_their_outputs(pair: Pair) -> None:
    assert sync([pair]) == []
    before = {cell.source: cell for cell in stored(pair).cells}
    edit_script(pair, "print(2)", "print(3)\n\n# %%\nprint(2)\n\n# %%\nprint(2)")
    assert sync([pair], execute=False) == []
    after = stored(pair).cells
    kept = {cell.source: cell for cell in after[:2]}
    assert {source: cell.id for source, cell in kept.items()} == {source: before[source].id for source in kept}
    assert kept["print(1)"].outputs == before["print(1)"].outputs != []
    new = after[2]
    assert new.source == "print(3)" and new.outputs == [] and new.execution_count is None
    assert len({cell.id for cell in after}) == len(after)


def test_an_edited_cell_keeps_its_id_and_loses_its_output(pair: Pair) -> None:
    assert sync([pair]) == []
    before = stored(pair).cells[1]
    edit_script(pair, "print(1)", "print(10)")
    assert sync([pair], execute=False) == []
    after = stored(pair).cells[1]
    assert before.outputs and after.outputs == []
    assert after.id == before.id


def test_new_notebooks_have_the_same_bytes_each_time(pair: Pair) -> None:
    first = pair.notebook.read_bytes()
    pair.notebook.unlink()
    assert sync([pair], SCRIPT, execute=False) == []
    assert pair.notebook.read_bytes() == first


def test_metadata_that_both_sides_carry_is_content(pair: Pair) -> None:
    edit_script(pair, "# %%\nprint(1)", '# %% tags=["hide-input"]\nprint(1)')
    assert disagreements([pair]) != []
    assert sync([pair], execute=False) == []
    assert stored(pair).cells[1].metadata == {"tags": ["hide-input"]}


@pytest.mark.long
def test_running_twice_gives_the_same_bytes(pair: Pair) -> None:
    edit_script(pair, "print(2)", "import ipywidgets\nipywidgets.IntSlider(3)")
    assert sync([pair]) == []
    first = both(pair)
    assert sync([pair]) == []
    assert both(pair) == first
    cells = code_cells(stored(pair))
    assert [cell.execution_count for cell in cells] == [1, 2]
    assert cells[0].outputs[0].text == "1\n"
    assert list(cells[1].outputs[0].data) == ["text/plain"]


@pytest.mark.long
def test_a_cell_that_raises_is_named_and_old_outputs_stay(pair: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    assert sync([pair]) == []
    old = stored(pair).cells[1].outputs
    edit_script(pair, "print(2)", "1 / 0")
    assert main([], pair.root) == 1
    assert f"{NAME}.ipynb, cell 3: ZeroDivisionError: division by zero" in capsys.readouterr().err
    assert stored(pair).cells[1].outputs == old != []


FAILING = {
    "callback": "b = w.Button()\nb.on_click(lambda _: 1 / 0)\nb.click()",
    "output": "with w.Output():\n    1 / 0",
    "cleared": "o = w.Output()\nwith o:\n    1 / 0\no.clear_output()",
    "interact": "w.interact(lambda x: 1 / 0, x=3);",
    "thread": "t = threading.Thread(target=lambda: 1 / 0)\nt.start()\nt.join()",
}


@pytest.mark.long
@pytest.mark.parametrize("source", FAILING.values(), ids=FAILING)
def test_what_fails_beside_a_cell_fails_the_run(pair: Pair, source: str) -> None:
    edit_script(pair, "print(1)", "import threading\nimport ipywidgets as w\nprint(1)")
    edit_script(pair, "print(2)", source)
    assert sync([pair], execute=False) == []
    before = both(pair)
    (said,) = sync([pair])
    assert said.startswith(f"{NAME}.ipynb, cell 3: ") and "ZeroDivisionError: division by zero" in said
    assert both(pair) == before


def test_a_warning_fails_the_run(pair: Pair) -> None:
    edit_script(pair, "print(1)", "import warnings\nwarnings.warn('old')")
    assert sync([pair], execute=False) == []
    assert "cell 2: written to stderr: " in run(pair.notebook).error


def test_cleaning_twice_changes_nothing(pair: Pair) -> None:
    notebook = stored(pair)
    notebook.metadata.widgets = {"state": {}}
    notebook.cells[1].metadata.update(trusted=True, execution={"shell.execute_reply": "now"}, tags=["a"])
    once = notebook_text(clean(notebook))
    assert "widgets" not in once and "trusted" not in once and "shell" not in once
    assert content(read_notebook(once))[1] == ("code", "print(1)", {"tags": ["a"]})
    assert notebook_text(clean(read_notebook(once))) == once


def test_a_script_goes_to_a_notebook_and_back_unchanged(pair: Pair) -> None:
    text = pair.script.read_text(encoding="utf-8")
    assert script_text(clean(read_script(text))) == text
