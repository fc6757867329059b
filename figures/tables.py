"""Numbers in columns: as a table in JupyterLab, as aligned text elsewhere."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any


@dataclass(frozen=True)
class Table:
    """A head and rows of cells, each shown as `str` shows it. Names in the first column and all of `left` lean left."""

    head: Sequence[str]
    rows: Sequence[Sequence[object]]
    left: tuple[str, ...] = ()

    @classmethod
    def of(cls, records: Sequence[Any], columns: Mapping[str, str] | None = None) -> "Table":
        """A table of a record's rows or of dataclasses: what is written above each column, and its name there.

        Without `columns` all of them are shown under their own names.
        """
        rows = [record if isinstance(record, Mapping) else asdict(record) for record in records]
        columns = columns or {name.replace("_", " "): name for name in rows[0]}
        return cls(tuple(columns), [[row[name] for name in columns.values()] for row in rows])

    def __repr__(self) -> str:
        cells = [[str(cell) for cell in row] for row in (self.head, *self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        return "\n".join("  ".join(map(self._aligned, self.head, row, widths)).rstrip() for row in cells)

    def _repr_html_(self) -> str:
        return (
            f"<table>{self._html_row('th', self.head)}{''.join(self._html_row('td', row) for row in self.rows)}</table>"
        )

    def _leans_left(self, column: str) -> bool:
        names_first = column == self.head[0] and any(isinstance(row[0], str) for row in self.rows)
        return names_first or column in self.left

    def _aligned(self, column: str, cell: str, width: int) -> str:
        return cell.ljust(width) if self._leans_left(column) else cell.rjust(width)

    def _html_row(self, tag: str, cells: Sequence[object]) -> str:
        sides = ("left" if self._leans_left(column) else "right" for column in self.head)
        return "<tr>" + "".join(map(_html_cell, [tag] * len(cells), sides, cells)) + "</tr>"


def _html_cell(tag: str, side: str, cell: object) -> str:
    return f'<{tag} style="text-align: {side}; padding: 2px 8px; min-width: 56px">{escape(str(cell))}</{tag}>'
