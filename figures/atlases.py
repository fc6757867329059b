"""The atlas of disagreement as dots: how far each model is from what was measured, time by time."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from figures import style
from figures.exploration import Choice, Exploration, Question, Readout
from figures.lines import ticks_below
from figures.page import box, new_page, write
from figures.words import words
from lib.atlas import atlas, judged, of_group
from lib.checks import one_of
from lib.comparison import ROUNDING, Comparison, Group, Model, scores

EVERY = "all"
SHOWN, LEFT_OUT = "shown", "left out"
GROUPS = tuple(
    group for group in Group
    if group not in {Group.OUTPUTS, Group.PREEMPTION, Group.SHARING, Group.HITS, Group.CAPACITY, Group.BYTES}
)  # fmt: skip
# Shape and colour of the dots; no two models have the same shape.
MARKS: dict[Model, tuple[str, str]] = {
    Model.FIT: ("o", "#2b5fa8"),
    Model.DEVICE: ("s", "#4da36c"),
    Model.HOST: ("^", "#a05a10"),
    Model.OWN_HOST: ("v", "#e8943a"),
    Model.RECORDED_STEPS: ("D", style.INK),
    Model.BOUND: ("<", style.FAINT),
    Model.READ_ONCE: (">", style.FAINT),
    Model.ADDED: ("P", style.LIMIT),
    Model.RETRY_RULE: ("X", style.INK),
    Model.CALIBRATED: ("h", "#a64d9a"),
}
PAGE_PT, LEFT_PT, BOTTOM_PT, WIDTH_PT, HEIGHT_PT = 372, 146, 136, 226, 204
KEY_LEFT_PT, KEY_LINE_PT = (14, 216), 15
DOT_PT, SPREAD = 5.5, 0.62
FAR_LEFT, FAR_RIGHT, NEAR = -0.8, 1.4, 0.1
TICKS = (-0.5, -0.1, -0.02, 0, 0.02, 0.1, 0.3, 1)
# Names that fit beside a number on one line of the read-outs.
SHORT = {each: each.value for each in MARKS} | {
    Model.HOST: "max(host,\N{NO-BREAK SPACE}device)",
    Model.OWN_HOST: "its own host",
    Model.RECORDED_STEPS: "recorded steps",
    Model.READ_ONCE: "prefix read once",
    Model.CALIBRATED: "calibrated",
}
_PALE, _GAP_PT = "#d5d8de", 0.6  # what is not chosen, and the light rim that keeps dots apart


@dataclass(frozen=True)
class Dots:
    """The comparisons chosen and the others, and a row for each group, or for each model of one group."""

    others: tuple[Comparison, ...]
    chosen: tuple[Comparison, ...]
    rows: tuple[Group | Model, ...]

    def row_of(self, one: Comparison) -> int:
        """The place of the row in which a comparison stands."""
        return self.rows.index(one.model if isinstance(self.rows[0], Model) else one.seen.group)

    def in_row(self, row: Group | Model) -> tuple[Comparison, ...]:
        """The chosen ones of a row."""
        return tuple(one for one in self.chosen if row in (one.model, one.seen.group))


def dots_of(group: str, model: str, fitted: str) -> Dots:
    """What the figure's parameters choose; raises InputError for any other values."""
    of = one_of("group", group, (EVERY, *GROUPS))
    by = one_of("model", model, (EVERY, *MARKS))
    times = tuple(one for one in (atlas() if of == EVERY else of_group(Group(of))) if one.seen.clock)
    compared = times if one_of("fitted", fitted, (SHOWN, LEFT_OUT)) == SHOWN else judged(times)
    rows: tuple[Group | Model, ...] = GROUPS
    if of != EVERY:
        present = {one.model for one in times}
        rows = tuple(each for each in MARKS if each in present)
    chosen = tuple(one for one in compared if by in (EVERY, one.model))
    others = tuple(one for one in compared if by not in (EVERY, one.model))
    return Dots(others, chosen, rows)


def atlas_of_errors(
    *,
    group: Annotated[str, Choice("measured", (EVERY, *GROUPS))] = EVERY,
    model: Annotated[str, Choice("model", (EVERY, *MARKS))] = EVERY,
    fitted: Annotated[str, Choice("fitted dots", (SHOWN, LEFT_OUT))] = SHOWN,
    language: str = "en",
) -> Figure:
    """Errors of the models, in per cent of what was measured, on an axis that is even up to 1 % and then logarithmic.

    A row for each group of measurements, or for each model of one group. Counts are left out: most are exact. Raises
    InputError for values that make no sense. Section 8.7.
    """
    dots = dots_of(group, model, fitted)
    text = words(language, "atlas")
    with style.in_book_style():
        page = new_page(PAGE_PT)
        axes = box(page, LEFT_PT, BOTTOM_PT, WIDTH_PT, HEIGHT_PT)
        _frame(page, axes, dots, text)
        _draw(axes, dots.others, dots, faint=True)
        _draw(axes, dots.chosen, dots, faint=False)
        _key(page, dots, text)
    return page


def _place(error: float) -> float:
    """Where an error lies on the axis: even up to 1 %, then a decade takes the same width."""
    return math.copysign(math.log10(1 + abs(error) * 100), error)


def _frame(page: Figure, axes: Axes, dots: Dots, text: Mapping[str, str]) -> None:
    count = len(dots.rows)
    axes.set_xlim(_place(FAR_LEFT), _place(FAR_RIGHT))
    axes.set_ylim(count - 0.5, -0.5)
    axes.yaxis.set_visible(False)
    axes.spines["left"].set_visible(False)
    axes.axvspan(_place(-NEAR), _place(NEAR), color=style.FILL["queue"], linewidth=0, zorder=0)
    axes.axvline(0, color=style.INK, linewidth=style.THIN_PT, zorder=1)
    ticks_below(
        axes, {_place(tick): f"{tick * 100:+g}".replace("-", "−").replace("+0", "0") for tick in TICKS}, text["axis"]
    )
    for place, row in enumerate(dots.rows):
        if place:
            axes.axhline(place - 0.5, color=_PALE, linewidth=style.THIN_PT, zorder=1)
        height = BOTTOM_PT + HEIGHT_PT * (1 - (place + 0.5) / count)
        write(page, LEFT_PT - 8, height, text[row.name.lower()], ha="right", va="center_baseline")
        of_row = judged(dots.in_row(row))
        if of_row:
            write(page, style.WIDTH_PT - 8, height, _middle(of_row), ha="right", va="center_baseline")
    top = BOTTOM_PT + HEIGHT_PT + 10
    write(page, LEFT_PT, top, text["too_little"])
    write(page, LEFT_PT + WIDTH_PT, top, text["too_much"], ha="right")
    write(page, style.WIDTH_PT - 8, top, text["middle"], ha="right")


def _middle(compared: Sequence[Comparison]) -> str:
    """The least middle error of the models in a row."""
    return f"{scores(compared)[0].middle * 100:.1f} %"


def best_of(compared: Sequence[Comparison]) -> tuple[Model, ...]:
    """The model with the least middle error, or all that share it."""
    found = scores(compared)
    best = {one.model for one in found if math.isclose(one.middle, found[0].middle, rel_tol=ROUNDING)}
    return tuple(model for model in MARKS if model in best)


def _draw(axes: Axes, compared: Sequence[Comparison], dots: Dots, faint: bool) -> None:
    by_group = not isinstance(dots.rows[0], Model)
    models = list(MARKS)
    for model, (shape, colour) in MARKS.items():
        aside = SPREAD * (models.index(model) / (len(models) - 1) - 0.5) if by_group else 0
        for is_fitted in (False, True):
            mine = [one for one in compared if one.model == model and one.is_fitted == is_fitted]
            if mine:
                axes.plot(
                    [_place(one.error) for one in mine],
                    [dots.row_of(one) + aside for one in mine],
                    linestyle="",
                    clip_on=False,
                    zorder=2 if faint else 3,
                    **_look(shape, _PALE if faint else colour, is_fitted),
                )


def _look(shape: str, colour: str, is_fitted: bool) -> dict[str, Any]:
    fill, edge = (style.PAPER, colour) if is_fitted else (colour, style.PAPER)
    return {
        "marker": shape,
        "markersize": DOT_PT if is_fitted else DOT_PT + 2 * _GAP_PT,
        "markerfacecolor": fill,
        "markeredgecolor": edge,
        "markeredgewidth": 1.0 if is_fitted else _GAP_PT,
    }


def _key(page: Figure, dots: Dots, text: Mapping[str, str]) -> None:
    width, height = page.get_size_inches() * 72
    chosen = {one.model for one in dots.chosen}
    for number, (model, (shape, colour)) in enumerate(MARKS.items()):
        left, bottom = KEY_LEFT_PT[number % 2], 84 - number // 2 * KEY_LINE_PT
        look = _look(shape, colour if model in chosen else _PALE, False)
        dot = Line2D([(left + 4) / width], [(bottom + 4) / height], transform=page.transFigure, linestyle="", **look)
        page.add_artist(dot)
        write(page, left + 14, bottom, text[model.name.lower()])
    write(page, KEY_LEFT_PT[0], 6, text["hollow"])


# What a reader may do with it


def _percent(error: float) -> str:
    return f"{error * 100:+.1f} %".replace("-", "−")


def atlas_readouts(group: str, model: str, fitted: str) -> tuple[Readout, ...]:
    """How the chosen models did on the chosen measurements; those fitted to a number are not judged by it."""
    dots = dots_of(group, model, fitted)
    tried = judged(dots.chosen)
    found = (
        Readout("comparisons", len(dots.chosen)),
        Readout("of them fitted", len(dots.chosen) - len(tried)),
        Readout("within 10 %", sum(abs(one.error) <= NEAR for one in tried)),
    )
    if not tried:
        nothing = ("best model", "and as good", "its middle error", "largest error", "of model", "measured")
        return (*found, *(Readout(label, "none") for label in nothing))
    best, *others = best_of(tried)
    worst = max(tried, key=lambda one: abs(one.error))
    return (
        *found,
        Readout("best model", SHORT[best]),
        Readout("and as good", " + ".join(SHORT[model] for model in others) or "none"),
        Readout("its middle error", _middle(tried)),
        Readout("largest error", _percent(worst.error)),
        Readout("of model", SHORT[worst.model]),
        Readout("measured", worst.seen.group.value),
    )


def _ask_interval() -> Question:
    what = next(one.seen.what for one in of_group(Group.SIX) if one.seen.what.startswith("middle interval"))
    said = {one.model: one for one in of_group(Group.SIX) if one.seen.what == what}
    fit, device, host = (said[model] for model in (Model.FIT, Model.DEVICE, Model.HOST))
    assert min((fit, device, host), key=lambda one: abs(one.error)) is device
    (alone,) = (one for one in of_group(Group.DECODE) if (one.model, one.seen.what) == (Model.FIT, "1 x 2K"))
    assert fit.seen.unit == alone.seen.unit == "ms"
    return Question(
        text=f"One request alone took {alone.seen.value:.1f} ms for a decode step. In another experiment, with six "
        f"requests, half of the intervals were shorter than {fit.seen.value:.1f} ms. Which model comes nearest to "
        "this middle: the fit, the device alone, or max(host, device)?",
        choices=(Model.FIT.value, Model.DEVICE.value, Model.HOST.value),
        answer=Model.DEVICE.value,
        reveals={"group": Group.SIX.value},
        because=f"The device says {device.predicted:.1f} ms, {_percent(device.error)}; the fit {fit.predicted:.1f} ms, "
        f"{_percent(fit.error)}; max(host, device) {host.predicted:.1f} ms, {_percent(host.error)}. These two have the "
        "host time of the first experiment in them, and that alone is longer than an interval of the other.",
    )


def _why_atlas_still(moved: str, settings: Mapping[str, Any]) -> str:
    if moved == "fitted":
        return "None of the dots here was fitted to the number that it is compared with."
    if moved == "model":
        return "This model says nothing about what is shown, and neither did the one before."
    return ""


ATLAS_EXPLORATION = Exploration(
    question=_ask_interval,
    in_view=("group", "model", "fitted"),
    settings={
        "prefills": {"group": Group.PREFILL.value},
        "the fit, wherever it is asked": {"model": Model.FIT.value, "fitted": LEFT_OUT},
        "another experiment": {"group": Group.SIX.value, "fitted": LEFT_OUT},
    },
    readouts=atlas_readouts,
    why_still=_why_atlas_still,
)
