"""Derives from the solutions what students get: `python -m tools.derive`.

Answers become stubs, hidden tests and explanations go, outputs are those of the notebook with nothing answered.
`--to FOLDER` makes the files of one class instead, for nbgrader, with numbers of its own if `--variant SEED` is given.
"""

import argparse
import copy
import importlib
import re
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

from lib.exercises import Exercise
from tools.notebooks import ROOT, Pair, clean, code_cells, notebook_text, pairs, script_text
from tools.sync import (
    DERIVED,
    NOTEBOOK,
    SCRIPT,
    Agreements,
    Refused,
    committed,
    fingerprint,
    run_and_store,
    sides,
    write,
)

SOLUTIONS, EXERCISES = "solutions", DERIVED
ANSWER = ("### BEGIN SOLUTION", "### END SOLUTION")
HIDDEN = ("### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS")
STUB = "pass  # not answered yet"
NO_WORDS = "*Not answered yet.*"
EDITED = (
    "{name} was edited, but it is derived and would be overwritten. Nothing was changed. To change the exercise, edit "
    "{solution}. To keep answers, save them under another name. Then: make exercises ARGS=--force"
)


def marks(cell: Any) -> dict[str, Any]:
    """What nbgrader's metadata say of a cell."""
    found: dict[str, Any] = cell["metadata"].get("nbgrader", {})
    return found


def is_explanation(cell: Any) -> bool:
    """Whether a cell only explains the solution: it answers in words, for no points, what nobody is asked."""
    return cell["cell_type"] == "markdown" and bool(marks(cell).get("solution")) and marks(cell)["points"] == 0


def without_explanations(solution: Any) -> Any:
    """The notebook with what is asked and answered, and nothing beside it."""
    notebook = copy.deepcopy(solution)
    notebook["cells"] = [cell for cell in notebook["cells"] if not is_explanation(cell)]
    return notebook


def derived(solution: Any, name: str) -> Any:
    """The notebook that students get, from the solution's; raises Refused where its marks make no sense."""
    refuse_wrong_marks(solution, name)
    notebook = without_explanations(solution)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["source"] = cut(cut(cell["source"], ANSWER, STUB), HIDDEN, "")
            cell["outputs"], cell["execution_count"] = [], None
        elif marks(cell).get("solution"):
            cell["source"] = NO_WORDS
    return clean(notebook)


def cut(source: str, between: tuple[str, str], stub: str) -> str:
    """The text of a cell with each region between two marks replaced by a stub, indented as the region was."""
    begin, end = map(re.escape, between)
    put = rf"\1{stub}\n" if stub else ""
    return re.sub(
        rf"^([ \t]*){begin}[ \t]*\n.*?^[ \t]*{end}[ \t]*(?:\n|\Z)", put, source, flags=re.DOTALL | re.MULTILINE
    )


def refuse_wrong_marks(solution: Any, name: str) -> None:
    """Refuse a solution with open regions, with marks in a cell of another kind, or with two cells of one grade_id."""
    names = [marks(cell)["grade_id"] for cell in solution["cells"] if marks(cell)]
    twice = sorted({each for each in names if names.count(each) > 1})
    if twice:
        raise Refused(f"{name}: two cells have the grade_id {twice[0]}")
    for number, cell in enumerate(solution["cells"], start=1):
        for between, wanted in ((ANSWER, "solution"), (HIDDEN, "grade")):
            found = [line.strip() for line in cell["source"].splitlines() if any(mark in line for mark in between)]
            if found != list(between) * (len(found) // 2):
                raise Refused(f"{name}, cell {number}: {between[0]} and {between[1]} do not come in pairs")
            if found and not marks(cell).get(wanted):
                raise Refused(
                    f"{name}, cell {number}: {between[0]} stands in a cell that nbgrader does not call {wanted}"
                )
        if cell["cell_type"] == "code" and marks(cell).get("solution") and ANSWER[0] not in cell["source"]:
            raise Refused(f"{name}, cell {number}: a solution without {ANSWER[0]} would be handed out as it is")


def solutions(root: Path) -> list[Pair]:
    """The pairs written by hand."""
    return [pair for pair in pairs(root) if pair.name.startswith(SOLUTIONS + "/")]


def exercise_pair(solution: Pair) -> Pair:
    """The pair that students get for a solution."""
    return Pair(solution.root, solution.name.replace(SOLUTIONS, EXERCISES, 1))


def leftovers(root: Path) -> list[str]:
    """A line for each exercise that has no solution."""
    wanted = {exercise_pair(pair).name for pair in solutions(root)}
    found = [pair.name for pair in pairs(root) if pair.name.startswith(EXERCISES + "/")]
    return [f"{name} has no solution: it is derived from none" for name in found if name not in wanted]


def is_untouched(pair: Pair, agreements: Agreements, now: str) -> bool:
    """Whether each side of an exercise is as it was derived, now or before."""
    known = {agreements.last(pair), now}
    try:
        there = {side: fingerprint(notebook) for side, notebook in sides(pair).items()}
    except Refused:  # damaged, so somebody touched it
        return False
    return all(word in known or word == committed(pair, side) for side, word in there.items())


def derive(root: Path, force: bool = False) -> list[str]:
    """Derive all exercises and run them, unless one was edited; what went wrong, in lines to print."""
    agreements = Agreements(root)
    found = [(exercise_pair(pair), derived(read(pair), pair.name)) for pair in solutions(root)]
    edited = [
        pair.name for pair, notebook in found if not force and not is_untouched(pair, agreements, fingerprint(notebook))
    ]
    if edited:
        return [EDITED.format(name=name, solution=name.replace(EXERCISES, SOLUTIONS, 1)) for name in edited]
    for pair, notebook in found:
        write(pair.script, script_text(notebook))
        write(pair.notebook, notebook_text(notebook))
        agreements.note(pair, fingerprint(notebook))
    return leftovers(root) + run_and_store([pair.notebook for pair, _ in found])


def read(solution: Pair) -> Any:
    """A solution's notebook; raises Refused while its two sides differ."""
    there = sides(solution)
    if len(there) < 2 or fingerprint(there[SCRIPT]) != fingerprint(there[NOTEBOOK]):
        raise Refused(f"{solution.name}.py and {solution.name}.ipynb differ: make sync first")
    return there[NOTEBOOK]


def exercise_of(name: str) -> Exercise:
    """The parts and keys that belong to a notebook named ex_8_N_…"""
    section, number = re.match(r"ex_(\d+)_(\d+)_", name).groups()  # type: ignore[union-attr]
    found: Exercise = importlib.import_module(f"lib.exercise_{section}_{number}").EXERCISE
    return found


def with_inputs(notebook: Any, inputs: Any) -> Any:
    """A notebook whose first code cell makes other inputs; there they stand one a line, as `name=value,  # words`."""
    changed = copy.deepcopy(notebook)
    cell = code_cells(changed)[0]
    for field in fields(inputs):
        line = re.compile(rf"^(    {field.name}=)[^#\n]*,", re.MULTILINE)
        if not line.search(cell["source"]):
            raise Refused(f"the first code cell has no line {field.name}=value,")
        cell["source"] = line.sub(rf"\g<1>{written(getattr(inputs, field.name))},", cell["source"])
    return changed


def written(value: Any) -> str:
    """A number, a word or nothing, or several, as a reader likes to see them in code."""
    if isinstance(value, tuple):
        return f"({', '.join(map(written, value))})"
    if isinstance(value, str):
        return f'"{value}"'
    return "None" if value is None else f"{value:_}"


def make_course(root: Path, folder: Path, variant: str) -> list[str]:
    """Make a class's files: in `source` what nbgrader grades by, in `handout` what students get."""
    if folder.exists():
        return [f"{folder} is there already, perhaps with what a class handed in: name another folder, or delete it"]
    made = []
    for pair in solutions(root):
        notebook, name = read(pair), Path(pair.name).name
        if variant:
            notebook = with_inputs(notebook, exercise_of(name).variant(variant))
        for kind, content in (("source", without_explanations(notebook)), ("handout", derived(notebook, name))):
            path = folder / kind / name / f"{name}.ipynb"
            path.parent.mkdir(parents=True)
            write(path, notebook_text(content))
            made.append(path)
    return run_and_store(made)


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Derive the exercises, or the files of a class; zero when all went well."""
    parser = argparse.ArgumentParser(description="Derive what students get from the solutions.")
    parser.add_argument("--force", action="store_true", help="overwrite exercises that were edited")
    parser.add_argument("--to", type=Path, help="make a class's files in this folder instead")
    parser.add_argument("--variant", default="", help="with numbers of its own, the same for the same word or number")
    options = parser.parse_args(arguments)
    if options.variant and not options.to:
        parser.error("--variant needs --to: exercises/ keeps the book's numbers")
    try:
        problems = (
            make_course(root, options.to.resolve(), options.variant) if options.to else derive(root, options.force)
        )
    except Refused as error:
        problems = [str(error)]
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
