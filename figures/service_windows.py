"""Figures of the recorded service: what each condition completes, and what of it is right and in time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from statistics import median
from typing import Annotated, Any, TypeVar

from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from figures import style
from figures.exploration import Choice, Exploration, Question, Readout, Slider
from figures.lines import line_key, ticks_below, ticks_left
from figures.page import box, new_page, swatch, write
from figures.words import words
from lib.arrivals import even
from lib.checks import InputError, one_of, seconds, whole
from lib.clocks import Clock
from lib.goodput import Since, Window
from lib.load_curve import MOST_REQUESTS, RATES, RECORDED_REQUESTS, ServiceLoad, simulated_window
from lib.service_record import CONDITIONS, DEADLINE_S, Admission, Condition, all_windows, recorded

PAGE_PT, LEFT_PT, BOTTOM_PT, WIDTH_PT, HEIGHT_PT = 296, 34, 92, 376, 170
TITLE_PT, KEY_PT, DETAILS_PT, DOT_PT, OUTLINE_PT = 278, 32, 10, 158, 250
# The same in both figures, so that what is lost can be seen.
MOST_PER_S, TICKS = 2.6, (0, 0.5, 1, 1.5, 2, 2.5)
# Whoever types a rate in place of the slider: what comes faster than this comes at once.
MOST_RATE_PER_S = 1000
BAR, GROUP_GAP, EDGE = 0.72, 0.45, 0.65
DOTS_APART_PT, VALUE_ABOVE_PT, GROUP_BELOW_PT = 7, 7, 25
ONE_BY_ONE, BATCHED, CROWDED = (
    Condition(Admission.ONE_AT_A_TIME, 4), Condition(Admission.CONTINUOUS, 4), Condition(Admission.CONTINUOUS, 16),
)  # fmt: skip
T = TypeVar("T")
NONE, PART_OF = "none", "{} of {}"
_DOT: dict[str, Any] = {
    "linestyle": "", "marker": "o", "markersize": 5, "markerfacecolor": style.PAPER, "markeredgecolor": style.INK,
    "markeredgewidth": style.LINE_PT, "zorder": 4,
}  # fmt: skip

_SIMULATED: dict[str, Any] = style.look("queue") | {"facecolor": style.PAPER}


class Counted(StrEnum):
    """What a bar counts."""

    COMPLETED = "completed"
    GOOD = "right and in time"


class Shown(StrEnum):
    """What of the three windows of a condition a bar is."""

    MEDIAN = "median of three"
    FIRST = "window 1"
    SECOND = "window 2"
    THIRD = "window 3"


class Simulate(StrEnum):
    """How the condition that is simulated beside the recorded ones lets requests in, if there is one."""

    NOTHING = "nothing"
    ONE_AT_A_TIME = Admission.ONE_AT_A_TIME.value
    CONTINUOUS = Admission.CONTINUOUS.value
    ALL_AT_ONCE = Admission.ALL_AT_ONCE.value


ROLE = {Counted.COMPLETED: "prefill", Counted.GOOD: "decode"}
SINGLE = (Shown.FIRST, Shown.SECOND, Shown.THIRD)


@dataclass(frozen=True)
class Case:
    """What the figure's parameters describe: what counts in a window, which window a bar is, what is simulated."""

    counted: Counted
    deadline_s: float
    since: Since
    shown: Shown
    simulated: tuple[Window, ...]

    def rate(self, window: Window) -> float:
        """What a bar counts of a window, per second."""
        if self.counted is Counted.COMPLETED:
            return window.completion_throughput
        return window.goodput(self.deadline_s, self.since)

    def of(self, values: Sequence[float]) -> float:
        """Of the values of three windows the one that is shown; a long window that is simulated stands alone."""
        return median(self.looked_at(values))

    def looked_at(self, of_windows: Sequence[T]) -> Sequence[T]:
        """What belongs to the windows behind what is shown."""
        if self.shown is Shown.MEDIAN or len(of_windows) == 1:
            return of_windows
        return [of_windows[SINGLE.index(self.shown)]]


def case_at(
    simulate: str, rate_per_s: float, requests: int, windows: str, deadline_s: float, since: str, counted: str
) -> Case:
    """The case of the figure's parameters. Raises InputError for what makes no sense, even if it is not simulated."""
    return Case(
        counted=one_of("counted", counted, Counted),
        deadline_s=seconds("deadline_s", deadline_s, above_zero=True),
        since=one_of("since", since, Since),
        shown=one_of("windows", windows, Shown),
        simulated=_simulated(one_of("simulate", simulate, Simulate), rate_per_s, requests),
    )


def _simulated(simulate: Simulate, rate_per_s: float, requests: int) -> tuple[Window, ...]:
    count = whole("requests", requests, 1, MOST_REQUESTS)
    even(rate_per_s, count)
    if rate_per_s > MOST_RATE_PER_S:
        raise InputError("rate_per_s", rate_per_s, f"a rate up to {MOST_RATE_PER_S:,} arrivals a second")
    if simulate is Simulate.NOTHING:
        return ()
    admission = Admission(simulate.value)
    if admission is Admission.ALL_AT_ONCE:
        return tuple(simulated_window(admission, None, count, 1 + place) for place in range(len(SINGLE)))
    return ServiceLoad(admission, count).windows(rate_per_s)


@cache
def windows_at(condition: Condition) -> tuple[Window, ...]:
    """The three recorded windows of a condition."""
    return tuple(each.window for each in recorded(condition))


def service_windows(
    *,
    simulate: Annotated[Simulate, Choice("simulate", tuple(Simulate))] = Simulate.NOTHING,
    rate_per_s: Annotated[float, Slider("at", 0.5, 16.0, 0.5, "/s")] = 4.0,
    requests: Annotated[int, Slider("with requests", 16, 256, 16)] = RECORDED_REQUESTS,
    windows: Annotated[Shown, Choice("bars show", tuple(Shown))] = Shown.MEDIAN,
    deadline_s: Annotated[float, Slider("deadline", 1.0, 13.0, 0.5, "s")] = float(DEADLINE_S),
    since: Annotated[Since, Choice("time from", tuple(Since))] = Since.PLANNED_ARRIVAL,
    counted: Annotated[Counted, Choice("counted", tuple(Counted))] = Counted.COMPLETED,
    slug: str = "completion-throughput",
    language: str = "en",
) -> Figure:
    """Requests per second at each recorded condition: all that are completed, or those that are right and in time.

    Windows are dots. Beside the recorded conditions stands a simulated one, if it is asked for. Where only good answers
    count, a dashed outline shows all that are completed. The labels are those of `slug`. Raises InputError for values
    that make no sense. Source: figures 8-33 and 8-34, records service_windows and service_requests.
    """
    case = case_at(simulate, rate_per_s, requests, windows, deadline_s, since, counted)
    text = words(language, slug)
    with style.in_book_style():
        page = new_page(PAGE_PT)
        title = text[f"title_{case.counted.name.lower()}"]
        write(page, 14, TITLE_PT, title.format(deadline=f"{case.deadline_s:g}", clock=text[case.since.name.lower()]))
        axes, places = box(page, LEFT_PT, BOTTOM_PT, WIDTH_PT, HEIGHT_PT), _places()
        axes.set(xlim=(-EDGE, places[-1 if case.simulated else -2] + EDGE), ylim=(0, MOST_PER_S))
        ticks_left(axes, {tick: f"{tick:g}" for tick in TICKS})
        for place, condition in zip(places, CONDITIONS, strict=False):
            _draw_bar(axes, case, place, windows_at(condition), style.look(ROLE[case.counted]))
        if case.simulated:
            _draw_bar(axes, case, places[-1], case.simulated, _SIMULATED)
        has_rate = case.simulated and simulate != Simulate.ALL_AT_ONCE
        _name_bars(axes, places, text, f"{rate_per_s:g}/s" if has_rate else "")
        _draw_key(page, case, text)
        if case.simulated:
            admission = text[Simulate(simulate).name.lower()]
            write(page, 14, DETAILS_PT, text["details"].format(admission=admission, requests=requests))
    return page


def _places() -> list[float]:
    """Where the bars stand: the recorded conditions, group by group, and behind them what is simulated."""
    groups = list(Admission)
    places = [place + GROUP_GAP * groups.index(each.admission) for place, each in enumerate(CONDITIONS)]
    return [*places, places[-1] + 1 + GROUP_GAP]


def _draw_bar(axes: Axes, case: Case, place: float, windows: tuple[Window, ...], look: Mapping[str, Any]) -> None:
    """The bar of a condition, a dot for each of its windows in their order, and the bar's value above them."""
    values = [case.rate(window) for window in windows]
    height, left, right = case.of(values), place - BAR / 2, place + BAR / 2
    axes.add_collection(PolyCollection([[(left, 0), (left, height), (right, height), (right, 0)]], **look))
    if case.counted is Counted.GOOD:
        completed = case.of([window.completion_throughput for window in windows])
        outline = [height, completed, completed, height]
        axes.plot([left, left, right, right], outline, linewidth=style.LINE_PT, **style.line("weights"))
    begin, end = axes.get_xlim()
    apart = DOTS_APART_PT / WIDTH_PT * (end - begin)
    axes.plot(
        [place + (number - (len(values) - 1) / 2) * apart for number in range(len(values))],
        values,
        clip_on=False,
        **_DOT,
    )
    above, on_paper = (place, max(*values, height)), {"facecolor": style.PAPER, "linewidth": 0, "pad": 0.5}
    how: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "bbox": on_paper}
    axes.annotate(f"{height:.2f}", above, (0, VALUE_ABOVE_PT), **how)


def _name_bars(axes: Axes, places: list[float], text: Mapping[str, str], simulated_rate: str) -> None:
    """The rate of arrival below each bar, and the way of admission below each group."""
    rates = {place: f"{each.arrivals_per_s}/s" for place, each in zip(places, CONDITIONS, strict=False)}
    rates |= {places[len(CONDITIONS) - 1]: "", places[-1]: simulated_rate}
    ticks_below(axes, {place: rate for place, rate in rates.items() if rate})
    groups = {text[admission.name.lower()]: _middle_of(admission, places) for admission in Admission}
    if places[-1] < axes.get_xlim()[1]:
        groups[text["simulated"]] = places[-1]
    edge = axes.get_xaxis_transform()
    for name, place in groups.items():
        how: dict[str, Any] = {"xycoords": edge, "textcoords": "offset points", "ha": "center", "va": "top"}
        axes.annotate(name, (place, 0), (0, -GROUP_BELOW_PT), **how)


def _middle_of(admission: Admission, places: list[float]) -> float:
    group = [place for place, each in zip(places, CONDITIONS, strict=False) if each.admission is admission]
    return (group[0] + group[-1]) / 2


def _draw_key(page: Figure, case: Case, text: Mapping[str, str]) -> None:
    is_median = case.shown is Shown.MEDIAN
    shown = text["median"] if is_median else text["one_window"].format(number=1 + SINGLE.index(case.shown))
    swatch(page, 14, KEY_PT, shown, ROLE[case.counted])
    where = [(DOT_PT + 5) / style.WIDTH_PT], [(KEY_PT + 4) / PAGE_PT]
    page.add_artist(Line2D(*where, transform=page.transFigure, **_DOT))
    write(page, DOT_PT + 16, KEY_PT, text["a_window"])
    if case.counted is Counted.GOOD:
        line_key(page, OUTLINE_PT, KEY_PT, text["outline"], "weights")


def _case_of(settings: Mapping[str, Any]) -> Case:
    return case_at(**{name: value for name, value in settings.items() if name != "slug"})


def _per_s(case: Case, label: str, windows: tuple[Window, ...], quantity: Callable[[Window], float]) -> Readout:
    return Readout(label, case.of([quantity(window) for window in windows]), "/s", 2)


def completion_readouts(**settings: Any) -> tuple[Readout, ...]:
    """What is completed, the waits, and Little's law, at the settings of `service_windows`."""
    case = _case_of(settings)
    outside = case.of([window.longest_queue_s for window in windows_at(ONE_BY_ONE)])
    inside = case.of([each.longest_engine_queue_s for each in recorded(CROWDED)])
    stay = case.of([window.mean_stay_s for window in windows_at(ONE_BY_ONE)])
    in_system = case.of([window.mean_in_system for window in windows_at(ONE_BY_ONE)])
    assert ONE_BY_ONE.arrivals_per_s
    return (
        *(_per_s(case, f"completed: {name}", of, _completed) for name, of in _recorded_three()),
        Readout("longest queue: one by one, 4/s", outside, "s", 2, (Clock.CLIENT,)),
        Readout("longest queue: batched, 16/s", inside, "s", 2, (Clock.ENGINE,)),
        Readout("mean stay: one by one, 4/s", stay, "s", 2, (Clock.CLIENT,)),
        Readout("in system: one by one, 4/s", in_system, "", 2),
        Readout("in system if 4/s × mean stay", ONE_BY_ONE.arrivals_per_s * stay, "", 2),
        *_simulated_completions(case),
    )


def _completed(window: Window) -> float:
    return window.completion_throughput


def _recorded_three() -> tuple[tuple[str, tuple[Window, ...]], ...]:
    """The conditions that the chapter compares, as the read-outs call them."""
    named = {"one by one, 4/s": ONE_BY_ONE, "batched, 4/s": BATCHED, "batched, 16/s": CROWDED}
    return tuple((name, windows_at(condition)) for name, condition in named.items())


def _simulated_completions(case: Case) -> tuple[Readout, ...]:
    labels = "simulated: completed", "simulated: longest request", "simulated: in system"
    if not case.simulated:
        return tuple(Readout(label, NONE) for label in labels)
    longest = case.of([window.longest_s() for window in case.simulated])
    return (
        _per_s(case, labels[0], case.simulated, _completed),
        Readout(labels[1], longest, "s", 1, (Clock.FIT,)),
        Readout(labels[2], case.of([window.mean_in_system for window in case.simulated]), "", 1),
    )


def good_readouts(**settings: Any) -> tuple[Readout, ...]:
    """What is good, what is lost and why, and what the other clock would claim, at the settings of the figure."""
    case = _case_of(settings)
    other = Since.SENDING if case.since is Since.PLANNED_ARRIVAL else Since.PLANNED_ARRIVAL
    at_4, at_16 = (case.of([_good(case)(window) for window in windows_at(each)]) for each in (BATCHED, CROWDED))
    return (
        *(_per_s(case, f"good: {name}", of, _good(case)) for name, of in _recorded_three()),
        Readout("batched, 16/s against 4/s", f"{at_16 / at_4 - 1:+.0%}".replace("-", "−") if at_4 else "none at 4/s"),
        Readout("right but late, all 21 windows", _late_of(case, all_windows())),
        Readout("in time but wrong", _wrong_of(case, all_windows())),
        _per_s(case, "other clock: one by one, 4/s", windows_at(ONE_BY_ONE), _good(case, other)),
        _knee(case.deadline_s),
        _per_s(case, "simulated: good", case.simulated, _good(case))
        if case.simulated
        else Readout("simulated: good", NONE),
        Readout(
            "simulated: right but late", _late_of(case, case.looked_at(case.simulated)) if case.simulated else NONE
        ),
    )


def _knee(deadline_s: float) -> Readout:
    """Where goodput begins to fall, from the planned arrival, in windows as short as the recorded ones."""
    label, knee = "goodput is highest at (simulated)", ServiceLoad().knee(deadline_s)
    return Readout(label, knee, "/s", 1) if knee < RATES[-1] else Readout(label, f"{RATES[-1]} /s or more")


def _good(case: Case, since: Since | None = None) -> Callable[[Window], float]:
    return lambda window: window.goodput(case.deadline_s, since or case.since)


def _late_of(case: Case, windows: Sequence[Window]) -> str:
    late = sum(window.correct_but_late(case.deadline_s, case.since) for window in windows)
    return PART_OF.format(late, sum(window.correct for window in windows))


def _wrong_of(case: Case, windows: Sequence[Window]) -> str:
    wrong = sum(window.in_time_but_wrong(case.deadline_s, case.since) for window in windows)
    return PART_OF.format(wrong, sum(window.in_time(case.deadline_s, case.since) for window in windows))


LATE_DEADLINE_S, LONG_WINDOW = 6.0, 256


def _ask_what_a_long_window_does() -> Question:
    at = float(BATCHED.arrivals_per_s or 0)
    short, long = (_simulated(Simulate.CONTINUOUS, at, requests) for requests in (RECORDED_REQUESTS, LONG_WINDOW))
    recorded_s = median(window.longest_s() for window in windows_at(BATCHED))
    longest_s, completed = (median(quantity(window) for window in long) for quantity in (_longest, _completed))
    assert abs(median(map(_longest, short)) / recorded_s - 1) < 0.05 and completed < at
    same, square = f"about {recorded_s:.0f} s", f"about {recorded_s * (LONG_WINDOW / RECORDED_REQUESTS) ** 0.5:.0f} s"
    answer = f"about {longest_s:.0f} s"
    return Question(
        text=f"With continuous batching and {at:g} arrivals a second, the longest of {RECORDED_REQUESTS} requests "
        f"takes {recorded_s:.2f} s (client). Let as many arrive a second, but {LONG_WINDOW} in all: how long does the "
        "longest take?",
        choices=(same, square, answer),
        answer=answer,
        reveals={"simulate": Simulate.CONTINUOUS, "rate_per_s": at, "requests": LONG_WINDOW},
        because=f"In the simulator it takes {longest_s:.1f} s (fit). {at:g} come in a second, {completed:.2f} are "
        f"completed, so each second {at - completed:.2f} more wait, for as long as others come. Completions do not "
        f"show it: a window of {RECORDED_REQUESTS} has nearly as many a second.",
    )


def _longest(window: Window) -> float:
    return window.longest_s()


def _ask_about_a_later_deadline() -> Question:
    three, six = (
        [median(window.goodput(deadline) for window in windows_at(each)) for each in (BATCHED, CROWDED)]
        for deadline in (DEADLINE_S, LATE_DEADLINE_S)
    )
    assert three[0] > three[1] and six[0] <= six[1]
    longest = max(window.longest_s() for window in windows_at(CROWDED))
    assert longest <= LATE_DEADLINE_S
    long_windows = _simulated(Simulate.CONTINUOUS, 4.0, LONG_WINDOW)
    hidden = median(window.goodput(LATE_DEADLINE_S) for window in long_windows)
    assert hidden < six[0] / 4
    answer = "no"
    return Question(
        text=f"With continuous batching and a deadline of {DEADLINE_S} s, 16 arrivals a second give {three[1]:.2f} "
        f"good answers a second, and 4 give {three[0]:.2f}. Let users wait {LATE_DEADLINE_S:g} s: is 16/s still worse?",
        choices=("yes, by as much", "yes, but by less", answer),
        answer=answer,
        reveals={"deadline_s": LATE_DEADLINE_S},
        because=f"{six[1]:.2f} at 16/s, {six[0]:.2f} at 4/s: the longest of these requests took {longest:.2f} s "
        f"(client), so none is late. But a window ends after {RECORDED_REQUESTS} requests, before the queue is long: "
        f"with {LONG_WINDOW} of them at 4/s the simulator finds {hidden:.2f}. There is a button for that.",
    )


def _why_still(moved: str, settings: Mapping[str, Any]) -> str:
    if moved in ("rate_per_s", "requests") and settings["simulate"] == Simulate.NOTHING:
        return "The recorded windows are as they are: choose what to simulate beside them."
    if moved == "rate_per_s" and settings["simulate"] == Simulate.ALL_AT_ONCE:
        return "All requests come at once: there is no rate."
    if moved in ("deadline_s", "since") and settings["counted"] == Counted.COMPLETED:
        return "Completions count late answers too: no deadline and no clock matters."
    if moved == "deadline_s":
        return "No request took longer than the one deadline and less than the other."
    if moved == "since":
        return "By this deadline each answer is in time by both clocks, or late by both."
    return ""


COMPLETION_EXPLORATION = Exploration(
    question=_ask_what_a_long_window_does,
    in_view=("simulate", "rate_per_s", "requests", "windows"),
    settings={
        "simulate 16/s, batched": {"simulate": Simulate.CONTINUOUS, "rate_per_s": 16.0},
        "simulate 2/s, batched": {"simulate": Simulate.CONTINUOUS, "rate_per_s": 2.0},
        "256 requests at 4/s": {"simulate": Simulate.CONTINUOUS, "requests": LONG_WINDOW},
    },
    readouts=completion_readouts,
    why_still=_why_still,
)
GOODPUT_EXPLORATION = Exploration(
    question=_ask_about_a_later_deadline,
    in_view=("deadline_s", "since", "simulate", "requests"),
    settings={
        "deadline 6 s, 256 requests at 4/s": {
            "deadline_s": LATE_DEADLINE_S, "simulate": Simulate.CONTINUOUS, "requests": LONG_WINDOW,
        },
        "time from sending": {"since": Since.SENDING},
        "256 requests at 2/s": {"simulate": Simulate.CONTINUOUS, "rate_per_s": 2.0, "requests": LONG_WINDOW},
    },
    readouts=good_readouts,
    why_still=_why_still,
)  # fmt: skip
