"""Figures of right and wrong answers: a grid of tasks and runs, what differs from another one, what it can tell."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from figures import style
from figures.exploration import Choice, Exploration, Question, Readout
from figures.page import box, new_page
from figures.words import words
from lib.checks import one_of
from lib.quality import (
    COLUMNS,
    CONCURRENCIES,
    TASKS,
    Changes,
    Config,
    Grid,
    Interval,
    Weights,
    formats_changed,
    recorded_answers,
    share_interval,
)

PAGE_PT, TITLE_PT = 304, 287
# The box of the cells, in points from the lower left corner; what is said of a line stands right of it.
LEFT_PT, BOTTOM_PT, WIDTH_PT, HEIGHT_PT = 118, 106, 216, 144
LINE_NAME_PT, COUNT_PT = LEFT_PT - 10, LEFT_PT + WIDTH_PT + 42
KEY_PT, RANGE_TITLE_PT, RANGES_PT, RANGE_AXIS_PT = 84, 58, (44, 30), 20
GREEN, ORANGE = style.LINE["other"][0], style.FILL["foreign"]
_MARK: dict[str, Any] = {"linestyle": "", "markeredgecolor": style.INK, "markeredgewidth": style.THIN_PT, "zorder": 3}
_RIGHT = _MARK | {"marker": "o", "markersize": 8, "color": GREEN}
_WRONG = _MARK | {"marker": "X", "markersize": 9, "color": ORANGE}
_CHANGED: dict[str, Any] = {
    "marker": "s", "markersize": 15, "linestyle": "", "markerfacecolor": "none", "markeredgecolor": style.LIMIT,
    "markeredgewidth": style.LINE_PT, "zorder": 2,
}  # fmt: skip
NOTHING_TO_COMPARE = "nothing to compare"


class Compare(StrEnum):
    """The grid that another one is compared with."""

    NOTHING = "nothing"
    BF16_KV = Config.BF16_KV.value
    FP8_DEFAULT = Config.FP8_DEFAULT.value
    FP8_KV_BF16_Q = Config.FP8_KV_BF16_Q.value


class Order(StrEnum):
    """What a line of the picture is."""

    BY_TASK = "by task"
    BY_RUN = "by run"


class Count(StrEnum):
    """What is counted as right or wrong."""

    ANSWERS = "answers"
    TASKS = "tasks"


class Served(StrEnum):
    """The runs that are looked at, by the number of requests served at once."""

    ALL = " and ".join(map(str, CONCURRENCIES))
    ALONE = str(CONCURRENCIES[0])
    TOGETHER = str(CONCURRENCIES[1])


@dataclass(frozen=True)
class Case:
    """A grid, and what differs from another one, if there is another."""

    grid: Grid
    changes: Changes | None

    @property
    def right_tasks(self) -> int:
        """Tasks without an error."""
        return len(self.grid.tasks) - len(self.grid.wrong_by_task)

    def left_open(self, count: Count) -> Interval:
        """The true shares that the grid leaves open at 95 %, if these were independent."""
        return share_interval(
            self.grid.share_right, self.grid.answers if count == Count.ANSWERS else len(self.grid.tasks)
        )


def case_of(config: str, compare: str, served: str, weights: str) -> Case:
    """What the figure's parameters describe; both grids are of the same weights and the same runs."""
    group, other = one_of("weights", weights, Weights), one_of("compare", compare, Compare)
    runs, name = one_of("served", served, Served), one_of("config", config, Config)

    def looked_at(one: Config) -> Grid:
        grid = recorded_answers(group, one)
        return grid if runs == Served.ALL else grid.at(int(runs))

    grid = looked_at(name)
    return Case(grid, None if other == Compare.NOTHING else Changes(looked_at(Config(other)), grid))


def answer_grid(
    *,
    compare: Annotated[Compare, Choice("compare with", tuple(Compare))] = Compare.NOTHING,
    served: Annotated[Served, Choice("served at once", tuple(Served))] = Served.ALL,
    order: Annotated[Order, Choice("lines", tuple(Order))] = Order.BY_TASK,
    count: Annotated[Count, Choice("count", tuple(Count))] = Count.ANSWERS,
    weights: Annotated[Weights, Choice("weights", tuple(Weights))] = Weights.BF16,
    config: Annotated[Config, Choice("configuration", tuple(Config))] = Config.BF16_KV,
    slug: str = "bf16-kv-answers",
    language: str = "en",
) -> Figure:
    """Which answers were right, task by task and run by run; framed are those that differ from another grid's.

    Below, the shares that they leave open. The labels are those of `slug`. Raises InputError for values that make no
    sense. Source: figures 8-26, 8-27 and 8-28, record answers.
    """
    case, text = case_of(config, compare, served, weights), words(language, slug)
    names = {one: text[one.name.lower()] for one in Config}
    by_task, counted = one_of("order", order, Order) == Order.BY_TASK, one_of("count", count, Count)
    with style.in_book_style():
        page = new_page(PAGE_PT)
        axes = box(page, 0, 0, style.WIDTH_PT, PAGE_PT)
        axes.set(xlim=(0, style.WIDTH_PT), ylim=(0, PAGE_PT))
        axes.set_axis_off()
        heading = text["heading" if counted == Count.ANSWERS else "heading_tasks"]
        axes.text(14, TITLE_PT, heading.format(config=names[config], weights=weights, **_counts(case)))
        layout = Layout(by_task)
        if counted == Count.TASKS:
            _shade_tasks(axes, layout, case.grid)
        _draw_cells(axes, layout, case)
        _name_lines(axes, layout, case.grid, text)
        _draw_key(axes, case, text, "" if case.changes is None else names[Config(compare)])
        _draw_ranges(axes, case, text)
    return page


def _counts(case: Case) -> dict[str, int]:
    grid = case.grid
    return {
        "right": grid.right_answers,
        "answers": grid.answers,
        "right_tasks": case.right_tasks,
        "tasks": len(grid.tasks),
    }


@dataclass(frozen=True)
class Layout:
    """Where each task and each run stands: tasks below each other and runs side by side, or the other way round."""

    by_task: bool

    @property
    def lines(self) -> int:
        return len(TASKS) if self.by_task else len(COLUMNS)

    @property
    def places(self) -> int:
        return len(COLUMNS) if self.by_task else len(TASKS)

    def middle(self, line: float, place: float) -> tuple[float, float]:
        """The middle of a cell in points."""
        return LEFT_PT + (place + 0.5) * WIDTH_PT / self.places, self.height(line)

    def height(self, line: float) -> float:
        """The middle of a line."""
        return BOTTOM_PT + HEIGHT_PT - (line + 0.5) * HEIGHT_PT / self.lines

    def cell(self, task: int, run: int) -> tuple[float, float]:
        """The middle of the cell of a task and a run."""
        return self.middle(task, run) if self.by_task else self.middle(run, task)


def _draw_cells(axes: Axes, layout: Layout, case: Case) -> None:
    grid, runs = case.grid, [COLUMNS.index(run) for run in case.grid.columns]
    cells = [(row, column) for row in range(len(grid.tasks)) for column in range(len(runs))]
    changed = case.changes.cells if case.changes else [[0] * len(runs)] * len(grid.tasks)
    for look, chosen in (
        (_CHANGED, [cell for cell in cells if changed[cell[0]][cell[1]]]),
        (_RIGHT, [cell for cell in cells if grid.right[cell[0]][cell[1]]]),
        (_WRONG, [cell for cell in cells if not grid.right[cell[0]][cell[1]]]),
    ):
        places = [layout.cell(row, runs[column]) for row, column in chosen]
        axes.plot([x for x, _ in places], [y for _, y in places], **look)


def _shade_tasks(axes: Axes, layout: Layout, grid: Grid) -> None:
    """A band behind each task that has an error."""
    bands = []
    for task in map(TASKS.index, grid.wrong_by_task):
        half = HEIGHT_PT / layout.lines / 2 if layout.by_task else WIDTH_PT / layout.places / 2
        x, y = layout.cell(task, 0)
        if layout.by_task:
            bands.append(_corners(LEFT_PT, y - half, LEFT_PT + WIDTH_PT, y + half))
        else:
            bands.append(_corners(x - half, BOTTOM_PT, x + half, BOTTOM_PT + HEIGHT_PT))
    axes.add_collection(PolyCollection(bands, facecolor=style.FILL["queue"], zorder=1), autolim=False)


def _corners(left: float, bottom: float, right: float, top: float) -> list[tuple[float, float]]:
    return [(left, bottom), (right, bottom), (right, top), (left, top)]


def _name_lines(axes: Axes, layout: Layout, grid: Grid, text: Mapping[str, str]) -> None:
    """Names of lines at the left, of places at the top, and how much of each line is right at the right."""
    top = BOTTOM_PT + HEIGHT_PT
    axes.text(COUNT_PT, top + 6, text["right"], ha="center")
    if layout.by_task:
        for row, task in enumerate(grid.tasks):
            _name_line(axes, layout.height(row), f"{row + 1}   {task}", grid.right[row], text)
        axes.text(LINE_NAME_PT, top + 6, text["task"], ha="right")
        for run in grid.columns:
            x, _ = layout.middle(0, COLUMNS.index(run))
            axes.text(x, top + 6, text["run"].format(run=run.number), ha="center")
        for concurrency in dict(grid.columns):
            places = [COLUMNS.index(run) for run in grid.columns if run.concurrency == concurrency]
            x, _ = layout.middle(0, sum(places) / len(places))
            axes.text(x, top + 20, text["concurrency"].format(concurrency=concurrency), ha="center")
        return
    for column, run in enumerate(grid.columns):
        name = text["concurrency_run"].format(concurrency=run.concurrency, run=run.number)
        of_run = tuple(row[column] for row in grid.right)
        _name_line(axes, layout.height(COLUMNS.index(run)), name, of_run, text)
    axes.text(LINE_NAME_PT, top + 6, text["task_number"], ha="right")
    for place in range(len(grid.tasks)):
        axes.text(layout.middle(0, place)[0], top + 6, str(place + 1), ha="center")


def _name_line(axes: Axes, height: float, name: str, right: tuple[bool, ...], text: Mapping[str, str]) -> None:
    axes.text(LINE_NAME_PT, height, name, ha="right", va="center_baseline")
    of = text["of"].format(right=sum(right), all=len(right))
    axes.text(COUNT_PT, height, of, ha="center", va="center_baseline")


def _draw_key(axes: Axes, case: Case, text: Mapping[str, str], other: str) -> None:
    for left, look, name in ((20, _RIGHT, text["right"]), (100, _WRONG, text["wrong"])):
        axes.plot(left, KEY_PT + 4, **look)
        axes.text(left + 10, KEY_PT, name)
    if case.changes:
        axes.plot(180, KEY_PT + 4, **_CHANGED | {"markersize": 10})
        axes.text(190, KEY_PT, text["changed"].format(config=other, cells=case.changes.changed_cells))


def _draw_ranges(axes: Axes, case: Case, text: Mapping[str, str]) -> None:
    """The true shares left open, were all answers independent, or only the tasks."""
    axes.text(14, RANGE_TITLE_PT, text["open"])
    scale = WIDTH_PT / 100
    for count, number, height in zip(Count, (case.grid.answers, len(case.grid.tasks)), RANGES_PT, strict=True):
        low, high = (100 * end for end in case.left_open(count))
        ends = LEFT_PT + low * scale, LEFT_PT + high * scale
        axes.hlines(height + 4, *ends, color=style.INK, linewidth=2 * style.LINE_PT)
        axes.text(LINE_NAME_PT, height, text[f"as_{count}"].format(number=number), ha="right")
        axes.text(COUNT_PT, height, f"{low:.0f}–{high:.0f} %", ha="center")
    share = LEFT_PT + 100 * case.grid.share_right * scale
    axes.plot([share] * 2, [height + 4 for height in RANGES_PT], "|", color=style.LIMIT, markersize=11, zorder=3)
    axes.hlines(RANGE_AXIS_PT, LEFT_PT, LEFT_PT + WIDTH_PT, color=style.INK, linewidth=style.THIN_PT)
    for percent in (0, 25, 50, 75, 100):
        axes.text(LEFT_PT + percent * scale, RANGE_AXIS_PT - 3, f"{percent}", ha="center", va="top")


def answer_readouts(**settings: Any) -> tuple[Readout, ...]:
    """What a configuration got right and what differs from the other grid, at the settings of `answer_grid`."""
    config, compare, weights = (settings[name] for name in ("config", "compare", "weights"))
    case = case_of(config, compare, settings["served"], weights)
    grid, changes = case.grid, case.changes
    return (
        Readout("right answers", grid.right_answers),
        Readout("of so many", grid.answers),
        Readout("tasks with an error", len(grid.wrong_by_task)),
        Readout("which, and how often", _named(grid.wrong_by_task, "{} ({})")),
        Readout("turned by who else is served", _named(recorded_answers(weights, config).concurrency_matters)),
        Readout("formats that differ", _formats(Config(compare), config) if changes else NOTHING_TO_COMPARE),
        Readout("answers changed", changes.changed_cells if changes else NOTHING_TO_COMPARE),
        Readout("tasks changed", _named(changes.tasks, "{} {}") if changes else NOTHING_TO_COMPARE),
        Readout("sign test of these tasks", changes.chance if changes else NOTHING_TO_COMPARE, "", 2),
        *(
            Readout(
                f"left open as {count}, %", "{:.0f} to {:.0f}".format(*(100 * end for end in case.left_open(count)))
            )
            for count in Count
        ),
    )


def _formats(before: Config, after: Config) -> str:
    return " and ".join(name.upper() for name in formats_changed(before, after)) or "none"


def _named(tasks: Mapping[str, object] | tuple[str, ...], form: str = "{}") -> str:
    """Tasks by their numbers in the picture."""
    said = tasks.items() if isinstance(tasks, Mapping) else ((task, "") for task in tasks)
    return ", ".join(form.format(TASKS.index(task) + 1, what) for task, what in said) or "none"


def _ask_where_the_errors_are() -> Question:
    bf16, fp8 = (case_of(Config.BF16_KV, Compare.NOTHING, Served.ALL, weights).grid for weights in Weights)
    ((task, wrong),) = fp8.wrong_by_task.items()
    number = TASKS.index(task) + 1
    choices = "one in each of four tasks", f"all in task {number} again", "all in another task"
    return Question(
        text=f"{bf16.right_answers} of {bf16.answers} answers are right, and all errors are of one task. With other "
        f"weights, in FP8, it is {fp8.right_answers} of {fp8.answers} as well. Where are those {wrong} errors?",
        choices=choices,
        answer=choices[1],
        reveals={"weights": Weights.FP8, "count": Count.TASKS},
        because="Errors have an address: with BF16 KV this document fails with either weights, and asked again it "
        f"fails again. So {bf16.answers} answers are {len(bf16.tasks)} things learnt, not {bf16.answers}, and leave "
        "far more open: see the two ranges.",
    )


def _ask_without_company() -> Question:
    counts = [
        [case_of(config, Compare.NOTHING, served, Weights.BF16).grid for served in Served]
        for config in (Config.FP8_DEFAULT, Config.BF16_KV)
    ]
    (both, alone, _), (bf16_both, bf16_alone, _) = ([grid.right_answers for grid in grids] for grids in counts)
    (turned,) = counts[0][0].concurrency_matters
    lost = bf16_both - both
    form = "{} against {}"
    answer = form.format(alone, bf16_alone)
    return Question(
        text=f"FP8 as the engine does it gets {both} answers right, BF16 KV {bf16_both}. Half of the runs had a single "
        "request at a time. How many are right in those, FP8 against BF16 KV?",
        choices=(form.format(alone - lost, bf16_alone), form.format(alone - lost // 2, bf16_alone), answer),
        answer=answer,
        reveals={"served": Served.ALONE},
        because=f"Alone, task {TASKS.index(turned) + 1} is right with FP8 and wrong with BF16 KV, and the next one the "
        f"other way round. Both answers that FP8 has less are of task {TASKS.index(turned) + 1} with "
        f"{CONCURRENCIES[1]} requests at once: who else is served can turn an answer as well.",
    )


def _ask_for_q_alone() -> Question:
    from_bf16, from_default = (
        case_of(Config.FP8_KV_BF16_Q, compare, Served.ALL, Weights.BF16).changes
        for compare in (Compare.BF16_KV, Compare.FP8_DEFAULT)
    )
    assert from_bf16 and from_default
    (turned,) = from_default.tasks
    (kept,) = from_bf16.tasks.keys() - from_default.tasks.keys()
    default = from_default.before.right_answers
    form = "{}, in {}"
    choices = [form.format(0, "none"), form.format(from_default.changed_cells, "one task"),
               form.format(from_bf16.changed_cells, "two tasks")]  # fmt: skip
    return Question(
        text=f"Also {from_bf16.after.right_answers} right, and not the same {from_bf16.after.right_answers}: "
        f"{from_bf16.changed_cells} answers are other than with BF16 KV (framed). FP8 as the engine does it had "
        f"{default} right, and from that only the format of Q differs. How many answers does Q alone change, in how "
        "many tasks?",
        choices=tuple(choices),
        answer=choices[1],
        reveals={"compare": Compare.FP8_DEFAULT},
        because=f"Only task {TASKS.index(turned) + 1} turns, with {CONCURRENCIES[1]} requests at once. Task "
        f"{TASKS.index(kept) + 1} is wrong here with FP8 KV whatever the format of Q: that came with the KV. Totals "
        "hide this: compare task by task, and change one thing at a time.",
    )


def _exploration(question: Callable[[], Question], settings: Mapping[str, Mapping[str, Any]]) -> Exploration:
    return Exploration(
        question=question,
        in_view=("compare", "served", "order", "count"),
        settings=settings,
        readouts=answer_readouts,
        why_still=lambda moved, settings: "",
    )


BF16_KV_EXPLORATION = _exploration(
    _ask_where_the_errors_are,
    {
        "by run, all alike": {"order": Order.BY_RUN},
        "against FP8 with BF16 Q": {"compare": Compare.FP8_KV_BF16_Q},
        "against FP8 default": {"compare": Compare.FP8_DEFAULT},
    },
)
FP8_DEFAULT_EXPLORATION = _exploration(
    _ask_without_company,
    {
        "four at once": {"served": Served.TOGETHER},
        "only Q differs": {"compare": Compare.FP8_KV_BF16_Q},
        "FP8 weights": {"weights": Weights.FP8},
    },
)
FP8_KV_BF16_Q_EXPLORATION = _exploration(
    _ask_for_q_alone,
    {
        "only Q differs": {"compare": Compare.FP8_DEFAULT},
        "by run, all alike": {"order": Order.BY_RUN},
        "FP8 weights": {"weights": Weights.FP8},
    },
)
