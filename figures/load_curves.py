"""Figures of a service under load: what it completes and what is right and in time, against the rate of arrival."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from figures import style
from figures.exploration import Choice, Exploration, Question, Readout, Slider
from figures.lines import height_from_zero, label_ends, ticks_below
from figures.page import box, new_page, swatch, write
from figures.words import words
from lib.arrivals import Arrivals
from lib.checks import one_of, whole
from lib.clocks import Clock
from lib.load_curve import RATES, RECORDED_REQUESTS, ServiceLoad, tasks_of
from lib.service_calibration import LONG_TASK, prediction_error, shape_of
from lib.service_record import CONDITIONS, DEADLINE_S, Admission, Condition, recorded

PAGE_PT, LEFT_PT, BOTTOM_PT, WIDTH_PT, HEIGHT_PT = 300, 38, 104, 280, 158
WINDOWS = (16, 32, 64, 128, 256)
LONGEST_DEADLINE_S = 13
# The rate beyond saturation at which short windows still look well.
LOOKED_AT = 4
_TICKS = (0.5, 1, 2, 4, 8, 16)
_GOOD: dict[str, Any] = {"marker": "o", "markersize": 6, "color": style.LINE["one"][0], "markeredgecolor": style.PAPER}
_ALL: dict[str, Any] = {
    "marker": "s",
    "markersize": 4.5,
    "markerfacecolor": style.PAPER,
    "color": style.LINE["launch"][0],
}
_CIRCLE: dict[str, Any] = {"marker": "o", "markersize": 8, "markerfacecolor": "none", "markeredgecolor": style.LIMIT}


class Gate(StrEnum):
    """Who is let in."""

    ALL = "all"
    IN_TIME = "who is expected in time"


@dataclass(frozen=True)
class Curve:
    """A load, the deadline by which its answers are of use, and the load as it was recorded: all let in."""

    load: ServiceLoad
    deadline_s: int

    @property
    def as_recorded(self) -> ServiceLoad:
        return ServiceLoad(self.load.admission)

    @property
    def knee(self) -> float:
        return self.load.knee(self.deadline_s)

    def goodput(self, rate: float) -> float:
        """Right answers within the deadline per second, at a rate."""
        return self.load.goodput(rate, self.deadline_s)

    @property
    def never_falls(self) -> bool:
        """Whether no rate that is drawn lies beyond the one at which goodput is highest."""
        return self.knee == RATES[-1]

    @property
    def conditions(self) -> list[Condition]:
        """The recorded conditions of this way of admission, which differ in the rate."""
        return [each for each in CONDITIONS if each.admission == self.load.admission]

    def recorded_points(self) -> list[tuple[int, float, float]]:
        """Rate, completions and goodput of each recorded window."""
        return [
            (condition.arrivals_per_s, each.window.completion_throughput, each.window.goodput(self.deadline_s))
            for condition in self.conditions
            if condition.arrivals_per_s is not None
            for each in recorded(condition)
        ]


def load_curve(
    *,
    requests: Annotated[int, Choice("per window", WINDOWS)] = RECORDED_REQUESTS,
    deadline: Annotated[int, Slider("deadline", 1, LONGEST_DEADLINE_S, 1, "s")] = DEADLINE_S,
    let_in: Annotated[Gate, Choice("let in", tuple(Gate))] = Gate.ALL,
    admission: Annotated[
        Admission, Choice("admission", (Admission.CONTINUOUS, Admission.ONE_AT_A_TIME))
    ] = Admission.CONTINUOUS,
    arrivals: Annotated[Arrivals, Choice("arrivals", tuple(Arrivals))] = Arrivals.EVEN,
    language: str = "en",
) -> Figure:
    """What the recorded service completes and how much of it is right and in time, against the rate of arrival.

    Curves are simulated with windows of so many requests; the points beside them are the record's windows of 16. Raises
    InputError for values that make no sense. Source: section 8.6.2; the book has no such figure.
    """
    curve = curve_at(requests, deadline, let_in, admission, arrivals)
    text = words(language, "load-curve")
    rates = sorted({*RATES, curve.knee})
    completed, good = [curve.load.completions(rate) for rate in rates], [curve.goodput(rate) for rate in rates]
    points = curve.recorded_points()
    with style.in_book_style():
        page = new_page(PAGE_PT)
        write(page, 14, PAGE_PT - 16, text["title"].format(requests=requests, deadline=deadline))
        axes = box(page, LEFT_PT, BOTTOM_PT, WIDTH_PT, HEIGHT_PT)
        axes.set_xscale("log")
        axes.set_xlim(RATES[0], RATES[-1])
        ticks_below(axes, {tick: f"{tick:g}" for tick in _TICKS}, text["rate"])
        height_from_zero(axes, max(*completed, *(each for point in points for each in point[1:])))
        axes.fill_between(rates, good, completed, **style.look("queue") | {"linewidth": 0})
        axes.plot(rates, completed, **style.line("launch"))
        axes.plot(rates, good, linewidth=1.6 * style.LINE_PT, **style.line("one"))
        for place, look in ((1, _ALL), (2, _GOOD)):
            axes.plot(
                [point[0] for point in points], [point[place] for point in points], linestyle="", clip_on=False, **look
            )
        _mark_knee(axes, curve, text["knee" if not curve.never_falls else "rises"])
        label_ends(axes, [good[-1], completed[-1]], [text["good"], text["completed"]])
        swatch(page, 14, 48, text["useless"], "queue")
        for left, look, key in ((21, _ALL, "recorded_all"), (221, _GOOD, "recorded_good")):
            _point_key(page, left, 28, text[key], look)
        said = text["verdict" if curve.load == curve.as_recorded else "compared"]
        short = _good_at(curve.as_recorded, deadline)
        write(page, 14, 8, said.format(rate=LOOKED_AT, now=_good_at(curve.load, deadline), short=short))
    return page


def curve_at(requests: int, deadline: int, let_in: str, admission: str, arrivals: str) -> Curve:
    """The load and the deadline that the figure's parameters describe."""
    whole("requests", one_of("requests", requests, WINDOWS))
    deadline_s = whole("deadline", deadline, 1, 10**6)
    way = one_of("admission", admission, (Admission.CONTINUOUS, Admission.ONE_AT_A_TIME))
    refused = one_of("let_in", let_in, Gate) is Gate.IN_TIME
    load = ServiceLoad(way, requests, one_of("arrivals", arrivals, Arrivals), deadline_s if refused else None)
    return Curve(load, deadline_s)


def _mark_knee(axes: Axes, curve: Curve, text: str) -> None:
    """A circle where goodput is highest, a line down to the rate, and the rate above the box."""
    knee, highest = curve.knee, curve.goodput(curve.knee)
    axes.plot([knee, knee], [0, highest], color=style.LIMIT, linewidth=style.THIN_PT, clip_on=False)
    axes.plot([knee], [highest], clip_on=False, **_CIRCLE)
    said = text.format(rate=f"{knee:g}")
    side = "right" if knee > 6 else "center" if knee > 1 else "left"
    axes.text(knee, 1.02, said, transform=axes.get_xaxis_transform(), ha=side, va="bottom", color=style.LIMIT)


def _point_key(page: Figure, left: float, bottom: float, text: str, look: Mapping[str, Any]) -> None:
    width, height = page.get_size_inches() * 72
    place = [left / width], [(bottom + 4) / height]
    page.add_artist(Line2D(*place, transform=page.transFigure, linestyle="", **look))
    write(page, left + 13, bottom, text)


def _good_at(load: ServiceLoad, deadline_s: int) -> str:
    return f"{load.goodput(LOOKED_AT, deadline_s):.2f}"


def curve_readouts(**settings: Any) -> tuple[Readout, ...]:
    """Where goodput is highest, and what is left of it beyond, at the settings of `load_curve`."""
    curve = curve_at(**settings)
    first, *_ = curve.load.windows(LOOKED_AT)
    tasks = tasks_of(curve.load.requests)
    refused = [task for task, outcome in zip(tasks, first.outcomes, strict=True) if outcome.sent_s is None]
    late, of = first.correct_but_late(curve.deadline_s), len(tasks)
    condition = Condition(curve.load.admission, LOOKED_AT)
    measured = [each.window.goodput(curve.deadline_s) for each in recorded(condition)]
    error = prediction_error(condition, lambda window: window.completion_throughput)
    return (
        Readout("goodput is highest at, per s", f"{curve.knee:g}{' or more' if curve.never_falls else ''}"),
        Readout("goodput there, per s", curve.goodput(curve.knee), "", 2),
        Readout("most completed, per s", curve.load.saturation, "", 2),
        Readout("goodput at 4/s, per s", curve.goodput(LOOKED_AT), "", 2),
        Readout("the same, 16 a window, all in", _good_at(curve.as_recorded, curve.deadline_s)),
        Readout("recorded, three windows", " ".join(f"{each:.2f}" for each in sorted(measured)), "", 2),
        Readout("right but late at 4/s", f"{late} of {of}"),
        Readout("refused at 4/s", f"{len(refused)} of {of}"),
        Readout("of them long prompts", sum(shape_of(task) == LONG_TASK for task in refused)),
        Readout("longest at 4/s", first.longest_s(), "s", 1, (Clock.FIT,)),
        Readout("completed at 4/s, model error", f"{100 * error:+.1f} %".replace("-", "−")),
    )


def _ask_where_it_falls() -> Question:
    short, long = (ServiceLoad(requests=count) for count in (RECORDED_REQUESTS, WINDOWS[-1]))
    alone, knee, measured = ServiceLoad(Admission.ONE_AT_A_TIME), long.knee(DEADLINE_S), LOOKED_AT
    choices = tuple(f"near {rate:g}/s" for rate in (alone.knee(DEADLINE_S), knee, measured, RATES[-1]))
    return Question(
        text=f"With {short.requests} requests a window, goodput within {DEADLINE_S} s was best near "
        f"{short.knee(DEADLINE_S):g} requests a second, and at {measured}/s {short.goodput(measured, DEADLINE_S):.2f}. "
        f"Now a window has {long.requests} requests. Where does goodput begin to fall?",
        choices=choices,
        answer=choices[1],
        reveals={"requests": long.requests},
        because=f"The engine completes {long.saturation:.2f} a second at most. What comes beyond that waits longer "
        f"and longer as long as requests come: at {measured}/s goodput falls to "
        f"{long.goodput(measured, DEADLINE_S):.2f}. A window of {short.requests} is over before the queue is long: "
        "it only looked well.",
    )


LOAD_CURVE_EXPLORATION = Exploration(
    question=_ask_where_it_falls,
    in_view=("requests", "deadline", "let_in", "admission"),
    settings={
        "256 a window": {"requests": WINDOWS[-1]},
        "the same by chance": {"requests": WINDOWS[-1], "arrivals": Arrivals.POISSON},
        "the same, late ones refused": {"requests": WINDOWS[-1], "let_in": Gate.IN_TIME},
    },
    readouts=curve_readouts,
    why_still=lambda moved, settings: "",
)
