"""Script and notebook of each pair tell the same story, in the form in which JupyterLab would save them."""

import pytest

from tools.notebooks import clean, notebook_text, pairs, read_notebook, read_script, script_text
from tools.sync import disagreements

PAIRS = pairs()


def test_there_are_pairs() -> None:
    assert "chapters/8_0_design_problem" in [pair.name for pair in PAIRS]


def test_sides_agree() -> None:
    assert disagreements(PAIRS) == []


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_saving_changes_nothing(pair) -> None:
    script = pair.script.read_text(encoding="utf-8")
    notebook = pair.notebook.read_text(encoding="utf-8")
    assert script_text(clean(read_script(script))) == script
    assert notebook_text(clean(read_notebook(notebook))) == notebook
