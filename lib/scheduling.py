"""Who is computed when: requests, the rows they take in each step, and when a waiting one may enter."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from lib.checks import InputError, one_of, whole


class Entry(StrEnum):
    """When a waiting request may take a free row."""

    AT_BORDER = "at the next border of a step"
    WHEN_ALL_ENDED = "when all running ones have ended"


@dataclass(frozen=True)
class Step:
    """One step: the request in each row (None for an idle row) and the requests whose KV is held while it runs."""

    rows: tuple[str | None, ...]
    holding: tuple[str, ...]

    @property
    def idle_rows(self) -> int:
        return self.rows.count(None)


def assign_rows(outputs: Mapping[str, int], rows: int, entry: Entry) -> tuple[Step, ...]:
    """The steps in which requests, all waiting from the start, yield their outputs, one a step for each that has a row.

    A row belongs to a step only; a request keeps its row while it runs, and its KV until its last output. Raises
    InputError for no requests, outputs or rows. Source: section 8.1.1, figure 8-1.
    """
    if not outputs:
        raise InputError("outputs", outputs, "at least one request")
    rows = whole("rows", rows, at_least=1)
    entry = one_of("entry", entry, Entry)
    left = {name: whole(name, count, at_least=1) for name, count in outputs.items()}
    waiting, steps = list(left), []
    in_row: list[str | None] = [None] * rows
    while waiting or any(in_row):
        if entry is Entry.AT_BORDER or not any(in_row):
            in_row = [name or (waiting.pop(0) if waiting else None) for name in in_row]
        steps.append(Step(tuple(in_row), tuple(sorted(name for name in in_row if name))))
        for name in filter(None, in_row):
            left[name] -= 1
        in_row = [name if name and left[name] else None for name in in_row]
    return tuple(steps)
