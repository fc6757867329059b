"""Figures of admission: what becomes of each request when more arrive than an engine can bear."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from figures import style
from figures.exploration import Choice, Exploration, Question, Readout, Slider
from figures.lines import FINER, round_above, round_ticks, ticks_below, ticks_left
from figures.page import box, new_page, swatch, write
from figures.words import words
from lib.admission import deadline_ns
from lib.arrivals import Arrivals
from lib.clocks import Clock
from lib.overload import Fate, Outcome, Served
from lib.service_calibration import LONG_TASK
from lib.service_overload import RATE_PER_S, REQUESTS, Guess, Way, bearable_rate, overloaded
from lib.service_record import DEADLINE_S
from lib.step_time import NS

PAGE_PT, LEFT_PT, BOTTOM_PT, WIDTH_PT, HEIGHT_PT = 330, 34, 82, 372, 222
KEY_PT = (14, 112, 210, 312)
BAR = 0.72  # of the height of a row
LOOK = {
    Fate.IN_TIME: style.look("decode"),
    Fate.LATE: style.look("foreign"),
    Fate.GIVEN_UP: style.look("queue"),
}
KEY = {Fate.IN_TIME: "decode", Fate.LATE: "foreign", Fate.GIVEN_UP: "queue"}
_WAIT: dict[str, Any] = {"colors": style.FAINT, "linewidths": 1.6 * style.LINE_PT}
_DEADLINE: dict[str, Any] = {"color": style.LIMIT, "linestyle": (0, (4, 2)), "linewidth": style.LINE_PT}
_CROSS: dict[str, Any] = {"marker": "x", "color": style.LIMIT, "linestyle": "", "markersize": 5}
_SECOND: dict[str, Any] = {
    "marker": "o", "markerfacecolor": style.PAPER, "markeredgecolor": style.INK, "linestyle": "", "markersize": 4,
}  # fmt: skip
_LONG: dict[str, Any] = {"marker": "s", "color": style.INK, "linestyle": "", "markersize": 3.2}


def admission(
    *,
    way: Annotated[Way, Choice("way", tuple(Way))] = Way.ALL_IN,
    rate_per_s: Annotated[float, Slider("arrivals a second", 1.0, 16.0, 0.5)] = RATE_PER_S,
    deadline_s: Annotated[float, Slider("deadline", 1.0, 13.0, 0.5, "s")] = DEADLINE_S,
    guess: Annotated[Guess, Choice("forecast", tuple(Guess))] = Guess.FULL,
    arrivals: Annotated[Arrivals, Choice("arrivals", tuple(Arrivals))] = Arrivals.EVEN,
    requests: Annotated[int, Choice("requests", (REQUESTS // 2, REQUESTS))] = REQUESTS,
    language: str = "en",
) -> Figure:
    """Requests of the recorded service on one axis of time: waiting, in an engine, and what became of each.

    The forecast is that of the gateway, where there is one. Raises InputError for values that make no sense. Source:
    section 8.6.1, which gives the rule but no run: this one is the notebook's, simulated.
    """
    served, due_ns = overloaded(way, rate_per_s, deadline_s, guess, arrivals, requests), deadline_ns(deadline_s)
    text = words(language, "admission")
    with style.in_book_style():
        page = new_page(PAGE_PT)
        # Who gives up can still be late: what is submitted to the device is computed to its end.
        counts = "late_though_given_up" if way == Way.GIVE_UP and served.count(Fate.LATE) else "counts"
        write(page, 14, PAGE_PT - 16, text[counts].format(requests=requests, **_counts(served)))
        axes = box(page, LEFT_PT, BOTTOM_PT, WIDTH_PT, HEIGHT_PT)
        end = _axis_end(served, due_ns)
        axes.set(xlim=(-0.03 * end, end), ylim=(requests - 0.4, -0.6))
        ticks_below(axes, {tick: f"{tick:g}" for tick in round_ticks(end)}, text["time"])
        ticks_left(axes, {place - 1: str(place) for place in (1, requests // 2, requests)})
        _draw_requests(axes, served, due_ns, end)
        for left, fate in zip(KEY_PT, KEY, strict=False):
            swatch(page, left, 28, text[fate.name.lower()], KEY[fate])
        _key(page, KEY_PT[3], 28, text["refused"], **_CROSS)
        _key(page, KEY_PT[0], 10, text["deadline"], **_DEADLINE)
        _key(page, KEY_PT[1], 10, text["waits"], color=style.FAINT, linewidth=1.6 * style.LINE_PT)
        _key(page, KEY_PT[2], 10, text["long"], **_LONG)
        _key(page, KEY_PT[3], 10, text["second"], **_SECOND)
    return page


def _counts(served: Served) -> dict[str, int]:
    return {fate.name.lower(): served.count(fate) for fate in Fate}


def _axis_end(served: Served, due_ns: int) -> float:
    """A round number of seconds behind the last end, and behind the last deadline."""
    due = served.outcomes[-1].request.arrival_ns + due_ns
    return round_above(max(due, *(outcome.finish_ns for outcome in served.outcomes)) / NS, FINER)


def span(outcome: Outcome, due_ns: int) -> tuple[float, float, float]:
    """When a request arrived, was first computed and left, in s; all three are one where nothing followed."""
    arrival = outcome.request.arrival_ns
    left = {Fate.REFUSED: arrival, Fate.GIVEN_UP: arrival + due_ns}.get(outcome.fate, outcome.finish_ns)
    started = left if outcome.started_ns < 0 else outcome.started_ns
    return arrival / NS, started / NS, max(left, started) / NS


def _draw_requests(axes: Axes, served: Served, due_ns: int, end: float) -> None:
    spans = [span(outcome, due_ns) for outcome in served.outcomes]
    waits = [[(start, row), (enter, row)] for row, (start, enter, _) in enumerate(spans) if enter > start]
    axes.add_collection(LineCollection(waits, zorder=1, **_WAIT), autolim=False)
    fates = [outcome.fate for outcome in served.outcomes]
    for fate, look in LOOK.items():
        bars = [_bar(row, spans[row]) for row, each in enumerate(fates) if each == fate]
        axes.add_collection(PolyCollection(bars, zorder=2, **look), autolim=False)
    rows = np.arange(len(spans))
    dues = [(outcome.request.arrival_ns + due_ns) / NS for outcome in served.outcomes]
    axes.plot(dues, rows, zorder=3, **_DEADLINE)
    refused = [row for row, fate in enumerate(fates) if fate == Fate.REFUSED]
    axes.plot([spans[row][0] for row in refused], refused, zorder=4, clip_on=False, **_CROSS)
    second = [row for row, outcome in enumerate(served.outcomes) if outcome.engine]
    axes.plot([sum(spans[row][1:]) / 2 for row in second], second, zorder=5, **_SECOND)
    long = [row for row, outcome in enumerate(served.outcomes) if outcome.request.prompt == LONG_TASK.input_tokens]
    axes.plot([-0.015 * end] * len(long), long, **_LONG)


def _bar(row: int, of: tuple[float, float, float]) -> list[tuple[float, float]]:
    low, high = row - BAR / 2, row + BAR / 2
    return [(of[1], low), (of[2], low), (of[2], high), (of[1], high)]


def _key(page: Figure, left: float, bottom: float, text: str, **look: Any) -> None:
    """One entry of the key: a piece of a line, or a mark, and its meaning."""
    width, height = page.get_size_inches() * 72
    at: Sequence[float] = (left + 7,) if look.get("marker") else (left, left + 14)
    page.add_artist(
        Line2D([x / width for x in at], [(bottom + 4) / height] * len(at), transform=page.transFigure, **look)
    )
    write(page, left + 20, bottom, text)


def admission_readouts(**settings: Any) -> tuple[Readout, ...]:
    """What became of the requests and what it took, at the settings of `admission`."""
    served = overloaded(**settings)
    per_result, wasted = served.busy_ns_per_result, served.wasted_tokens
    waits = [outcome.started_ns - outcome.request.arrival_ns for outcome in served.outcomes if outcome.started_ns >= 0]
    return (
        *(Readout(fate, served.count(fate)) for fate in Fate),
        Readout("in time if all let in", overloaded(**settings | {"way": Way.ALL_IN}).count(Fate.IN_TIME)),
        Readout("engine can bear, /s", bearable_rate(), "", 2),
        Readout("longest wait", max(waits, default=0) / NS, "s", 2, (Clock.FIT,)),
        Readout("devices busy", served.busy_ns / NS, "s", 2, (Clock.FIT,)),
        Readout("device, each in time", per_result / NS if per_result else "–", "s", 2, (Clock.FIT,)),
        Readout("tokens in vain", wasted, "token"),
        Readout("of all tokens", f"{100 * wasted / max(served.computed_tokens, 1):.0f} %"),
    )


def _ask_what_helps() -> Question:
    all_in, gone, refused = (overloaded(way) for way in (Way.ALL_IN, Way.GIVE_UP, Way.REFUSE))
    good = [served.count(Fate.IN_TIME) for served in (all_in, gone, refused)]
    assert good[1] - good[0] < 2 < good[2] - good[0]
    answer = "only the gateway"
    share = 100 * gone.wasted_tokens / gone.computed_tokens
    return Question(
        text=f"{RATE_PER_S} requests a second are {RATE_PER_S / bearable_rate():.1f} times what the engine can bear. "
        f"If all are let in, {good[0]} of {REQUESTS} are in time. What helps more of them: users who give up after "
        f"{DEADLINE_S} s, or a gateway that refuses on arrival whoever it expects to be late?",
        choices=("only the users who give up", answer, "both about alike", "neither"),
        answer=answer,
        reveals={"way": Way.REFUSE},
        because=f"It refuses {refused.count(Fate.REFUSED)}, and {good[2]} are in time. With users who give up it is "
        f"{good[1]}: the queue stays as long as their patience, so whoever comes to a row has hardly any time left. "
        f"{share:.0f} % of all tokens are still computed in vain.",
    )


def _why_admission_still(moved: str, settings: Mapping[str, Any]) -> str:
    way = settings["way"]
    if moved == "guess" and way in (Way.ALL_IN, Way.GIVE_UP):
        return "No gateway decides here, so nothing is forecast."
    if moved == "guess":
        return "By both forecasts the same requests are in time."
    if moved == "way":
        return "Nobody is late and nobody refused: each way lets all in."
    return ""


ADMISSION_EXPLORATION = Exploration(
    question=_ask_what_helps,
    in_view=("way", "rate_per_s", "deadline_s", "guess"),
    settings={
        "users give up": {"way": Way.GIVE_UP},
        "a gateway that refuses": {"way": Way.REFUSE},
        "a hopeful gateway, 8 a second": {"way": Way.REFUSE, "guess": Guess.ALONE, "rate_per_s": 8.0},
    },
    readouts=admission_readouts,
    why_still=_why_admission_still,
)
