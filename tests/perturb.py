"""Change each constant of `lib` a little and see whether the claims notice: `python -m tests.perturb`.

A constant is a number in the top-level statements of a module or in a record. Whole numbers grow by one, others by one
per cent. A constant that moves a claim's value without breaking any survives: there the table of claims is too coarse.
"""

import ast
import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Constant:
    """A number in a file of `lib`, where it stands there (start and end, in characters), and another number near it."""

    file: Path
    start: int
    end: int
    text: str
    near: str

    def __str__(self) -> str:
        line = (ROOT / "lib" / self.file).read_text(encoding="utf-8")[: self.start].count("\n") + 1
        return f"lib/{self.file.as_posix()}:{line}: {self.text}"


def constants() -> list[Constant]:
    """Every constant of `lib`."""
    folder = ROOT / "lib"
    in_modules = [found for file in sorted(folder.glob("*.py")) for found in _in_module(file)]
    in_records = [found for file in sorted((folder / "records").glob("*.csv")) for found in _in_record(file)]
    return in_modules + in_records


def outcomes(lib_parent: Path) -> list[tuple[float, bool]] | None:
    """Value and truth of each claim with the `lib` of this folder; None where a claim cannot even be computed."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(lib_parent), str(ROOT)]),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    run = subprocess.run(
        [sys.executable, "-m", "tests.claims"], cwd=lib_parent, env=environment, capture_output=True, encoding="utf-8"
    )
    return None if run.returncode else [tuple(pair) for pair in json.loads(run.stdout)]


def judge(found: Sequence[Constant]) -> dict[Constant, str]:
    """Whether each constant is noticed by a claim, survives, or is used by none."""
    share = 2
    with ThreadPoolExecutor(share) as pool:
        parts = list(pool.map(_judge_part, [found[start::share] for start in range(share)]))
    return {constant: word for part in parts for constant, word in part.items()}


def _judge_part(found: Sequence[Constant]) -> dict[Constant, str]:
    words = {}
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place) / "lib"
        shutil.copytree(ROOT / "lib", copy, ignore=shutil.ignore_patterns("__pycache__"))
        before = outcomes(copy.parent)
        assert before is not None and all(holds for _, holds in before), (
            "the claims must hold before anything is changed"
        )
        for constant in found:
            file = copy / constant.file
            text = file.read_text(encoding="utf-8")
            file.write_text(text[: constant.start] + constant.near + text[constant.end :], encoding="utf-8")
            after = outcomes(copy.parent)
            noticed = after is None or not all(holds for _, holds in after)
            words[constant] = "noticed" if noticed else "unused" if after == before else "survives"
            file.write_text(text, encoding="utf-8")
    return words


def _in_module(file: Path) -> Iterator[Constant]:
    text = file.read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    for statement in ast.parse(text).body:
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value:
            for node in ast.walk(statement.value):
                if isinstance(node, ast.Constant) and type(node.value) in (int, float):
                    before = lines[node.lineno - 1].encode()[: node.col_offset].decode()  # offsets count bytes
                    start = sum(map(len, lines[: node.lineno - 1])) + len(before)
                    source = ast.get_source_segment(text, node) or ""
                    yield Constant(file.relative_to(ROOT / "lib"), start, start + len(source), source, _near(source))


def _in_record(file: Path) -> Iterator[Constant]:
    text = file.read_text(encoding="utf-8")
    start = text.index("\n") + 1
    for line in text[start:].splitlines(keepends=True):
        for cell in next(csv.reader([line])):
            if _is_number(cell):
                place = text.index(cell, start)
                start = place + len(cell)
                yield Constant(file.relative_to(ROOT / "lib"), place, start, cell, _near(cell))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _near(text: str) -> str:
    try:
        return str(int(text.replace("_", "")) + 1)
    except ValueError:
        return repr(float(text) * 1.01)


def main() -> int:
    """Print how many constants each word was given, and which survive; the exit code is 1 if any does."""
    words = judge(constants())
    print(", ".join(f"{count} {word}" for word, count in sorted(Counter(words.values()).items())))
    survivors = [constant for constant, word in words.items() if word == "survives"]
    for constant in survivors:
        print(f"no claim notices {constant} -> {constant.near}")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
