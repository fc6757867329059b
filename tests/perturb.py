"""Change each constant of `lib` a little and see whether the claims notice: `python -m tests.perturb`.

A constant is a number in the top-level statements of a module or in a record. Whole numbers grow by one, others by one
per cent. A constant that moves a claim's value without breaking any survives: there the table of claims is too coarse.
"""

import ast
import compileall
import csv
import importlib
import json
import math
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
from enum import IntEnum
from itertools import accumulate, groupby
from pathlib import Path

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Constant:
    """A number in a file of `lib`, where it stands there (start and end, in characters), and another number near it.

    Those of a record also have the column in which they stand.
    """

    file: str
    start: int
    end: int
    text: str
    near: str
    column: int = 0

    def __str__(self) -> str:
        line = (ROOT / "lib" / self.file).read_text(encoding="utf-8")[: self.start].count("\n") + 1
        return f"lib/{self.file}:{line}: {self.text}"


def constants() -> list[Constant]:
    """Every constant of `lib`."""
    folder = ROOT / "lib"
    in_modules = [found for file in sorted(folder.glob("*.py")) for found in _in_module(file)]
    in_records = [found for file in sorted((folder / "records").glob("*.csv")) for found in _in_record(file)]
    return in_modules + in_records


def sample(found: Sequence[Constant], of_column: int) -> list[Constant]:
    """All constants of modules, and of each column of a record at most so many, evenly over it."""
    drawn: list[Constant] = []
    for (file, _), of_one in groupby(sorted(found, key=_column), key=_column):
        together = list(of_one)
        every = math.ceil(len(together) / of_column) if file.startswith("records/") else 1
        drawn += together[::every]
    return drawn


def _column(constant: Constant) -> tuple[str, int]:
    return constant.file, constant.column


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
    table = _Table(folder)
    for name, of_file in groupby(found, key=lambda constant: constant.file):
        together = list(of_file)
        words = dict(_judge_column_by_column(folder / name, together, table))
        yield from (words[constant] for constant in together)


def _judge_column_by_column(file: Path, found: Sequence[Constant], table: "_Table") -> Iterator[tuple[Constant, str]]:
    """Constants of one column stand for one kind of quantity: if no claim uses it, that is seen in one go."""
    by_column = sorted(found, key=lambda constant: constant.column)
    for _, of_column in groupby(by_column, key=lambda constant: constant.column):
        together = list(of_column)
        yield from zip(together, _judge_together(file, together, table), strict=True)


def _judge_together(file: Path, found: Sequence[Constant], table: "_Table") -> list[str]:
    """Change all of these constants at once: if nothing moves, none is used; else judge each half by itself."""
    text = changed = file.read_text(encoding="utf-8")
    for constant in sorted(found, key=lambda constant: -constant.start):
        changed = changed[: constant.start] + constant.near + changed[constant.end :]
    file.write_text(changed, encoding="utf-8")
    effect = table.effect(found[0].file, until=Effect.MOVED if len(found) > 1 else Effect.BROKEN)
    file.write_text(text, encoding="utf-8")
    if effect is Effect.NONE:
        return ["unused"] * len(found)
    if len(found) == 1:
        return ["noticed" if effect is Effect.BROKEN else "survives"]
    half = len(found) // 2
    return _judge_together(file, found[:half], table) + _judge_together(file, found[half:], table)


class Effect(IntEnum):
    """What a change does to a claim: nothing, its value is another, or it no longer holds."""

    NONE, MOVED, BROKEN = range(3)


class _Table:
    """The claims of each section as they are, and what a changed file does to them.

    Only what depends on the file is imported again: a module that neither is it nor imports, however indirectly, one
    that is or reads it cannot have changed. The claims that noticed the last change are asked first.
    """

    def __init__(self, folder: Path) -> None:
        self.names = _modules(folder) | {f"tests.claims.{file.stem}": file for file in _SECTIONS}
        sources = {name: file.read_text(encoding="utf-8") for name, file in self.names.items()}
        self.imports = {name: _imported(ast.parse(source)) & sources.keys() for name, source in sources.items()}
        self.strings = {name: _strings(ast.parse(source)) for name, source in sources.items()}
        package = importlib.import_module("tests.claims")
        self.before = {
            name: [float(claim.value()) for claim in importlib.import_module(name).CLAIMS]
            for name in self.names
            if name.startswith("tests.claims.")
        }
        assert sum(map(len, self.before.values())) == len(package.CLAIMS), "each claim is in a section"
        assert all(claim.holds() for claim in package.CLAIMS), "the claims must hold before anything is changed"
        self.changed = set[str]()
        self.order = [(name, place) for name, values in self.before.items() for place in range(len(values))]

    def effect(self, file: str, until: Effect) -> Effect:
        """The gravest effect on any claim; once it is as grave as `until`, no further claim is asked."""
        affected = self._affected(file)
        # What came of the last change, to another file perhaps, is still there.
        for name in (affected | self.changed) & sys.modules.keys():
            package, _, module = name.rpartition(".")
            delattr(sys.modules[package], module)  # else `from lib import model` would still find it
            del sys.modules[name]
        self.changed = affected
        importlib.import_module("lib.records").record.cache_clear()
        gravest = Effect.NONE
        for asked in [asked for asked in self.order if asked[0] in affected]:
            gravest = max(gravest, self._of_claim(*asked))
            if gravest >= until:
                self.order.remove(asked)
                self.order.insert(0, asked)
                break
        return gravest

    def _of_claim(self, section: str, place: int) -> Effect:
        try:
            claim = importlib.import_module(section).CLAIMS[place]
            value = float(claim.value())
        except Exception:  # whatever a wrong constant leads to
            return Effect.BROKEN
        if not claim.agrees(value):
            return Effect.BROKEN
        return Effect.NONE if value == self.before[section][place] else Effect.MOVED

    def _affected(self, file: str) -> set[str]:
        """The modules that are this file or read it, and all that import them."""
        stem = Path(file).stem
        is_record = file.startswith("records/")
        found = {name for name in self.names if stem in self.strings[name]} if is_record else {f"lib.{stem}"}
        while more := {name for name, imported in self.imports.items() if imported & found} - found:
            found |= more
        return found


_SECTIONS = sorted((ROOT / "tests" / "claims").glob("section_*.py"))


def _modules(folder: Path) -> dict[str, Path]:
    return {f"lib.{file.stem}": file for file in folder.glob("*.py") if file.stem != "__init__"}


def _imported(tree: ast.Module) -> set[str]:
    """The modules that a source names in its imports: `from lib import model` names `lib.model`."""
    found = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def _strings(tree: ast.Module) -> set[str]:
    """The texts in a source: a record is read by its name."""
    return {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def _in_module(file: Path) -> Iterator[Constant]:
    text = file.read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    starts = list(accumulate(map(len, lines), initial=0))
    for statement in ast.parse(text).body:
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value:
            for node in ast.walk(statement.value):
                if isinstance(node, ast.Constant) and type(node.value) in (int, float):
                    line = lines[node.lineno - 1].encode()  # offsets count bytes
                    start = starts[node.lineno - 1] + len(line[: node.col_offset].decode())
                    source = line[node.col_offset : node.end_col_offset].decode()
                    yield Constant(_name(file), start, start + len(source), source, _near(source))


def _in_record(file: Path) -> Iterator[Constant]:
    text = file.read_text(encoding="utf-8")
    start = text.index("\n") + 1
    for line in text[start:].splitlines(keepends=True):
        for column, cell in enumerate(next(csv.reader([line]))):
            if _is_number(cell):
                place = text.index(cell, start)
                start = place + len(cell)
                yield Constant(_name(file), place, start, cell, _near(cell), column)


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
        return repr(float(text) * 1.01 or 0.01)


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
