"""Change each constant of `lib` a little and see whether the claims notice: `python -m tests.perturb`.

A constant is a number in the top-level statements of a module or in a record. Whole numbers grow by one, others by one
per cent. A constant that moves a claim's value without breaking any survives: there the table of claims is too coarse.
"""

import ast
import compileall
import csv
import importlib
import json
import os
import py_compile
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Constant:
    """A number in a file of `lib`, where it stands there (start and end, in characters), and another number near it."""

    file: str
    start: int
    end: int
    text: str
    near: str

    def __str__(self) -> str:
        line = (ROOT / "lib" / self.file).read_text(encoding="utf-8")[: self.start].count("\n") + 1
        return f"lib/{self.file}:{line}: {self.text}"


def constants() -> list[Constant]:
    """Every constant of `lib`."""
    folder = ROOT / "lib"
    in_modules = [found for file in sorted(folder.glob("*.py")) for found in _in_module(file)]
    in_records = [found for file in sorted((folder / "records").glob("*.csv")) for found in _in_record(file)]
    return in_modules + in_records


def judge(found: Sequence[Constant]) -> dict[Constant, str]:
    """Whether each constant is noticed by a claim, survives, or is used by none."""
    share = 2
    with ThreadPoolExecutor(share) as pool:
        parts = list(pool.map(_judge_apart, [found[start::share] for start in range(share)]))
    return {constant: word for part in parts for constant, word in part.items()}


def _judge_apart(found: Sequence[Constant]) -> dict[Constant, str]:
    """Judge in a process of its own, which imports a copy of `lib` again after each change."""
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place) / "lib"
        shutil.copytree(ROOT / "lib", copy, ignore=shutil.ignore_patterns("__pycache__"))
        # a change may leave size and second of a file as they were: only its content tells that it is another
        compileall.compile_dir(copy, quiet=1, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([place, str(ROOT)]),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        run = subprocess.run(
            [sys.executable, "-m", "tests.perturb", place],
            cwd=place,
            env=environment,
            input=json.dumps([asdict(constant) for constant in found]),
            stdout=subprocess.PIPE,
            encoding="utf-8",
            check=True,
        )
    return dict(zip(found, json.loads(run.stdout), strict=True))


def _judge_here(folder: Path, found: Sequence[Constant]) -> Iterator[str]:
    before = _outcomes()
    assert before is not None and all(holds for _, holds in before), "the claims must hold before anything is changed"
    for name, of_file in groupby(found, key=lambda constant: constant.file):
        yield from _judge_together(folder / name, list(of_file), before)


def _judge_together(file: Path, found: Sequence[Constant], before: Sequence[tuple[float, bool]]) -> list[str]:
    """Change all of these constants at once: if nothing moves, none is used; else judge each half by itself."""
    text = changed = file.read_text(encoding="utf-8")
    for constant in sorted(found, key=lambda constant: -constant.start):
        changed = changed[: constant.start] + constant.near + changed[constant.end :]
    file.write_text(changed, encoding="utf-8")
    after = _outcomes()
    file.write_text(text, encoding="utf-8")
    if after == before:
        return ["unused"] * len(found)
    if len(found) == 1:
        return ["noticed" if after is None or not all(holds for _, holds in after) else "survives"]
    half = len(found) // 2
    return _judge_together(file, found[:half], before) + _judge_together(file, found[half:], before)


def _outcomes() -> list[tuple[float, bool]] | None:
    """Value and truth of each claim, up to the first that fails; None where one cannot even be computed."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "lib" or name.startswith("tests.claims")]:
        del sys.modules[name]
    found = []
    try:
        for claim in importlib.import_module("tests.claims").CLAIMS:
            value = float(claim.value())
            found.append((value, claim.agrees(value)))
            if not found[-1][1]:
                break
    except Exception:  # whatever a wrong constant leads to
        return None
    return found


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
                    yield Constant(_name(file), start, start + len(source), source, _near(source))


def _in_record(file: Path) -> Iterator[Constant]:
    text = file.read_text(encoding="utf-8")
    start = text.index("\n") + 1
    for line in text[start:].splitlines(keepends=True):
        for cell in next(csv.reader([line])):
            if _is_number(cell):
                place = text.index(cell, start)
                start = place + len(cell)
                yield Constant(_name(file), place, start, cell, _near(cell))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _near(text: str) -> str:
    try:
        return str(int(text, 0) + 1)
    except ValueError:
        return repr(float(text) * 1.01)


def _name(file: Path) -> str:
    return file.relative_to(ROOT / "lib").as_posix()


def report(found: Sequence[Constant]) -> int:
    """Print how many constants each word was given, and which survive; 1 if any does, else 0."""
    words = judge(found)
    print(", ".join(f"{count} {word}" for word, count in sorted(Counter(words.values()).items())))
    survivors = [constant for constant, word in words.items() if word == "survives"]
    for constant in survivors:
        print(f"no claim notices {constant} -> {constant.near}")
    return 1 if survivors else 0


if __name__ == "__main__":
    if len(sys.argv) > 1:
        found = [Constant(**fields) for fields in json.load(sys.stdin)]
        print(json.dumps(list(_judge_here(Path(sys.argv[1]) / "lib", found))))
    else:
        sys.exit(report(constants()))
