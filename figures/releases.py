"""Figures of blocks that are given back: what must be over before another request may take them."""

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Annotated, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path

from figures import style
from figures.exploration import Choice, Exploration, Question, Readout, Slider
from figures.lines import FINER, round_above, ticks_below, ticks_left
from figures.page import box, new_page, write
from figures.schedules import time_ticks
from figures.words import words
from lib.block_reuse import (
    LEAST_SHARERS,
    MOST_IN_FLIGHT,
    MOST_SHARERS,
    PREFIX_BLOCKS,
    SHARED_BLOCK,
    VALUE_SIZE,
    Ending,
    Kind,
    Moment,
    Rule,
    story,
)
from lib.blocks import State
from lib.cancellation import Cancellation, cancel, recorded
from lib.checks import whole
from lib.clocks import Clock
from lib.step_time import NS
from lib.units import shown

LEFT_PT, WIDTH_PT = 92, 314
BOOK_STEP_S, BOOK_NEEDS = 0.03, 100
# Heights on the page, of the first figure and of the second.
COUNTS_PT, EVENTS_PT, EVENTS_HEIGHT_PT, POOL_PT, POOL_HEIGHT_PT = 282, 120, 138, 76, 22
CANCEL_PT, RECORDED_PT, BORDER_PT = 284, 254, 230
STEPS_PT, WAITING_PT, LANE_PT, AXIS_PT, BLOCKS_PT = 196, 160, 12, 70, 62
MOST_EVENTS = len(story(MOST_SHARERS, MOST_IN_FLIGHT, Rule.AFTER_STEP, Ending.FIRST_ADMITTED))
# What attention may differ by when only the order of its sums does, with much to spare.
ROUNDING = 1e-9
_PLAIN: dict[str, Any] = {"facecolor": style.PAPER, "edgecolor": style.INK, "linewidth": style.THIN_PT}
# Of blocks by their state, and of what else has a bar or a frame.
LOOKS: Mapping[str, Mapping[str, Any]] = {
    State.HELD.name: style.look("decode"),
    State.WAITING.name: style.look("foreign"),
    State.IDLE.name: style.look("queue"),
    State.EMPTY.name: _PLAIN,
    "holds": _PLAIN | {"facecolor": style.REQUEST["A"]},
    "in flight": style.look("prefill"),
    "wrong": _PLAIN | {"edgecolor": style.LIMIT, "hatch": "xxxx"},
    "looked at": {"facecolor": "none", "edgecolor": style.LIMIT, "linewidth": style.LINE_PT, "zorder": 3},
}
_OVER_HATCH = {"facecolor": style.PAPER, "edgecolor": "none", "pad": 0.5}
Box = tuple[float, float, float, float]  # left, bottom, width and height


def _told(in_flight: int, rule: Rule) -> tuple[Moment, ...]:
    """The story of the book's two sharers."""
    return story(2, in_flight, rule, Ending.FIRST_ADMITTED)


def _event_of(kind: Kind, moments: Sequence[Moment]) -> int:
    """The number of the last event of a kind."""
    return max(place for place, moment in enumerate(moments, start=1) if moment.event.kind is kind)


# After it the count is 0, and a step is still in flight.
BOOK_EVENT = _event_of(Kind.ENDED, _told(1, Rule.AFTER_STEP))


def reference_counts(
    *,
    event: Annotated[int, Slider("event", 1, MOST_EVENTS, 1)] = BOOK_EVENT,
    sharers: Annotated[int, Slider("sharers", LEAST_SHARERS, MOST_SHARERS, 1)] = 2,
    in_flight: Annotated[int, Slider("steps in flight", 0, MOST_IN_FLIGHT, 1)] = 1,
    rule: Annotated[Rule, Choice("give back", tuple(Rule))] = Rule.AFTER_STEP,
    ending: Annotated[Ending, Choice("who ends first", tuple(Ending))] = Ending.FIRST_ADMITTED,
    language: str = "en",
) -> Figure:
    """References to two shared blocks, event by event, and the whole pool after one of the events.

    Raises InputError for values that make no sense. Source: figure 8-14.
    """
    moments = moments_of(event, sharers, in_flight, rule, ending)
    place = min(event, len(moments))
    now, text = moments[place - 1], words(language, "reference-counts")
    with style.in_book_style():
        page = new_page(COUNTS_PT)
        axes = box(page, 0, 0, style.WIDTH_PT, COUNTS_PT)
        axes.set(xlim=(0, style.WIDTH_PT), ylim=(0, COUNTS_PT))
        axes.set_axis_off()
        told = [
            text[moment.event.kind].format(who=moment.event.who, requests=", ".join(moment.holders[SHARED_BLOCK]))
            for moment in moments
        ]
        looked_at = text["event"].format(place=place, count=len(moments), told=told[place - 1])
        axes.text(14, 266, looked_at, color=style.LIMIT)
        _draw_events(axes, moments, place, text)
        _draw_pool(axes, now, text)
        error = text["no_step"] if now.error is None else text["error"].format(error=f"{now.error:.2f}")
        axes.text(14, 44, error, color=style.LIMIT if _is_wrong(now) else style.INK)
        for state, (left, bottom) in zip(State, ((14, 26), (164, 26), (14, 8), (164, 8)), strict=True):
            _swatch(page, left, bottom, text[state.name.lower()], LOOKS[state.name])
        if any(map(_is_wrong, moments)):
            _swatch(page, 268, 8, text["wrong"], LOOKS["wrong"])
    return page


def moments_of(event: int, sharers: int, in_flight: int, rule: Rule, ending: Ending) -> tuple[Moment, ...]:
    """The story that the figure's parameters describe; `event` is the one looked at, by default beyond none."""
    whole("event", event, at_least=1, at_most=MOST_EVENTS)
    return story(sharers, in_flight, rule, ending)


def _is_wrong(moment: Moment) -> bool:
    return (moment.error or 0) > ROUNDING


def counts_readouts(**settings: Any) -> tuple[Readout, ...]:
    """What stands after the event looked at, at the settings of `reference_counts`."""
    moments = moments_of(**settings)
    seen = moments[: settings["event"]]
    now = seen[-1]
    state = now.states[SHARED_BLOCK]
    counts = (count for count, _ in groupby(moment.references[SHARED_BLOCK] for moment in seen))
    return (
        Readout("event", f"{len(seen)} of {len(moments)}"),
        Readout("references to a shared block, up to here", "-".join(map(str, counts))),
        Readout("its state", state.name.lower()),
        Readout("free blocks", now.free),
        Readout("blocks that wait for a step", now.states.count(State.WAITING)),
        Readout(
            f"largest error of attention in a step (values are about {VALUE_SIZE:.0f} in size)",
            "none in flight so far" if now.error is None else now.error,
            digits=2,
        ),
    )


def _ask_for_the_blocks() -> Question:
    right, wrong = _told(1, Rule.AFTER_STEP), _told(1, Rule.AT_ONCE)
    taken = _event_of(Kind.TAKES, wrong)
    error, after_step = wrong[taken - 1].error, right[-1].error
    assert error is not None and after_step is not None
    off = f"off by {error:.1f}"
    ended = right[BOOK_EVENT - 1]
    (step,), count = ended.steps, ended.references[SHARED_BLOCK]
    return Question(
        text=f"Event {BOOK_EVENT}: the scheduler knows that step {step} gives the last output of B, so B lets go of "
        f"its blocks, as A has done before, and the count is {count}. Step {step} still runs. A newcomer, N, wants the "
        "blocks; its KV comes from the host, by a copy that does not queue behind the step. Suppose the engine gives "
        f"them to N at once: what does the attention of step {step} become, where values are about {VALUE_SIZE:.0f} in "
        "size?",
        choices=(f"the same: the count is {count}", "off by rounding only", off),
        answer=off if error > ROUNDING else f"the same: the count is {count}",
        reveals={"rule": Rule.AT_ONCE, "event": taken},
        because=f"N may not have them yet. Step {step} goes by the block table of B and reads the KV of N there, so "
        f"the user of B gets a wrong last output. If N waits for the step, the error is {after_step:.1f}. Free means "
        "two things: no table refers to a block, and no submitted step touches it.",
    )


def _why_counts_still(moved: str, settings: Mapping[str, Any]) -> str:
    if moved == "event":
        return f"The story is over after event {len(moments_of(**settings))}."
    if moved == "rule" and not settings["in_flight"]:
        return "No step is in flight when they end, so nothing can be given back too early."
    return ""


COUNTS_EXPLORATION = Exploration(
    question=_ask_for_the_blocks,
    in_view=("event", "sharers", "in_flight", "rule"),
    settings={
        "give back at once": {"rule": Rule.AT_ONCE, "event": _event_of(Kind.TAKES, _told(1, Rule.AT_ONCE))},
        "at once, and no step in flight": {
            "rule": Rule.AT_ONCE,
            "in_flight": 0,
            "event": _event_of(Kind.TAKES, _told(0, Rule.AT_ONCE)),
        },
        "one of two steps complete": {
            "in_flight": 2,
            "event": _event_of(Kind.COMPLETE, _told(2, Rule.AFTER_STEP)) - 1,
        },
    },
    readouts=counts_readouts,
    why_still=_why_counts_still,
)


def cancel_and_release(
    *,
    phase_percent: Annotated[int, Slider("phase of step, %", 0, 100, 5)] = 0,
    step_time: Annotated[float, Slider("step", 10.0, 40.0, 1.0, "ms")] = BOOK_STEP_S,
    in_flight: Annotated[int, Slider("steps in flight", 1, 2, 1)] = 1,
    needs_blocks: Annotated[int, Slider("waits for blocks", 10, recorded().free_after, 1)] = BOOK_NEEDS,
    language: str = "en",
) -> Figure:
    """When a cancelled request's blocks are free: as recorded, and below by a model of steps.

    Times in seconds. Raises InputError for values that make no sense. Source: figure 8-16.
    """
    run, seen = cancel(phase_percent, step_time, in_flight, needs_blocks), recorded()
    text = words(language, "cancel-and-release")
    end = 1e3 * round_above(1.1 * max(run.freed_s, seen.freed_s), FINER)
    with style.in_book_style():
        page = new_page(CANCEL_PT)
        axes = box(page, LEFT_PT, AXIS_PT, WIDTH_PT, CANCEL_PT - AXIS_PT)
        axes.set(xlim=(-0.1 * end, end), ylim=(AXIS_PT, CANCEL_PT))
        ticks_below(axes, time_ticks(end))
        ticks_left(axes, {})
        axes.vlines([0], AXIS_PT, CANCEL_PT, color=style.INK, linewidth=style.THIN_PT, zorder=0)
        dashed = (0, (4, 2))
        axes.plot([1e3 * run.freed_s] * 2, [AXIS_PT, STEPS_PT + LANE_PT + 6], color=style.LIMIT, linestyle=dashed)
        _draw_recorded(axes, text)
        _draw_border(page, run, text)
        _draw_steps(axes, run, text)
        _draw_waiting(axes, run, needs_blocks, text)
        _draw_blocks(axes, run, needs_blocks, text)
        _swatch(page, 14, 26, text["with"], LOOKS["in flight"])
        _swatch(page, 250, 26, text["without"], LOOKS["holds"])
        for left, key, state in ((14, "free", State.IDLE), (106, "held", State.HELD), (250, "waiting", State.WAITING)):
            _swatch(page, left, 8, text[key], LOOKS[state.name])
    return page


def cancel_readouts(**settings: Any) -> tuple[Readout, ...]:
    """What was recorded, and what the model says at the settings of `cancel_and_release`."""
    run, seen = cancel(**settings), recorded()
    return (
        Readout("the call returns (recorded)", seen.returned_s, "ms", 2, (Clock.CLIENT,)),
        Readout(
            f"{seen.request_blocks} blocks free (recorded, with an observer)", seen.freed_s, "ms", 2, (Clock.CLIENT,)
        ),
        Readout("the same by the model", run.freed_s, "ms", 2, (Clock.ASSUMED,)),
        Readout("free blocks before and after", f"{run.levels[0].free} → {run.free_after}"),
        Readout("the other request gets its blocks", run.admitted_s, "ms", 2, (Clock.ASSUMED,))
        if run.admitted_s
        else Readout("the other request gets its blocks", "at once"),
        Readout("free blocks at the end", run.levels[-1].free),
    )


def _ask_when_it_starts() -> Question:
    revealed = {"phase_percent": 50, "in_flight": 2}
    run, seen = cancel(50, BOOK_STEP_S, 2, BOOK_NEEDS), recorded()
    this_step = run.steps[0].end_ns / 1e6
    answer = shown(run.admitted_s, "ms")
    return Question(
        text=f"{seen.free_before} blocks are free, and a request for {BOOK_NEEDS} waits. r3, the request that is "
        f"cancelled, has {seen.request_blocks}. The call comes half-way through a step of {shown(BOOK_STEP_S, 'ms')}, "
        "behind which another one is submitted already, and r3 is in both. When does the waiting request get its "
        "blocks?",
        choices=(
            f"{shown(seen.returned_s, 'ms', 2)}, when the call returns",
            f"{this_step:g} ms, when this step is complete",
            f"{answer}, when the next one is, too",
        ),
        answer=f"{answer}, when the next one is, too",
        reveals=revealed,
        because="The call only says that r3 is to end. Both submitted steps still go by its block table, and until the "
        f"second is complete, {max(level.waiting for level in run.levels)} blocks are nobody's and yet not free. "
        f"The recorded run had one step in flight: {shown(seen.returned_s, 'ms', 2)} and {shown(seen.freed_s, 'ms')}.",
    )


CANCEL_EXPLORATION = Exploration(
    question=_ask_when_it_starts,
    in_view=("phase_percent", "step_time", "in_flight", "needs_blocks"),
    settings={
        "two steps in flight": {"in_flight": 2},
        "just before the step ends": {"phase_percent": 95},
        "a request for 30 blocks": {"needs_blocks": 30},
    },
    readouts=cancel_readouts,
    why_still=lambda moved, settings: "",
)


def _draw_events(axes: Axes, moments: Sequence[Moment], place: int, text: Mapping[str, str]) -> None:
    """A column for each event; a lane for each request and each step, the lowest for the references."""
    lanes = _lanes(moments, text)
    height = EVENTS_HEIGHT_PT / (len(lanes) + 1)
    edges = [LEFT_PT + WIDTH_PT * column / len(moments) for column in range(len(moments) + 1)]
    width, boxes = edges[1] - edges[0], dict[str, list[Box]]()
    for lane, (name, looks) in enumerate(lanes.items(), start=1):
        bottom = EVENTS_PT + EVENTS_HEIGHT_PT - lane * height
        _name(axes, bottom + height / 2, name)
        column = 0
        for look, run in groupby(looks):
            first, column = column, column + len(list(run))
            if look:
                bar = edges[first], bottom + 0.12 * height, edges[column] - edges[first], 0.76 * height
                boxes.setdefault(look, []).append(bar)
    _name(axes, EVENTS_PT + height / 2, text["references"])
    for number, (left, moment) in enumerate(zip(edges, moments, strict=False), start=1):
        cell, look = (left, EVENTS_PT + 0.12 * height, width, 0.76 * height), moment.states[SHARED_BLOCK].name
        boxes.setdefault(look, []).append(cell)
        _write_on(axes, cell, look, str(moment.references[SHARED_BLOCK]))
        axes.text(left + width / 2, EVENTS_PT - 4, str(number), ha="center", va="top")
    axes.vlines(edges, EVENTS_PT, EVENTS_PT + EVENTS_HEIGHT_PT, color=style.FAINT, linewidth=style.THIN_PT, zorder=0)
    _draw_boxes(axes, boxes | {"looked at": [(edges[place - 1], EVENTS_PT, width, EVENTS_HEIGHT_PT)]})


def _lanes(moments: Sequence[Moment], text: Mapping[str, str]) -> dict[str, list[str]]:
    """The lanes of requests and steps by name, from the top: the look of each event, empty where there is nothing."""
    lanes = {}
    for name in dict.fromkeys(name for moment in moments for name in moment.holders[SHARED_BLOCK]):
        lanes[name] = ["holds" if name in moment.holders[SHARED_BLOCK] else "" for moment in moments]
    for step in dict.fromkeys(step for moment in moments for step in moment.steps):
        lanes[text["step"].format(number=step)] = [
            ("wrong" if _is_wrong(moment) else "in flight") if step in moment.steps else "" for moment in moments
        ]
    return lanes


def _draw_pool(axes: Axes, now: Moment, text: Mapping[str, str]) -> None:
    """Each block of the pool in the look of its state, with those who refer to it."""
    width, boxes = WIDTH_PT / len(now.states), dict[str, list[Box]]()
    _name(axes, POOL_PT + POOL_HEIGHT_PT / 2, text["pool"])
    for block, (state, holders) in enumerate(zip(now.states, now.holders, strict=True)):
        place = LEFT_PT + block * width + 2, POOL_PT, width - 4, POOL_HEIGHT_PT
        boxes.setdefault(state.name, []).append(place)
        _write_on(axes, place, state.name, " ".join(holders))
    _draw_boxes(axes, boxes)
    axes.text(LEFT_PT + PREFIX_BLOCKS * width / 2, POOL_PT - 3, text["shared"], ha="center", va="top")
    axes.text(LEFT_PT + WIDTH_PT, POOL_PT - 3, text["free"].format(count=now.free), ha="right", va="top")


def _write_on(axes: Axes, place: Box, look: str, text: str) -> None:
    left, bottom, width, height = place
    if text:
        ground = _OVER_HATCH if LOOKS[look].get("hatch") else None
        axes.text(left + width / 2, bottom + height / 2, text, ha="center", va="center_baseline", bbox=ground)


def _draw_boxes(axes: Axes, boxes: Mapping[str, Sequence[Box]]) -> None:
    """Boxes by their look; all of one look are one artist, as many would take several times as long."""
    for look, places in boxes.items():
        corners = [
            [(left, bottom), (left + width, bottom), (left + width, bottom + height), (left, bottom + height)]
            for left, bottom, width, height in places
        ]
        axes.add_patch(PathPatch(Path.make_compound_path_from_polys(np.array(corners)), **LOOKS[look]))


def _name(axes: Axes, height: float, name: str) -> None:
    axes.text(LEFT_PT - 8, height, name, ha="right", va="center_baseline")


def _swatch(page: Figure, left: float, bottom: float, text: str, look: Mapping[str, Any]) -> None:
    width, height = page.get_size_inches() * 72
    patch = (left / width, bottom / height), 14 / width, 9 / height
    page.add_artist(Rectangle(*patch, transform=page.transFigure, **look))
    write(page, left + 20, bottom, text)


def _draw_recorded(axes: Axes, text: Mapping[str, str]) -> None:
    """The three recorded events on a line of their own."""
    seen = recorded()
    times = [0, 1e3 * seen.returned_s, 1e3 * seen.freed_s]
    axes.plot(times, [RECORDED_PT] * 3, "-o", color=style.INK, markersize=5, markerfacecolor=style.PAPER)
    _name_lane(axes, RECORDED_PT, text["recorded"])
    returned = text["returned"].format(time=shown(seen.returned_s, "ms", 2))
    freed = text["freed"].format(blocks=seen.request_blocks, time=shown(seen.freed_s, "ms", 2))
    _label(axes, times[0], RECORDED_PT + 6, text["call"], "right")
    _label(axes, times[1], RECORDED_PT + 6, returned, "left")
    _label(axes, times[2], RECORDED_PT - 18, freed, _roomier_side(axes, times[2]))


def _draw_border(page: Figure, run: Cancellation, text: Mapping[str, str]) -> None:
    """A line between what was recorded and the model, its name, and why the request is in a further step, if it is."""
    width, height = page.get_size_inches() * 72
    ends = [14 / width, (LEFT_PT + WIDTH_PT) / width]
    page.add_artist(Line2D(ends, [BORDER_PT / height] * 2, color=style.INK, linewidth=style.THIN_PT))
    write(page, 14, BORDER_PT - 13, text["model"], bbox=_OVER_HATCH)
    if run.steps[0].end_ns < run.returned_s * NS:
        write(page, LEFT_PT + WIDTH_PT, BORDER_PT - 13, text["one_more"], ha="right", color=style.LIMIT)


def _draw_steps(axes: Axes, run: Cancellation, text: Mapping[str, str]) -> None:
    """The steps of the model on the device, by whether the cancelled request is in them, up to the end of the axis."""
    _name_lane(axes, STEPS_PT + LANE_PT / 2, text["steps"])
    spans: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    for step in run.steps:
        spans[step.has_cancelled].append((step.start_ns / 1e6, (step.end_ns - step.start_ns) / 1e6))
    start, length = spans[False][-1]
    more = math.ceil((axes.get_xlim()[1] - start) / length)
    spans[False] += [(start + place * length, length) for place in range(1, more)]
    for has_cancelled, look in ((True, LOOKS["in flight"]), (False, LOOKS["holds"])):
        axes.broken_barh(spans[has_cancelled], (STEPS_PT, LANE_PT), **look)


def _draw_waiting(axes: Axes, run: Cancellation, needs_blocks: int, text: Mapping[str, str]) -> None:
    """The other request: a dotted line while it waits for its blocks, then a bar."""
    admitted, (left, end) = 1e3 * run.admitted_s, axes.get_xlim()
    _name_lane(axes, WAITING_PT + LANE_PT / 2, text["waits"])
    if admitted:
        axes.plot([left, admitted], [WAITING_PT + LANE_PT / 2] * 2, color=style.INK, linestyle=(0, (1, 1)))
    axes.broken_barh([(admitted, end - admitted)], (WAITING_PT, LANE_PT), **LOOKS[State.HELD.name])
    told = text["gets" if admitted else "gets_at_once"]
    gets = told.format(blocks=needs_blocks, time=shown(run.admitted_s, "ms", 1))
    _label(
        axes,
        admitted,
        WAITING_PT + LANE_PT + 5,
        gets,
        _roomier_side(axes, admitted),
        color=style.LIMIT,
        bbox=_OVER_HATCH,
    )


def _draw_blocks(axes: Axes, run: Cancellation, needs_blocks: int, text: Mapping[str, str]) -> None:
    """Free blocks over time; on top of them those of the cancelled request, held and then still touched."""
    seen, (left, end) = recorded(), axes.get_xlim()
    each = BLOCKS_PT / seen.free_after
    for count in (0, seen.free_before, seen.free_after):
        _name_lane(axes, AXIS_PT + count * each, str(count))
    axes.text(-0.11, AXIS_PT + BLOCKS_PT / 2, text["blocks"], transform=axes.get_yaxis_transform(), ha="right")
    edges = [left, *(level.start_ns / 1e6 for level in run.levels[1:]), end]
    below = np.full(len(run.levels), float(AXIS_PT))
    for state, counts in (
        (State.IDLE, [level.free for level in run.levels]),
        (State.WAITING, [level.waiting for level in run.levels]),
        (State.HELD, [level.held for level in run.levels]),
    ):
        above = below + each * np.array(counts)
        axes.stairs(above, edges, baseline=below, fill=True, **LOOKS[state.name])
        below = above
    height = AXIS_PT + each * needs_blocks
    axes.plot([left, end], [height] * 2, color=style.LIMIT)
    needs = text["needs"].format(blocks=needs_blocks)
    axes.text(end, height + 1, needs, ha="right", va="bottom", color=style.LIMIT, bbox=_OVER_HATCH)


def _label(axes: Axes, time: float, height: float, text: str, side: str, **how: Any) -> None:
    """A label that begins or ends right beside a time."""
    start, end = axes.get_xlim()
    shift = 4 * (end - start) / WIDTH_PT * (1 if side == "left" else -1)
    axes.text(time + shift, height, text, ha=side, **how)


def _name_lane(axes: Axes, height: float, name: str) -> None:
    axes.text(-0.02, height, name, transform=axes.get_yaxis_transform(), ha="right", va="center_baseline")


def _roomier_side(axes: Axes, time: float) -> str:
    """On which side of a time there is more room for its label."""
    return "right" if time > axes.get_xlim()[1] / 2 else "left"
