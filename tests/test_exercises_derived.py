"""What students get follows from the solutions, to the byte, and tells nothing of the answers."""

import copy
import re
import subprocess
from pathlib import Path
from typing import Any

import nbformat
import pytest

from lib.exercises import Kind, NumberPart
from tests.claims import CLAIMS
from tests.claims.claim import parse
from tests.test_exercises import BOOK, EXERCISES, flat, numbers
from tools import derive, sync
from tools.notebooks import ROOT, Pair, code_cells, notebook_text, pairs, read_notebook, script_text

SOLUTIONS = derive.solutions(ROOT)
STUDENTS = [derive.exercise_pair(pair) for pair in SOLUTIONS]
V4 = nbformat.v4


def named(pair: Pair) -> str:
    return pair.name


def stored(pair: Pair) -> Any:
    return read_notebook(pair.notebook.read_text(encoding="utf-8"))


def without_outputs(notebook: Any) -> Any:
    for cell in code_cells(notebook):
        cell["outputs"], cell["execution_count"] = [], None
    return notebook


def texts(pair: Pair) -> str:
    """All that a student's pair shows, cells, metadata and outputs."""
    return pair.script.read_text(encoding="utf-8") + pair.notebook.read_text(encoding="utf-8")


@pytest.mark.parametrize("pair", SOLUTIONS, ids=named)
def test_the_exercise_is_the_derived_one(pair: Pair) -> None:
    student, again = derive.exercise_pair(pair), derive.derived(derive.read(pair), pair.name)
    assert script_text(again) == student.script.read_text(encoding="utf-8"), "run make exercises"
    assert notebook_text(again) == notebook_text(without_outputs(stored(student))), "run make exercises"


@pytest.mark.long
def test_deriving_again_gives_the_same_bytes(tmp_path: Path) -> None:
    for pair in SOLUTIONS:
        for side in (Pair(tmp_path, pair.name).script, Pair(tmp_path, pair.name).notebook):
            side.parent.mkdir(exist_ok=True)
            side.write_bytes((ROOT / side.relative_to(tmp_path)).read_bytes())
    (tmp_path / "exercises").mkdir()
    assert derive.derive(tmp_path) == []
    for student in STUDENTS:
        for side in (student.script, student.notebook):
            assert (tmp_path / side.relative_to(ROOT)).read_bytes() == side.read_bytes()


def test_each_solution_has_its_exercise_and_no_exercise_is_alone() -> None:
    assert SOLUTIONS
    assert derive.leftovers(ROOT) == []
    assert {pair.name for pair in pairs() if pair.name.startswith("exercises/")} == {pair.name for pair in STUDENTS}


def answer_lines(notebook: Any) -> set[str]:
    """The lines between the marks of solutions and hidden tests, and those of explanations."""
    found: list[str] = []
    for cell in notebook["cells"]:
        for begin, end in (derive.ANSWER, derive.HIDDEN):
            for region in re.findall(rf"{begin}\n(.*?){end}", cell["source"], flags=re.DOTALL):
                found += region.splitlines()
        if derive.is_explanation(cell):
            found += cell["source"].splitlines()
    return {line.strip() for line in found}


@pytest.mark.parametrize("pair", SOLUTIONS, ids=named)
def test_no_line_of_a_solution_is_handed_out(pair: Pair) -> None:
    shown = {line.strip() for line in texts(derive.exercise_pair(pair)).splitlines()}
    student = stored(derive.exercise_pair(pair))
    everything = "\n".join([*shown, *(cell["source"] for cell in student["cells"])])
    lines = {line for line in answer_lines(stored(pair)) if len(line) >= 20}
    assert len(lines) > 20
    assert [line for line in lines if line in everything] == []


@pytest.mark.parametrize("pair", SOLUTIONS, ids=named)
def test_no_hidden_test_no_mark_and_no_explanation_is_handed_out(pair: Pair) -> None:
    text = texts(derive.exercise_pair(pair))
    assert "###" not in text.replace("#### ", "")
    assert "earned" not in text and "marks" not in re.sub(r"earns the marks", "", text)
    assert "why_" not in text and "Solution" not in text
    asked = {derive.marks(cell)["grade_id"] for cell in stored(pair)["cells"] if derive.marks(cell)}
    handed_out = stored(derive.exercise_pair(pair))["cells"]
    assert {name for name in asked if not name.startswith("why_")} == {
        derive.marks(cell)["grade_id"] for cell in handed_out if derive.marks(cell)
    }


@pytest.mark.parametrize("pair", SOLUTIONS, ids=named)
def test_no_output_of_a_solution_is_handed_out(pair: Pair) -> None:
    student = stored(derive.exercise_pair(pair))
    said = "".join(output["text"] for cell in code_cells(student) for output in cell["outputs"])
    assert "right" not in said
    assert said.count("not answered yet.") == len(re.findall(r"(?:function: )?right\.", outputs_of(stored(pair))))


def outputs_of(notebook: Any) -> str:
    return "".join(output["text"] for cell in code_cells(notebook) for output in cell["outputs"])


def written(key: float) -> set[str]:
    """The ways in which a key of four digits or more may be printed."""
    if isinstance(key, int):
        return {f"{key}", f"{key:,}", f"{key:_}"} if key >= 1000 else set()
    forms = {f"{key:.{digits}f}" for digits in range(1, 7)} | {repr(key)}
    return {form for form in forms if sum(map(str.isdigit, form)) >= 4}


@pytest.mark.parametrize("student", STUDENTS, ids=named)
def test_no_key_is_handed_out_that_the_chapter_does_not_print(student: Pair) -> None:
    exercise = derive.exercise_of(Path(student.name).name)
    inputs = BOOK[exercise.number]
    keys = {key for part in exercise.parts if isinstance(part, NumberPart) for key in flat(numbers(part, inputs))}
    printed = {parse(form) for claim in CLAIMS for form in claim.printed}
    given = {value for field in vars(inputs).values() for value in (field if isinstance(field, tuple) else (field,))}
    text = texts(student)
    found = [
        form
        for key in keys - printed - given
        for form in written(key)
        if re.search(rf"(?<![\d.,_]){re.escape(form)}(?![\d])", text)
    ]
    assert sum(bool(written(key)) for key in keys) >= 5
    assert found == []


@pytest.mark.parametrize("student", STUDENTS, ids=named)
def test_an_untouched_notebook_runs_and_says_what_is_not_answered(student: Pair) -> None:
    notebook = stored(student)
    checked = [cell for cell in code_cells(notebook) if derive.marks(cell).get("grade")]
    assert checked
    for cell in checked:
        lines = "".join(output["text"] for output in cell["outputs"]).splitlines()
        assert lines
        assert all(line.endswith(": not answered yet.") for line in lines)


@pytest.mark.parametrize("pair", SOLUTIONS, ids=named)
def test_a_solution_gets_full_marks_with_any_inputs(pair: Pair) -> None:
    exercise = derive.exercise_of(Path(pair.name).name)
    for seed in (None, *range(5)):
        notebook = derive.read(pair)
        if seed is not None:
            notebook = derive.with_inputs(notebook, exercise.variant(seed))
        scope: dict[str, Any] = {}
        for cell in code_cells(notebook):
            exec(cell["source"], scope)  # the hidden tests are asserts
        expected = exercise.variant(seed) if seed is not None else BOOK[exercise.number]
        assert scope["inputs"] == expected
        for part in exercise.parts:
            assert part.judge(expected, scope[part.name]).kind is Kind.RIGHT


@pytest.mark.parametrize("pair", SOLUTIONS, ids=named)
def test_points_are_for_tests_and_each_part_is_tested(pair: Pair) -> None:
    notebook = stored(pair)
    graded = [cell for cell in code_cells(notebook) if derive.marks(cell).get("grade")]
    assert all(derive.marks(cell)["points"] >= 1 and derive.HIDDEN[0] in cell["source"] for cell in graded)
    tested = re.findall(r'earned\("(\w+)"', "\n".join(cell["source"] for cell in graded))
    assert sorted(tested) == sorted(part.name for part in derive.exercise_of(Path(pair.name).name).parts)
    assert all(derive.marks(cell).get("locked") for cell in graded)


def metadata(name: str, **kind: Any) -> dict[str, Any]:
    usual = {"grade": False, "locked": False, "schema_version": 3, "solution": False, "task": False}
    return {"nbgrader": usual | {"grade_id": name} | kind}


def small() -> Any:
    """A solution with one cell of each kind."""
    cells = [
        V4.new_markdown_cell("What is 2 x 3?"),
        V4.new_code_cell(
            "def six(x):\n    ### BEGIN SOLUTION\n    return 2 * x\n    ### END SOLUTION\n\n\n### BEGIN SOLUTION\n"
            "print(six(3))\n### END SOLUTION",
            metadata=metadata("six", solution=True),
            outputs=[V4.new_output("stream", text="6\n")],
            execution_count=1,
        ),
        V4.new_code_cell(
            "six(3)\n### BEGIN HIDDEN TESTS\nassert six(3) == 6\n### END HIDDEN TESTS",
            metadata=metadata("test", grade=True, locked=True, points=1),
        ),
        V4.new_markdown_cell("Twice three.", metadata=metadata("why", grade=True, points=0, solution=True)),
        V4.new_markdown_cell("As it is even.", metadata=metadata("words", grade=True, points=2, solution=True)),
    ]
    for number, cell in enumerate(cells):
        cell.id = f"cell-{number}"
    return V4.new_notebook(cells=cells)


def test_stubs_keep_their_place_and_the_rest_goes() -> None:
    solution = small()
    before = copy.deepcopy(solution)
    student = derive.derived(solution, "small")
    assert [cell["source"] for cell in student["cells"]] == [
        "What is 2 x 3?",
        "def six(x):\n    pass  # not answered yet\n\n\npass  # not answered yet",
        "six(3)",
        "*Not answered yet.*",
    ]
    assert [cell["id"] for cell in student["cells"]] == ["cell-0", "cell-1", "cell-2", "cell-4"]
    assert student["cells"][1]["outputs"] == [] and student["cells"][1]["execution_count"] is None
    assert solution == before


@pytest.mark.parametrize(
    ("cell", "old", "new", "said"),
    [
        (1, "    ### END SOLUTION\n", "", "cell 2: ### BEGIN SOLUTION and ### END SOLUTION do not come in pairs"),
        (2, "### BEGIN HIDDEN TESTS\n", "", "cell 3: ### BEGIN HIDDEN TESTS and ### END HIDDEN TESTS do not come"),
        (
            0,
            "What",
            "### BEGIN SOLUTION\n### END SOLUTION\n",
            "cell 1: ### BEGIN SOLUTION stands in a cell that nbgrader",
        ),
        (1, "### BEGIN SOLUTION\n", "### BEGIN SOLUTION here\n", "cell 2: ### BEGIN SOLUTION and ### END SOLUTION do"),
        (1, "SOLUTION", "ANSWER", "cell 2: a solution without ### BEGIN SOLUTION would be handed out as it is"),
    ],
)
def test_wrong_marks_are_refused(cell: int, old: str, new: str, said: str) -> None:
    solution = small()
    solution.cells[cell].source = solution.cells[cell].source.replace(old, new)
    with pytest.raises(sync.Refused, match=re.escape(said)):
        derive.derived(solution, "small")


def test_two_cells_of_one_name_are_refused() -> None:
    solution = small()
    solution.cells[2].metadata["nbgrader"]["grade_id"] = "six"
    with pytest.raises(sync.Refused, match="two cells have the grade_id six"):
        derive.derived(solution, "small")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one solution and its exercise, committed; nothing is run."""
    monkeypatch.setattr(derive, "run_and_store", lambda paths: [])
    solution = Pair(tmp_path, "solutions/ex_8_1_small")
    solution.script.parent.mkdir()
    (tmp_path / "exercises").mkdir()
    (tmp_path / ".gitignore").write_text("build/\n", encoding="utf-8")
    put(solution, small())
    assert derive.main([], root=tmp_path) == 0
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    commit(tmp_path)
    return tmp_path


def put(pair: Pair, notebook: Any) -> None:
    pair.script.write_text(script_text(notebook), encoding="utf-8")
    pair.notebook.write_text(notebook_text(notebook), encoding="utf-8")


def commit(root: Path) -> None:
    subprocess.run(["git", "add", "-A"], cwd=root, check=True)
    who = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run(["git", *who, "commit", "-qm", "x"], cwd=root, check=True)


def edit(pair: Pair, old: str, new: str) -> None:
    for side in (pair.script, pair.notebook):
        text = side.read_text(encoding="utf-8")
        assert old in text
        side.write_text(text.replace(old, new), encoding="utf-8")


STUDENT = "exercises/ex_8_1_small"


def test_answers_in_an_exercise_are_never_lost_silently(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    student = Pair(project, STUDENT)
    edit(student, "pass  # not answered yet", "return 7")
    assert derive.main([], root=project) == 1
    assert f"{STUDENT} was edited, but it is derived and would be overwritten. Nothing was changed." in (
        capsys.readouterr().err
    )
    assert "return 7" in student.script.read_text(encoding="utf-8")
    assert derive.main(["--force"], root=project) == 0
    assert "return 7" not in texts(student)


def test_a_damaged_exercise_is_made_anew_when_asked_for(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    student = Pair(project, STUDENT)
    student.notebook.write_text("{<<<<<<<", encoding="utf-8")
    assert derive.main([], root=project) == 1
    assert "ARGS=--force" in capsys.readouterr().err
    assert derive.main(["--force"], root=project) == 0
    assert stored(student)["cells"]


def test_an_exercise_follows_its_solution(project: Path) -> None:
    student, solution = Pair(project, STUDENT), Pair(project, "solutions/ex_8_1_small")
    for question in ("What is 2 x 4?", "What is 2 x 5?"):  # the first after a commit, the second without one
        edit(solution, stored(solution)["cells"][0]["source"], question)
        assert derive.main([], root=project) == 0
        assert question in student.script.read_text(encoding="utf-8")
        assert question in student.notebook.read_text(encoding="utf-8")


def test_sync_never_lets_an_exercise_lead(project: Path) -> None:
    student = Pair(project, STUDENT)
    text = student.notebook.read_text(encoding="utf-8")
    student.script.write_text(student.script.read_text(encoding="utf-8") + "\n# %%\n1 + 1\n", encoding="utf-8")
    assert sync.main(["--no-run"], root=project) == 0
    assert student.notebook.read_text(encoding="utf-8") == text
    with pytest.raises(SystemExit, match=f"{STUDENT} is derived: edit solutions/ex_8_1_small, make sync, then make"):
        sync.main([STUDENT], root=project)


def test_solutions_that_differ_are_not_derived(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    solution = Pair(project, "solutions/ex_8_1_small")
    solution.script.write_text(solution.script.read_text(encoding="utf-8").replace("2 x 3", "2 x 4"), encoding="utf-8")
    assert derive.main([], root=project) == 1
    assert "ex_8_1_small.ipynb differ: make sync first" in capsys.readouterr().err


def test_an_exercise_without_a_solution_is_told(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(Pair(project, "exercises/ex_8_2_old"), small())
    assert derive.main([], root=project) == 1
    assert "exercises/ex_8_2_old has no solution" in capsys.readouterr().err


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.number)
def test_a_variant_changes_the_inputs_and_nothing_else(exercise: Any) -> None:
    pair = next(pair for pair in SOLUTIONS if derive.exercise_of(Path(pair.name).name) is exercise)
    book = derive.read(pair)
    assert derive.with_inputs(book, BOOK[exercise.number])["cells"] == book["cells"]
    other = derive.with_inputs(book, exercise.variant("class of 2027"))
    first = code_cells(book)[0]["id"]
    assert [cell["id"] for cell, old in zip(other["cells"], book["cells"], strict=True) if cell != old] == [first]
    lines = zip(code_cells(other)[0]["source"].splitlines(), code_cells(book)[0]["source"].splitlines(), strict=True)
    assert all(new.partition("  #")[2] == old.partition("  #")[2] for new, old in lines)


def test_a_variant_needs_a_folder_and_a_folder_is_never_overwritten(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        derive.main(["--variant", "7"], root=project)
    assert "--variant needs --to" in capsys.readouterr().err
    course = tmp_path / "course"
    assert derive.main(["--to", str(course)], root=project) == 0
    made = sorted(path.relative_to(course).as_posix() for path in course.rglob("*.ipynb"))
    assert made == [f"{kind}/ex_8_1_small/ex_8_1_small.ipynb" for kind in ("handout", "source")]
    assert "Twice three" not in (course / made[1]).read_text(encoding="utf-8")
    assert "BEGIN HIDDEN TESTS" in (course / made[1]).read_text(encoding="utf-8")
    assert derive.main(["--to", str(course)], root=project) == 1
    assert "is there already" in capsys.readouterr().err


def test_a_missing_input_is_named() -> None:
    notebook = derive.read(SOLUTIONS[0])
    cell = code_cells(notebook)[0]
    cell["source"] = cell["source"].replace("page_tokens=", "page_size=")
    with pytest.raises(sync.Refused, match="no line page_tokens=value,"):
        derive.with_inputs(notebook, EXERCISES[0].variant(1))
