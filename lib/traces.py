"""Request traces: when requests arrived, and how many tokens went in and came out.

Our own layout is a CSV whose header names columns and units: `arrival_ns,prompt_tokens,output_tokens`, and where they
are known `max_output_tokens` (an empty cell: none was declared), `cached_prefix_tokens` and `name`. The layouts of
public traces are read too; the first line tells which one it is.
"""

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from itertools import accumulate, repeat
from pathlib import Path
from typing import Any

from lib.checks import InputError
from lib.schedule import MOST_NS
from lib.scheduling import Request

MADE = Path(__file__).parent / "traces" / "made.csv"


class Layout(StrEnum):
    """Whose files look like this."""

    OWN = "our own"
    BARE = "our own columns without a header"
    AZURE = "Azure LLM inference trace"
    BURST_GPT = "BurstGPT"
    MOONCAKE = "Mooncake"


@dataclass(frozen=True)
class Trace:
    """The requests of a trace in order of arrival, and what was done to its lines to get them.

    `reordered` requests stood behind one that arrived later; `left_out` had no output.
    """

    requests: tuple[Request, ...] = field(repr=False)
    layout: Layout
    reordered: int
    left_out: int

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know about the requests, one sentence each."""
        told = {
            "Requests that stood behind a later one, put in order of arrival": self.reordered,
            "Requests without an output, left out": self.left_out,
        }
        return tuple(f"{what}: {count:,}." for what, count in told.items() if count)


def read_trace(path: Path | str) -> Trace:
    """The requests in a file of any `Layout`, times in ns.

    Dates become times since the first request that is kept, other times stay as they are; what is finer than 1 ns is
    cut off. The `hash_ids` of Mooncake, which tell equal pieces of prompts, are not read. Raises InputError, which
    names file, line and column, for an unknown layout and for what is no time, no count of tokens or too large.
    """
    table = _table(Path(path))
    values = {column.parameter: table.read(column) for column in table.columns}
    kept = [row for row, output in enumerate(values["output"]) if output]
    if not kept:
        raise InputError(table.file, "a file without requests", "at least one request with an output")
    values = {parameter: [column[row] for row in kept] for parameter, column in values.items()}
    arrivals = values["arrival_ns"]
    reordered = sum(arrival < latest for arrival, latest in zip(arrivals, accumulate(arrivals, max), strict=True))
    if table.layout == Layout.AZURE:
        first = min(arrivals)
        values["arrival_ns"] = [arrival - first for arrival in arrivals]
    requests = table.requests(kept, values)
    requests.sort(key=lambda request: request.arrival_ns)
    return Trace(tuple(requests), table.layout, reordered, left_out=len(table.lines) - len(kept))


def save_trace(requests: Iterable[Request], path: Path | str) -> None:
    """Write requests in our own layout, with the columns that at least one of them needs.

    Raises InputError, before anything is written, if there are none.
    """
    load = tuple(requests)
    if not load or not all(isinstance(request, Request) for request in load):
        raise InputError("requests", load, "at least one Request")
    unsaid = Request(0, 1, 1)
    columns = [
        column
        for column in _COLUMNS[Layout.OWN]
        if column.needed
        or any(getattr(request, column.parameter) != getattr(unsaid, column.parameter) for request in load)
    ]
    rows = [[getattr(request, column.parameter) for column in columns] for request in load]
    lines = [",".join(map(_cell, cells)) + "\n" for cells in [[column.title for column in columns], *rows]]
    Path(path).write_bytes("".join(lines).encode("utf-8"))


def _cell(value: object) -> str:
    text = "" if value is None else str(value)
    if "\n" in text or "\r" in text:
        raise InputError("name", text, "text in one line")
    return '"' + text.replace('"', '""') + '"' if '"' in text or "," in text else text


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError
    return int(text)


def _count_if_any(text: str) -> int | None:
    return _count(text) if text else None


def _json_count(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError
    return value


def _ns_of_seconds(text: str) -> int:
    whole, _, fraction = text.partition(".")
    _count(f"0{fraction}")
    return _count(whole) * 10**9 + int(f"{fraction:0<9}"[:9])


def _ns_of_ms(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)) or not 0 <= value <= MOST_NS:
        raise ValueError
    return int(value * 10**6)


def _ns_of_date(text: str) -> int:
    found = _DATE.fullmatch(text)
    if not found:
        raise ValueError
    moment = datetime.fromisoformat(found[1])
    seconds = ((moment.toordinal() * 24 + moment.hour) * 60 + moment.minute) * 60 + moment.second
    return _ns_of_seconds(f"{seconds}{found[2]}")


@dataclass(frozen=True)
class _Column:
    """What one column says of a `Request`; `read` raises ValueError for what is not `allowed`."""

    parameter: str
    title: str
    read: Callable[[Any], Any] = _count
    allowed: str = "a whole number of at least 0"
    needed: bool = True


_DATE = re.compile(r"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)((?:\.\d+)?)(?:\+00:00)?", re.ASCII)
_COLUMNS = {
    Layout.OWN: (
        _Column("arrival_ns", "arrival_ns"),
        _Column("prompt", "prompt_tokens"),
        _Column("output", "output_tokens"),
        _Column("max_output", "max_output_tokens", _count_if_any, "a whole number or nothing", needed=False),
        _Column("cached_prefix", "cached_prefix_tokens", needed=False),
        _Column("name", "name", str, "text", needed=False),
    ),
    Layout.AZURE: (
        _Column("arrival_ns", "TIMESTAMP", _ns_of_date, "a date and time such as 2023-11-16 18:15:46.6805900"),
        _Column("prompt", "ContextTokens"),
        _Column("output", "GeneratedTokens"),
    ),
    Layout.BURST_GPT: (
        _Column("arrival_ns", "Timestamp", _ns_of_seconds, "seconds such as 5 or 5.25"),
        _Column("prompt", "Request tokens"),
        _Column("output", "Response tokens"),
    ),
    Layout.MOONCAKE: (
        _Column("arrival_ns", "timestamp", _ns_of_ms, "milliseconds from 0 on, as a number"),
        _Column("prompt", "input_length", _json_count),
        _Column("output", "output_length", _json_count),
    ),
}
_COLUMNS[Layout.BARE] = tuple(column for column in _COLUMNS[Layout.OWN] if column.needed)
_HEADED = (Layout.OWN, Layout.AZURE, Layout.BURST_GPT)


@dataclass(frozen=True)
class _Table:
    """The cells of a file by title, from top to bottom, and the number of the line in which each row stands."""

    file: str
    layout: Layout
    lines: Sequence[int]
    cells: Mapping[str, Sequence[Any]]

    @property
    def columns(self) -> list[_Column]:
        return [column for column in _COLUMNS[self.layout] if column.title in self.cells]

    def read(self, column: _Column) -> list[Any]:
        cells = self.cells[column.title]
        try:
            return list(map(column.read, cells))
        except ValueError:
            row = next(row for row, cell in enumerate(cells) if not _can_read(column, cell))
            raise InputError(self.place(row, column), cells[row], column.allowed) from None

    def requests(self, rows: Sequence[int], values: Mapping[str, Sequence[Any]]) -> list[Request]:
        """The requests in these rows, from the values of each parameter that the file tells."""
        requests: list[Request] = []
        told = (values.get(each.name, repeat(each.default, len(rows))) for each in fields(Request))
        try:
            for arguments in zip(*told, strict=True):
                requests.append(Request(*arguments))
        except InputError as error:
            column = next(column for column in self.columns if column.parameter == error.parameter)
            raise InputError(self.place(rows[len(requests)], column), error.value, error.allowed) from None
        return requests

    def place(self, row: int, column: _Column) -> str:
        number = list(self.cells).index(column.title) + 1
        where = f'"{column.title}"' if self.layout == Layout.MOONCAKE else f"column {number} ({column.title})"
        return f"{self.file}, line {self.lines[row]}, {where}"


def _can_read(column: _Column, cell: object) -> bool:
    try:
        column.read(cell)
    except ValueError:
        return False
    return True


def _table(path: Path) -> _Table:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError("path", str(path), f"a file that can be read ({error.strerror})") from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InputError(f"{path.name}, line {line}", data[error.start : error.end], "text in UTF-8") from None
    return _json_table(path.name, text) if text.lstrip().startswith("{") else _csv_table(path.name, text)


def _json_table(file: str, text: str) -> _Table:
    lines = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    rows = [_json_object(f"{file}, line {number}", line) for number, line in lines]
    titles = [column.title for column in _COLUMNS[Layout.MOONCAKE]]
    cells = {title: [row.get(title) for row in rows] for title in titles}
    return _Table(file, Layout.MOONCAKE, [number for number, _ in lines], cells)


def _json_object(where: str, line: str) -> Mapping[str, Any]:
    try:
        found = json.loads(line, parse_float=Decimal)
    except json.JSONDecodeError as error:
        raise InputError(f"{where}, column {error.colno}", line, "one JSON object a line") from None
    except (ValueError, ArithmeticError, RecursionError):  # a number or a nesting beyond what Python reads
        found = None
    if not isinstance(found, dict):
        raise InputError(where, line, "one JSON object a line")
    return found


def _csv_table(file: str, text: str) -> _Table:
    lines = enumerate(io.StringIO(text, newline=None), start=1)
    rows = [(number, _cells_of(f"{file}, line {number}", line.rstrip("\n"))) for number, line in lines if line.strip()]
    if not rows:
        raise InputError(file, "an empty file", "at least one request with an output")
    first, cells = rows[0]
    header = tuple(cell.strip() for cell in cells)
    layout = _layout_of(f"{file}, line {first}", header)
    if layout == Layout.BARE:
        header = _needed(layout)
    else:
        del rows[0]
    for line, cells in rows:
        if len(cells) != len(header):
            where = f"{file}, line {line}, column {min(len(cells), len(header)) + 1}"
            raise InputError(where, f"{len(cells)} cells", f"{len(header)} cells, as in the first line")
    columns = zip(*(cells for _, cells in rows), strict=True) if rows else [()] * len(header)
    return _Table(file, layout, [line for line, _ in rows], dict(zip(header, columns, strict=True)))


def _cells_of(where: str, line: str) -> list[str]:
    if '"' not in line:
        return line.split(",")
    try:
        return next(csv.reader([line], strict=True))
    except csv.Error as error:
        raise InputError(where, line, f"comma-separated values ({error})") from None


def _needed(layout: Layout) -> tuple[str, ...]:
    return tuple(column.title for column in _COLUMNS[layout] if column.needed)


def _layout_of(where: str, header: tuple[str, ...]) -> Layout:
    """The layout with such a first line. Each title stands once, and in a file of our own each is known."""
    if len(header) == 3 and all(cell.isascii() and cell.isdigit() for cell in header):
        return Layout.BARE
    layout = next((layout for layout in _HEADED if set(_needed(layout)) <= set(header)), None)
    if layout is None:
        known = " or ".join(",".join(_needed(layout)) for layout in _HEADED)
        nearest = max(_HEADED, key=lambda layout: len(set(_needed(layout)) & set(header)))
        strange = (place for place, title in enumerate(header, start=1) if title not in _needed(nearest))
        column = next(strange, len(header) + 1)
        raise InputError(f"{where}, column {column}", ",".join(header), f"a header with {known}")
    own = [column.title for column in _COLUMNS[Layout.OWN]]
    for place, title in enumerate(header):
        if title in header[:place]:
            raise InputError(f"{where}, column {place + 1}", title, "a title that no column before it has")
        if layout == Layout.OWN and title not in own:
            raise InputError(f"{where}, column {place + 1}", title, f"one of {', '.join(own)}")
    return layout
