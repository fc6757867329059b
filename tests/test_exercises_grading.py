"""A class's files are handed out, answered, collected and graded by nbgrader: right, partly right, empty."""

import csv
import os
from pathlib import Path
from typing import Any

import pytest

from tools import derive, grade
from tools.environment import Problem
from tools.notebooks import ROOT, Pair, notebook_text, read_notebook

NAME = "ex_8_1_reads_and_capacity"
PREFILL_ONLY = """
def requests_that_fit(pool_bytes, kv_bytes_per_token, context, page_tokens, output_tokens):
    return pool_bytes // (context * kv_bytes_per_token)
c = [42, 10]
"""
A_CONSTANT = "b = [51, 13]\ndef smallest_batch(**inputs):\n    return 51"


@pytest.fixture(scope="module")
def grading_environment() -> None:
    """nbgrader's environment; where it cannot be installed the test is skipped, except in CI, where it fails."""
    try:
        grade.build()
    except Problem as problem:
        if os.environ.get("CI") == "true":
            pytest.fail(f"in CI nbgrader must be installed: {problem}")
        pytest.skip(f"nbgrader cannot be installed: {problem}")


def answers(course: Path) -> dict[str, str]:
    """The solution's text of each cell that is answered."""
    source = read_notebook((course / "source" / NAME / f"{NAME}.ipynb").read_text(encoding="utf-8"))
    marked = [cell for cell in source["cells"] if derive.marks(cell).get("solution")]
    return {derive.marks(cell)["grade_id"]: cell["source"] for cell in marked}


def hand_in(course: Path, student: str, answered: dict[str, str], tests: str = "") -> None:
    """Put a student's notebook where the instructor collects it: the handed-out one with these answers."""
    notebook: Any = read_notebook((course / "handout" / NAME / f"{NAME}.ipynb").read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        name = derive.marks(cell).get("grade_id", "")
        if derive.marks(cell).get("grade") and tests:
            cell["source"] = tests
        cell["source"] = answered.get(name, cell["source"])
    path = course / "submitted" / student / NAME / f"{NAME}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(notebook_text(notebook), encoding="utf-8")


@pytest.mark.long
@pytest.mark.usefixtures("grading_environment")
def test_a_class_is_graded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    course = tmp_path / "course"
    monkeypatch.setattr(derive, "solutions", lambda root: [Pair(root, f"solutions/{NAME}")])
    assert derive.make_course(ROOT, course, "7") == []
    right = answers(course)
    assert set(right) == {"a", "b", "c", "d", "e"}
    hand_in(course, "right", right)
    hand_in(course, "partly", right | {"b": A_CONSTANT, "c": PREFILL_ONLY, "d": "d1 = d2 = d3 = d4 = None"})
    hand_in(course, "empty", {})
    hand_in(course, "cheating", {}, tests="pass")
    assert grade.main([str(course)]) == 0
    with (course / "grades.csv").open(encoding="utf-8", newline="") as file:
        points = {row["student_id"]: (float(row["score"]), float(row["max_score"])) for row in csv.DictReader(file)}
    assert points == {"right": (10, 10), "partly": (4, 10), "empty": (0, 10), "cheating": (0, 10)}
    assert f"{NAME}  partly: 4 of 10" in capsys.readouterr().out


def test_a_folder_without_work_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert grade.main([str(tmp_path)]) == 1
    assert "nothing was handed in: " in capsys.readouterr().err


def test_the_lock_names_packages_with_their_hashes_and_no_host() -> None:
    lock = grade.LOCK.read_text(encoding="utf-8")
    assert "\nnbgrader==" in lock and "\nnumpy==" in lock
    assert "://" not in lock
    entries = [line for line in lock.splitlines() if "==" in line]
    assert all(line.endswith("\\") for line in entries)
    assert "nbgrader" not in (ROOT / "requirements.lock").read_text(encoding="utf-8")
