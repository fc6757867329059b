"""The measured numbers, each table with its conditions and its source.

A table is a small CSV in `lib/records`; `about.toml` beside them says what a row is, which clock or count it
comes from, under which conditions it was taken, and its source. An empty cell is None: not recorded, never zero.
"""

import csv
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from lib.checks import InputError, one_of

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
    rows: tuple[Mapping[str, Any], ...]

    def where(self, **values: object) -> list[Mapping[str, Any]]:
        """The rows whose columns have these values; raises InputError for an unknown column."""
        for column in values:
            one_of("column", column, self.rows[0])
        return [row for row in self.rows if all(row[column] == value for column, value in values.items())]

    def one(self, **values: object) -> Mapping[str, Any]:
        """The only row with these values; raises InputError if there is none or more than one."""
        found = self.where(**values)
        if len(found) != 1:
            raise InputError("values", values, f"values of exactly one row of {self.name}; {len(found)} have these")
        return found[0]


@cache
def record(name: str) -> Record:
    """The record of this name; raises InputError, which lists the names, for an unknown one."""
    about = _about()[one_of("record", name, _about())]
    return Record(name=name, rows=tuple(_rows(FOLDER / f"{name}.csv")), **about)


def _rows(path: Path) -> Iterator[Mapping[str, Any]]:
    with path.open(encoding="utf-8", newline="") as file:
        lines = csv.reader(file)
        header = next(lines)
        for cells in lines:
            if len(cells) != len(header):
                where = f"{path.name}, line {lines.line_num}, column {min(len(cells), len(header)) + 1}"
                raise InputError(where, f"{len(cells)} cells", f"{len(header)} cells, as in the first line")
            yield MappingProxyType(dict(zip(header, map(_cell, cells), strict=True)))


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
