"""Numbers in columns: as a table in JupyterLab, as aligned text elsewhere."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

from lib.checks import InputError

# Characters: a number with its unit or a clock, but no phrase.
NEVER_WRAPPED = 20


@dataclass(frozen=True)
class Table:
    """A head and rows of cells, each shown as `str` shows it. Names in the first column and all of `left` lean left.

    In JupyterLab no column is narrower than `least_px`; `names_percent` is the share of the first, whatever is beside.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[object]]
    left: tuple[str, ...] = ()
    least_px: int = 56
    names_percent: int | None = None

    @classmethod
    def of(
        cls, records: Sequence[Any], columns: Mapping[str, str] | None = None, digits: Mapping[str, int] | None = None
    ) -> "Table":
        """A table of a record's rows or of dataclasses: what is written above each column, and its name there.

        Without `columns` all of them are shown under their own names. `digits` says how many decimals the numbers below
        a head have. Raises InputError for no records.
        """
        if not records:
            raise InputError("records", records, "at least one")
        rows = [record if isinstance(record, Mapping) else asdict(record) for record in records]
        columns = columns or {_spoken(name): name for name in rows[0]}
        places = {head: f",.{(digits or {})[head]}f" if head in (digits or {}) else "" for head in columns}
        return cls(
            tuple(columns), [[format(row[name], places[head]) for head, name in columns.items()] for row in rows]
        )

    def __repr__(self) -> str:
        cells = [[str(cell) for cell in row] for row in (self.head, *self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        return "\n".join("  ".join(map(self._aligned, self.head, row, widths)).rstrip() for row in cells)

    def _repr_html_(self) -> str:
        rows = self._html_row("th", self.head) + "".join(self._html_row("td", row) for row in self.rows)
        whole = ' style="width: 100%"' if self.names_percent else ""
        return f"<table{whole}>{rows}</table>"

    def _leans_left(self, column: str) -> bool:
        names_first = column == self.head[0] and not all(str(row[0])[:1].isdigit() for row in self.rows)
        return names_first or column in self.left

    def _aligned(self, column: str, cell: str, width: int) -> str:
        return cell.ljust(width) if self._leans_left(column) else cell.rjust(width)

    def _html_row(self, tag: str, cells: Sequence[object]) -> str:
        share = f"; width: {self.names_percent}%" if self.names_percent else ""
        columns = zip(self.head, map(str, cells), [share, *("" for _ in self.head[1:])], strict=True)
        return "<tr>" + "".join(self._html_cell(tag, *column) for column in columns) + "</tr>"

    def _html_cell(self, tag: str, column: str, cell: str, share: str) -> str:
        side = "left" if self._leans_left(column) else "right"
        one_line = column != self.head[0] and len(cell) <= NEVER_WRAPPED and ", " not in cell
        style = f"text-align: {side}; padding: 2px 8px; min-width: {self.least_px}px{share}"
        return f'<{tag} style="{style}{"; white-space: nowrap" if one_line else ""}">{escape(cell)}</{tag}>'


def _spoken(name: str) -> str:
    """A field's name as it is said: `deadline_s` is "deadline, s"."""
    words = name.removesuffix("_s").replace("_", " ")
    return f"{words}, s" if name.endswith("_s") else words
