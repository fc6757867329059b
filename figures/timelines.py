"""Figures that lay one request on a line of time."""

import math
from collections.abc import Mapping
from typing import Annotated, Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from figures import style
from figures.exploration import Choice, Exploration, Question, Readout, Slider
from figures.lines import ticks_below, ticks_left
from figures.page import box, new_page, swatch, write
from figures.words import words
from lib import design_problem, latency
from lib.clocks import Clock
from lib.design_problem import SHORT_CHAT, Prompt
from lib.latency import InsertedAs, TimedRequest

Span = tuple[float, float]
Parts = dict[str, list[Span]]
PAGE_PT = 200
_OVER_LINES = {"facecolor": style.PAPER, "edgecolor": "none", "pad": 1}


def request_timeline(
    *,
    queue: Annotated[float, Slider("queue", 0.0, 0.5, 0.01, "s")] = design_problem.ASSUMED_QUEUE_S,
    interval: Annotated[float, Slider("interval", 10.0, 60.0, 0.5, "ms")] = design_problem.interval_alone().seconds,
    outputs: Annotated[int, Slider("outputs", 16, 512, 1)] = SHORT_CHAT.output_tokens,
    inserted: Annotated[int, Slider("foreign prefills", 0, 5, 1)] = 0,
    inserted_as: Annotated[InsertedAs, Choice("inserted as", tuple(InsertedAs))] = InsertedAs.OWN_PASS,
    prompt: Annotated[Prompt, Choice("prompt", tuple(Prompt))] = Prompt.SHORT,
    deadline: Annotated[float, Slider("deadline", 1.0, 20.0, 0.5, "s")] = float(SHORT_CHAT.deadline_s),
    language: str = "en",
) -> Figure:
    """One request from arrival to last output, true to scale, with its start and its end magnified.

    Times in seconds; `inserted` foreign prefills of a short prompt each lengthen one interval. Raises InputError for
    values that make no sense. Source: figure 8-2.
    """
    request = design_problem.timed_request(queue, interval, outputs, inserted, inserted_as, prompt, deadline)
    text = words(language, "request-timeline")
    inside = InsertedAs(inserted_as) is InsertedAs.INSIDE_STEP
    parts = _parts(request, interval, inside)
    with style.in_book_style():
        page = new_page(PAGE_PT)
        whole, first, last = box(page, 14, 134, 392, 32), box(page, 14, 66, 180, 24), box(page, 226, 66, 180, 24)
        spans = {whole: _whole_span(request), first: _first_span(request), last: _last_span(request)}
        for axes, span in spans.items():
            _draw_request(axes, span, request, parts, each_output=axes is not whole)
        _mark_end(page, spans[whole][1], request, text)
        for axes, key in ((first, "first"), (last, "late" if request.slack_s < 0 else "left")):
            apart, due = f"{abs(request.slack_s):.2f} s", f"{request.deadline_s:g} s"
            title = text[key].format(ttft=f"{request.ttft_s:.3f} s", apart=apart, due=due)
            _join(page, whole, axes, spans[axes])
            write(page, axes.get_position().x0 * style.WIDTH_PT, 94, title, bbox=_OVER_LINES)
        _mark_slack(last, spans[last], request)
        _draw_key(page, request, interval, text, inside)
    return page


def timeline_readouts(**settings: Any) -> tuple[Readout, ...]:
    """What the request's timeline amounts to, at the settings of `request_timeline`."""
    request = design_problem.timed_request(**settings)
    to_first = design_problem.prefill_alone(settings["prompt"]).clock
    inside = Clock.FIT if request.delayed and settings["inserted_as"] == InsertedAs.INSIDE_STEP else Clock.CLIENT
    queue = (Clock.ASSUMED,) if request.queue_s else ()
    first, later = _once(*queue, to_first), _once(Clock.CLIENT, inside)
    return (
        Readout("total", request.total_s, "s", 2, _once(*first, *later)),
        Readout("left before the deadline", request.slack_s, "s", 2, _once(*first, *later), signed=True),
        Readout("time to first token", request.ttft_s, "s", 3, first),
        Readout("longest interval", request.longest_interval_s, "ms", 1, later),
        Readout(
            "foreign prefills that still fit",
            latency.prefills_that_fit(request, design_problem.foreign_delay(settings["inserted_as"])),
            "",
        ),
    )


def _once(*clocks: Clock) -> tuple[Clock, ...]:
    return tuple(dict.fromkeys(clocks))


def _ask_for_room() -> Question:
    alone = design_problem.timed_request()
    one_more = design_problem.timed_request(inserted=1)
    fit = latency.prefills_that_fit(alone, design_problem.foreign_delay(InsertedAs.OWN_PASS))
    return Question(
        text=f"The short request is done after {alone.total_s:.2f} s; {alone.slack_s:.2f} s is left. While it "
        "generates, other short requests arrive, and each takes the card for one prefill. How many of those fit before "
        "the deadline?",
        choices=("0", "1", "2"),
        answer=str(fit),
        reveals={"inserted": 1},
        because=f"One prefill takes the card for {_ms(design_problem.prefill_alone(Prompt.SHORT).seconds)}: "
        f"the request would end at {one_more.total_s:.2f} s, {-one_more.slack_s:.2f} s late. Its own work is the same "
        "as before; it waits while the card works for somebody else.",
    )


def _why_timeline_still(moved: str, settings: Mapping[str, Any]) -> str:
    if moved == "inserted_as" and not settings["inserted"]:
        return "No foreign prefill is inserted, so it makes no difference how one would be."
    return ""


TIMELINE_EXPLORATION = Exploration(
    question=_ask_for_room,
    in_view=("queue", "interval", "outputs", "inserted"),
    settings={
        "one prefill, its own pass": {"inserted": 1, "inserted_as": InsertedAs.OWN_PASS},
        "one prefill, inside a step": {"inserted": 1, "inserted_as": InsertedAs.INSIDE_STEP},
        "no queue, one prefill": {"queue": 0.0, "inserted": 1},
    },
    readouts=timeline_readouts,
    why_still=_why_timeline_still,
)


def _draw_request(axes: Axes, span: Span, request: TimedRequest, parts: Parts, each_output: bool) -> None:
    """The request's parts as one bar on this stretch of time, with the first and the last output and the deadline."""
    axes.set(xlim=span, ylim=(0, 1))
    ticks_below(axes, {tick: f"{tick:g} s" for tick in _ticks(span)}, bbox=_OVER_LINES)
    ticks_left(axes, {})
    for role, stretches in parts.items():
        seen = [(start, stop - start) for start, stop in stretches if stop > span[0] and start < span[1]]
        if seen:
            axes.broken_barh(seen, (0.08, 0.84), **style.look(role))
    outputs = request.output_times_s
    if each_output:
        in_sight = [time for time in outputs if span[0] <= time <= span[1]]
        axes.vlines(in_sight, 0.08, 0.92, color=style.INK, linewidth=style.THIN_PT)
    axes.axvline(request.deadline_s, color=style.LIMIT, linestyle=(0, (4, 2)), clip_on=True)
    for time, marker in ((outputs[0], "o"), (outputs[-1], "X" if request.slack_s < 0 else "o")):
        axes.plot([time], [0.5], marker, markersize=6, markerfacecolor=style.PAPER, markeredgecolor=style.INK)


def _parts(request: TimedRequest, interval: float, inside: bool) -> Parts:
    """Start and stop of each stretch of time, by what the request does or waits for in it.

    A foreign prefill inside a step shares the whole step with the decode; one in a pass of its own follows it.
    """
    parts: Parts = {"queue": [(0, request.queue_s)], "prefill": [(request.queue_s, request.ttft_s)]}
    parts |= {"decode": [], "foreign": []}
    outputs = request.output_times_s
    begin = outputs[0]
    for place in request.delayed:
        foreign = outputs[place] + (0 if inside else interval)
        parts["decode"].append((begin, foreign))
        parts["foreign"].append((foreign, begin := outputs[place + 1]))
    parts["decode"].append((begin, outputs[-1]))
    return parts


def _mark_end(page: Figure, right_end: float, request: TimedRequest, text: Mapping[str, str]) -> None:
    """Names of the last output and of the deadline, above their places on the whole bar."""
    last, due = request.total_s, request.deadline_s
    names = text["last_output"].format(time=f"{last:.2f} s"), text["deadline"].format(time=f"{due:g} s")
    for time, bottom, name, colour in zip((last, due), (170, 186), names, (style.INK, style.LIMIT), strict=True):
        side = "right" if time > right_end / 2 else "left"
        write(page, 14 + 392 * time / right_end, bottom, name, ha=side, color=colour)


def _mark_slack(axes: Axes, span: Span, request: TimedRequest) -> None:
    """An arrow between the last output and the deadline, where both are in sight and far enough apart to show one."""
    ends = sorted((request.total_s, request.deadline_s))
    if span[0] < ends[0] and ends[1] < span[1] and ends[1] - ends[0] > 0.03:
        arrow = {"arrowstyle": "<->", "color": style.LIMIT, "shrinkA": 4, "shrinkB": 1, "linewidth": style.LINE_PT}
        axes.annotate("", (request.deadline_s, 0.5), (request.total_s, 0.5), arrowprops=arrow)


def _join(page: Figure, whole: Axes, part: Axes, span: Span) -> None:
    """Faint lines from a stretch of the whole bar to the box that magnifies it."""
    to_page = page.transFigure.inverted()
    for time, side in zip(span, (0, 1), strict=True):
        upper = to_page.transform(whole.transData.transform((time, 0)))
        lower = to_page.transform(part.transAxes.transform((side, 1)))
        page.add_artist(Line2D(*zip(upper, lower, strict=True), color=style.FAINT, linewidth=style.THIN_PT, zorder=-1))


def _draw_key(page: Figure, request: TimedRequest, interval: float, text: Mapping[str, str], inside: bool) -> None:
    values: dict[str, dict[str, Any]] = {
        "queue": {"time": _s(request.queue_s)},
        "prefill": {"time": _s(request.prefill_s)},
        "decode": {"count": len(request.intervals_s), "time": _ms(interval)},
        "foreign": {"count": len(request.delayed), "time": _ms(request.longest_interval_s - interval)},
    }
    for place, (role, value) in enumerate(values.items()):
        left, bottom = 14 + 212 * (place % 2), 26 - 18 * (place // 2)
        key = "foreign_inside" if role == "foreign" and inside else role
        if role != "foreign" or request.delayed:
            swatch(page, left, bottom, text[key].format(**value), role)


def _whole_span(request: TimedRequest) -> Span:
    """From arrival to past the end; its length jumps in a few steps, so that small moves can be compared by eye."""
    return 0, _round_up(1.02 * max(request.total_s, request.deadline_s), (1.25, 2.5, 5, 7.5, 10, 15, 20, 30, 40))


def _first_span(request: TimedRequest) -> Span:
    return 0, min(_round_up(1.3 * request.ttft_s, (0.4, 0.8, 1.2)), _whole_span(request)[1])


def _last_span(request: TimedRequest) -> Span:
    """0.4 s around the last output, and around the deadline too where both fit."""
    near = abs(request.slack_s) < 0.3
    middle = (request.total_s + request.deadline_s) / 2 if near else request.total_s
    end = min(max(middle + 0.2, 0.4), _whole_span(request)[1])
    return end - 0.4, end


def _round_up(length: float, steps: tuple[float, ...]) -> float:
    """The smallest step that is long enough; beyond the last step its smallest sufficient multiple."""
    return next((step for step in steps if step >= length), steps[-1] * math.ceil(length / steps[-1]))


def _ticks(span: Span) -> list[float]:
    """Round times on a stretch, none so near its ends that its label would leave the box."""
    margin = 0.08 * (span[1] - span[0])
    first_allowed = span[0] if span[0] == 0 else span[0] + margin
    ticks = MaxNLocator(8 if span[1] - span[0] > 2 else 5, steps=[1, 2, 5, 10]).tick_values(*span)
    return [tick for tick in ticks if first_allowed <= tick <= span[1] - margin]


def _s(time: float) -> str:
    """A time with three significant digits, in seconds."""
    return f"{time:.3g} s"


def _ms(time: float) -> str:
    """A time with three significant digits, in milliseconds."""
    return f"{time * 1e3:.3g} ms"
