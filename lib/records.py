"""The measured numbers, each table with its conditions and its source.

A table is a small CSV in `lib/records`; `about.toml` beside them says what a row is, which clock or count it
comes from, under which conditions it was taken, and its source. An empty cell is None: not recorded, never zero.
"""

import csv
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "records"


@dataclass(frozen=True)
class Record:
    """One table of numbers: its rows (a dict each; whole numbers are int), and what must be known to read them."""

    name: str
    row_is: str
    kind: str
    clock: str
    conditions: str
    source: str
    rows: tuple[dict[str, Any], ...]

    def where(self, **values: object) -> list[dict[str, Any]]:
        """The rows whose columns have these values; raises KeyError for an unknown column."""
        return [row for row in self.rows if all(row[column] == value for column, value in values.items())]

    def one(self, **values: object) -> dict[str, Any]:
        """The only row with these values; raises LookupError if there is none or more than one."""
        found = self.where(**values)
        if len(found) != 1:
            raise LookupError(f"{len(found)} rows of record {self.name} have {values}")
        return found[0]


@cache
def record(name: str) -> Record:
    """The record of this name; raises LookupError, which lists the names, for an unknown one."""
    about = _about()
    if name not in about:
        raise LookupError(f"no record {name!r}; there are {', '.join(sorted(about))}")
    with (FOLDER / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        rows = tuple({column: _cell(text) for column, text in row.items()} for row in csv.DictReader(file))
    return Record(name=name, rows=rows, **about[name])


def names() -> tuple[str, ...]:
    """The names of all records."""
    return tuple(sorted(_about()))


@cache
def _about() -> dict[str, dict[str, str]]:
    with (FOLDER / "about.toml").open("rb") as file:
        return tomllib.load(file)


def _cell(text: str) -> int | float | str | None:
    if text == "":
        return None
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text
