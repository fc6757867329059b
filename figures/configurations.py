"""The figure of configurations: what each needs of memory and of time, and the limits that it has to keep."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Annotated, Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from figures import style
from figures.exploration import Choice, Exploration, Question, Readout, Slider
from figures.lines import round_ticks, ticks_below, ticks_left
from figures.page import box, new_page, write
from figures.words import words
from lib.checks import one_of
from lib.clocks import Clock
from lib.efficiency import Condition, measured
from lib.flip_distance import Case, Flip, Input, flip
from lib.serving import (
    CONFIGURATIONS,
    DFLASH,
    LESS_MEMORY,
    LIMITS,
    SHORT_OUTPUTS,
    WORKLOAD,
    Judged,
    Limit,
    Limits,
    Workload,
)
from lib.units import GIB, UNITS, shown

PAGE_PT, LEFT_PT, BOTTOM_PT, WIDTH_PT, HEIGHT_PT = 318, 40, 92, 338, 192
KEY_PT, KEY_ROWS_PT = (14, 222), (36, 14)
# The ends of both axes are whole numbers of these.
GIB_STEP, SECONDS_STEP = 4, 4
MARK_PT, RING_PT = 16, 21
SHAPE: dict[Limit | None, str] = {Limit.MEMORY: "s", Limit.DEADLINE: "o", None: "o"}
# The most that a round could lose: by how much one of a single request is longer than reading takes.
HOST_S = measured(Condition.OWN, 1).excess_s
# After section 8.6.3: with less memory fewer requests fit beside the drafts.
FEWER_REQUESTS = 6
_CLOCKS = (Clock.ENGINE, Clock.FLOP_RULE)
_INSIDE: dict[str, Any] = {"facecolor": "#dff1e3", "edgecolor": "none"}


class Prefix(StrEnum):
    """Whether the common prefix is in the cache when the requests come."""

    CACHED = "cached before"
    COLD = "not cached before"


def configurations(
    *,
    memory_bytes: Annotated[int, Slider("memory", 4, 20, 1, "GiB")] = LIMITS.memory_bytes,
    deadline_s: Annotated[float, Slider("deadline", 3.0, 16.0, 0.1, "s")] = LIMITS.deadline_s,
    output_tokens: Annotated[int, Slider("outputs", 16, 512, 8)] = WORKLOAD.output_tokens,
    outputs_per_round: Annotated[float, Slider("D, outputs a round", 1.0, 8.0, 0.05)] = DFLASH.outputs_per_round,
    requests: Annotated[int, Slider("requests", 4, 35, 1)] = WORKLOAD.requests,
    host_removed_s: Annotated[float, Slider("host time off", 0.0, 17.6, 0.1, "ms")] = WORKLOAD.host_removed_s,
    prefix: Annotated[Prefix, Choice("prefix", tuple(Prefix))] = Prefix.CACHED,
    language: str = "en",
) -> Figure:
    """Memory against time of each configuration, both limits, and the region that keeps them.

    Raises InputError for values that make no sense. Source: section 8.6.3, figure 8-35.
    """
    case = case_of(memory_bytes, deadline_s, output_tokens, outputs_per_round, requests, host_removed_s, prefix)
    text, choice, limits = words(language, "configurations"), case.choice, case.limits
    gib, seconds = limits.memory_bytes / GIB, limits.deadline_s
    with style.in_book_style():
        page = new_page(PAGE_PT)
        write(page, 14, PAGE_PT - 14, text["time"])
        axes = box(page, LEFT_PT, BOTTOM_PT, WIDTH_PT, HEIGHT_PT)
        _scale(axes, [gib, *(each.needs.memory_bytes / GIB for each in choice.judged)],
               [seconds, *(each.needs.total_s for each in choice.judged)], text["memory"])  # fmt: skip
        axes.add_patch(Rectangle((0, 0), gib, seconds, **_INSIDE))
        look: dict[str, Any] = {"color": style.LIMIT, "linestyle": (0, (5, 2)), "linewidth": style.LINE_PT}
        axes.axvline(gib, **look)
        axes.axhline(seconds, **look)
        axes.text(gib, 1.015, f"{gib:g} GiB", transform=axes.get_xaxis_transform(), ha="center", va="bottom")
        axes.text(1.012, seconds, f"{seconds:.3g} s", transform=axes.get_yaxis_transform(), va="center_baseline")
        for each in choice.judged:
            _mark(axes, each, each is choice.chosen)
        _write_key(page, choice.judged, choice.chosen, text)
    return page


def case_of(
    memory_bytes: int,
    deadline_s: float,
    output_tokens: int,
    outputs_per_round: float,
    requests: int,
    host_removed_s: float,
    prefix: str,
) -> Case:
    """The configurations, workload and limits that the figure's parameters describe."""
    workload = Workload(
        requests=requests,
        output_tokens=output_tokens,
        is_cached=one_of("prefix", prefix, Prefix) is Prefix.CACHED,
        host_removed_s=host_removed_s,
    )
    case = Case(CONFIGURATIONS, workload, Limits(memory_bytes, deadline_s))
    return case.at(Input.OUTPUTS_PER_ROUND, outputs_per_round)


def _scale(axes: Axes, gib: Sequence[float], seconds: Sequence[float], name: str) -> None:
    """Axes from 0 to round ends beyond all points and limits."""
    right, top = (
        step * math.ceil(1.04 * max(values) / step) for values, step in ((gib, GIB_STEP), (seconds, SECONDS_STEP))
    )
    axes.set(xlim=(0, right), ylim=(0, top))
    ticks_below(axes, {tick: f"{tick:g}" for tick in round_ticks(right)}, name)
    ticks_left(axes, {tick: f"{tick:g}" for tick in round_ticks(top)})


def _mark(axes: Axes, judged: Judged, is_chosen: bool) -> None:
    """A point with its letter: full where both limits are kept, a square where it does not fit, ringed if chosen."""
    place = judged.needs.memory_bytes / GIB, judged.needs.total_s
    look: dict[str, Any] = {"marker": SHAPE[judged.broken], "clip_on": False, "markeredgecolor": style.INK}
    face = style.PAPER if judged.broken else style.INK
    if is_chosen:
        axes.plot(*place, markersize=RING_PT, markerfacecolor=style.PAPER, zorder=3, **look)
    axes.plot(*place, markersize=MARK_PT, markerfacecolor=face, zorder=4, **look)
    colour = style.INK if judged.broken else style.PAPER
    axes.text(*place, judged.name, color=colour, ha="center", va="center_baseline", zorder=5)


def _write_key(page: Figure, judged: Sequence[Judged], chosen: Judged | None, text: Mapping[str, str]) -> None:
    """What each configuration is, and what became of it."""
    for place, each in enumerate(judged):
        left, bottom = KEY_PT[place % 2], KEY_ROWS_PT[place // 2]
        write(page, left, bottom, f"{each.name}  {text[each.name]}{text['colon']}{_fate(each, chosen, text)}")


def _fate(judged: Judged, chosen: Judged | None, text: Mapping[str, str]) -> str:
    late = judged.needs.total_s - judged.limits.deadline_s
    match judged.broken:
        case Limit.MEMORY:
            return text["too_large"]
        case Limit.DEADLINE:
            return text["late"].format(seconds=f"{late:.2f}")
        case _:
            return text["chosen" if judged is chosen else "kept"]


def configurations_readouts(**settings: Any) -> tuple[Readout, ...]:
    """What is chosen, what each breaks first, and how far each input is from another choice."""
    case = case_of(**settings)
    choice = case.choice
    chosen, broken = choice.chosen, {each.name: BREAKS[each.broken] for each in choice.judged}
    turns = [
        Readout(label, _told(flip(moved, case), unit, digits), unit, digits, _CLOCKS if unit in ("s", "ms") else ())
        for moved, (label, unit, digits) in FLIPS.items()
    ]
    return (
        Readout("chosen", choice.name or "none"),
        Readout("its memory", chosen.needs.memory_bytes if chosen else "–", "GiB", 2),
        Readout("its time", chosen.needs.total_s if chosen else "–", "s", 2, _CLOCKS),
        Readout("GPU time a result", (chosen and chosen.gpu_s_per_result) or "–", "s", 3, _CLOCKS),
        *(Readout(f"{one} and {other} break", f"{broken[one]} / {broken[other]}") for one, other in ("AB", "CD")),
        *turns,
    )


# The first limit broken, in a word: longer ones would wrap, and the page would jump.
BREAKS: dict[Limit | None, str] = {Limit.MEMORY: "memory", Limit.DEADLINE: "time", None: "none"}
# How each input is called where the nearest turn of the choice is told, and the unit and digits in which it is.
FLIPS = {
    Input.MEMORY: ("memory turns it, GiB", "GiB", 2),
    Input.DEADLINE: ("deadline turns it, s", "s", 2),
    Input.OUTPUTS: ("outputs turn it", "", 0),
    Input.OUTPUTS_PER_ROUND: ("outputs a round turn it", "", 2),
    Input.REQUESTS: ("requests turn it", "", 0),
    Input.HOST: ("host time off turns it, ms", "ms", 1),
}


def _told(found: Flip, unit: str, digits: int) -> str:
    """Where a choice turns at the nearest, and to what: down or up from the last value with which it is as it is."""
    if not found.nearest:
        return "never"
    side = "↓" if found.nearest is found.below else "↑"
    return f"{side} {UNITS[unit].of(found.nearest.last):.{digits}f}: {found.nearest.then or 'none'}"


def _at_book(**changed: Any) -> Case:
    """The case of the book's figure with these changes of its limits and workload."""
    limits = {name: changed.pop(name) for name in ("memory_bytes", "deadline_s") if name in changed}
    return Case(workload=replace(WORKLOAD, **changed), limits=replace(LIMITS, **limits))


def _ask_who_is_left() -> Question:
    less, book = _at_book(memory_bytes=LESS_MEMORY.memory_bytes), _at_book()
    b, d = less.choice.of("B"), less.choice.of("D")
    assert book.choice.within_limits == ("D",) and not less.choice.within_limits
    assert b.broken is Limit.DEADLINE and d.broken is Limit.MEMORY
    gib, answer = shown(LESS_MEMORY.memory_bytes, "GiB"), "none of them"
    return Question(
        text=f"With {shown(LIMITS.memory_bytes, 'GiB')} D alone keeps both limits. Now only {gib} are left for KV and "
        "what drafts take. Which configurations keep both limits then?",
        choices=("B", "B and C", "D", answer),
        answer=answer,
        reveals={"memory_bytes": LESS_MEMORY.memory_bytes},
        because=f"D needs {shown(d.needs.memory_bytes, 'GiB', 2)}, A and C need even more. B fits with "
        f"{shown(b.needs.memory_bytes, 'GiB', 2)}, but takes {shown(b.needs.total_s, 's', 2)}. What helps: a later "
        "deadline, shorter outputs, fewer requests, a shorter round, or drafts that take no memory on the card.",
    )


def _why_still(moved: str, settings: Mapping[str, Any]) -> str:
    if moved == "outputs_per_round":
        return "Rounds are whole: D takes as many as before, the last one just outputs more than is wanted."
    if moved == "host_removed_s":
        return "No round gets shorter any more: each takes what the device itself needs at least."
    return ""


CONFIGURATIONS_EXPLORATION = Exploration(
    question=_ask_who_is_left,
    in_view=("memory_bytes", "deadline_s", "output_tokens", "outputs_per_round"),
    settings={
        "host overhead gone": {"host_removed_s": round(HOST_S, 4)},
        f"{SHORT_OUTPUTS.output_tokens} outputs": {"output_tokens": SHORT_OUTPUTS.output_tokens},
        f"{shown(LESS_MEMORY.memory_bytes, 'GiB')}, {FEWER_REQUESTS} requests": {
            "memory_bytes": LESS_MEMORY.memory_bytes,
            "requests": FEWER_REQUESTS,
        },
    },
    readouts=configurations_readouts,
    why_still=_why_still,
)
