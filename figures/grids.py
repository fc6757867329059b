"""Figures made of cells: which request is computed in which row, step by step."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from figures import style
from figures.exploration import Choice, Exploration, Question, Readout, Slider
from figures.page import box, new_page, write
from figures.words import words
from lib.checks import one_of, whole
from lib.fast_forward import simulate
from lib.scheduling import Entry, Policy, Request

PAGE_PT = 226
REQUESTS = ("A", "B", "C")
# More rows or outputs than these could not be seen.
MOST = 32
Step = tuple[str | None, ...]  # the request in each row, None for an idle one


class View(StrEnum):
    """What the lines of the grid stand for."""

    BY_ROW = "by row"
    BY_REQUEST = "by request"


def rows_and_state(
    *,
    rows: Annotated[int, Slider("rows", 1, 4, 1)] = 2,
    a: Annotated[int, Slider("outputs of A", 1, 8, 1)] = 2,
    b: Annotated[int, Slider("outputs of B", 1, 8, 1)] = 1,
    c: Annotated[int, Slider("outputs of C", 1, 8, 1)] = 1,
    entry: Annotated[Entry, Choice("C may enter", tuple(Entry))] = Entry.AT_BORDER,
    view: Annotated[View, Choice("lines of the grid", tuple(View))] = View.BY_ROW,
    step: Annotated[int, Slider("look at step", 1, 8, 1)] = 1,
    language: str = "en",
) -> Figure:
    """Which request each execution row computes in each step, and below it whose KV is held meanwhile.

    Raises InputError for values that make no sense. Source: figure 8-1.
    """
    steps = steps_of(rows, a, b, c, entry)
    looked_at = min(whole("step", step, at_least=1, at_most=MOST), len(steps))
    text = words(language, "rows-and-state")
    by_row = one_of("view", view, View) is View.BY_ROW
    with style.in_book_style():
        page = new_page(PAGE_PT)
        write(page, 14, 206, text["computed_by_row" if by_row else "computed_by_request"])
        names = [text["row"].format(row=row + 1) for row in range(rows)] if by_row else list(REQUESTS)
        columns = [_by_row(one) if by_row else _by_request(one) for one in steps]
        _draw_grid(box(page, 62, 112, 344, 88), names, columns, looked_at)
        write(page, 14, 88, text["held"])
        held = box(page, 62, 20, 344, 66)
        _draw_grid(held, list(REQUESTS), [_held(one) for one in steps], looked_at)
        _number_steps(page, held, len(steps), text["step"])
    return page


def steps_of(rows: int, a: int, b: int, c: int, entry: Entry) -> list[Step]:
    """Who has each row in each step: the figure's three requests, of one token each, all waiting from the start."""
    counts = [whole(name, count, at_least=1, at_most=MOST) for name, count in (("a", a), ("b", b), ("c", c))]
    policy = Policy(whole("rows", rows, at_least=1, at_most=MOST), entry)
    schedule = simulate([Request(arrival_ns=0, prompt=1, output=count) for count in counts], policy)
    return [tuple(None if place is None else REQUESTS[place] for place in step) for step in schedule.rows_by_step()]


def rows_readouts(**settings: Any) -> tuple[Readout, ...]:
    """What the rows and the requests come to, up to the step looked at, at the settings of `rows_and_state`."""
    steps = steps_of(*(settings[name] for name in ("rows", "a", "b", "c", "entry")))
    one_of("view", settings["view"], View)
    seen = steps[: whole("step", settings["step"], at_least=1, at_most=MOST)]
    last = seen[-1]
    rows = ", ".join(f"{row + 1}: {name or 'idle'}" for row, name in enumerate(last))
    return (
        Readout("idle rows so far", sum(one.count(None) for one in seen), ""),
        Readout("rows computed so far", sum(len(one) - one.count(None) for one in seen), ""),
        Readout("outputs and steps in all", f"{settings['a'] + settings['b'] + settings['c']} in {len(steps)}"),
        Readout("row: request, in this step", rows),
        Readout("KV held in this step", ", ".join(sorted(filter(None, last)))),
    )


def _ask_whose_kv() -> Question:
    first, second = steps_of(rows=2, a=2, b=1, c=1, entry=Entry.AT_BORDER)
    return Question(
        text=f"Two rows, two steps. In step 1, row 2 computes {first[1]}, which ends there. In step 2 the same "
        "row computes the next request. Whose KV does row 2 read in step 2?",
        choices=("A", "B", "C", "none"),
        answer=str(second[1]),
        reveals={"step": 2},
        because="The row passes on, the state does not: KV belongs to a request and is found by its name, whatever row "
        "the request is computed in. What the row computed a step before has left nothing in it.",
    )


def _why_rows_still(moved: str, settings: Mapping[str, Any]) -> str:
    steps = len(steps_of(*(settings[name] for name in ("rows", "a", "b", "c", "entry"))))
    if moved == "step":
        return f"There is no step {settings['step']}: the run has {steps} {'step' if steps == 1 else 'steps'}."
    if moved == "entry":
        return "C finds a free row at once (or only when all have ended), so both rules let it in at the same border."
    return ""


ROWS_EXPLORATION = Exploration(
    question=_ask_whose_kv,
    in_view=("rows", "a", "b", "step"),
    settings={
        "C must wait for all": {"entry": Entry.WHEN_ALL_ENDED, "step": 2},
        "one row only": {"rows": 1, "step": 4},
        "a long A": {"a": 8, "b": 3, "c": 4, "step": 5},
    },
    readouts=rows_readouts,
    why_still=_why_rows_still,
)

Cell = tuple[str, str, str] | None  # text, fill, hatch


def _by_row(step: Step) -> list[Cell]:
    return [(name, style.REQUEST[name], "") if name else ("", style.PAPER, "////") for name in step]


def _by_request(step: Step) -> list[Cell]:
    places = {name: row for row, name in enumerate(step) if name}
    return [(str(places[name] + 1), style.REQUEST[name], "") if name in places else None for name in REQUESTS]


def _held(step: Step) -> list[Cell]:
    return [("KV", style.REQUEST[name], "") if name in step else None for name in REQUESTS]


def _draw_grid(axes: Axes, names: Sequence[str], columns: Sequence[Sequence[Cell]], looked_at: int) -> None:
    """One line a name, one column a step; the step looked at is framed."""
    axes.set(xlim=(0, max(len(columns), 2)), ylim=(max(len(names), 2), 0), xticks=[], yticks=[])
    axes.set_frame_on(False)
    for line, name in enumerate(names):
        axes.text(-0.01, line + 0.5, name, transform=axes.get_yaxis_transform(), ha="right", va="center")
        for place, column in enumerate(columns):
            if cell := column[line]:
                text, fill, hatch = cell
                look: dict[str, Any] = {
                    "facecolor": fill,
                    "hatch": hatch,
                    "edgecolor": style.INK,
                    "linewidth": style.THIN_PT,
                }
                axes.add_patch(Rectangle((place + 0.04, line + 0.08), 0.92, 0.84, **look))
                axes.text(
                    place + 0.5,
                    line + 0.5,
                    text if len(columns) <= 16 or len(text) < 2 else "",
                    ha="center",
                    va="center",
                )
    frame: dict[str, Any] = {"fill": False, "edgecolor": style.LIMIT, "linewidth": style.LINE_PT, "clip_on": False}
    axes.add_patch(Rectangle((looked_at - 1, 0), 1, len(names), **frame))


def _number_steps(page: Figure, axes: Axes, steps: int, name: str) -> None:
    every = 1 if steps <= 16 else 2
    for step in range(0, steps, every):
        axes.text(step + 0.5, 3.08, str(step + 1), ha="center", va="top")
    write(page, 14, 8, name)
