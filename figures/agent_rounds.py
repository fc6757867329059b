"""The figure of an agent's rounds: what of each is equal to the one before, and what of that a prefix cache finds."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import lru_cache
from statistics import median
from typing import Annotated, Any

from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from figures import machine, style
from figures.chunks import NOT_RECORDED
from figures.exploration import Choice, Exploration, Question, Readout, Slider
from figures.lines import round_above, ticks_below, ticks_left
from figures.page import box, new_page, swatch, write
from figures.times import in_ns
from figures.words import words
from lib.agent_replay import (
    BLOCK_TOKENS,
    INTERFERING,
    INTERFERING_TOKENS,
    Recorded,
    Setup,
    blocks_in,
    first_token_ns,
    found_if_all_lives,
    recorded,
    replay,
    rounds,
)
from lib.checks import InputError, finite, one_of
from lib.clocks import Clock
from lib.design_problem import INSTANCE
from lib.model import paged_kv_bytes
from lib.prefix_cache import Order
from lib.step_time import NS
from lib.units import GIB, shown

LEAST_GIB, MOST_GIB = 1, 6
BLOCKS = (1, 4, 16, 64, 256)
# In the pool that the question asks about neither nothing nor all is found.
ASKED_BYTES = 2 * GIB
WAIT_S = 0.2
TOKENS, EQUAL = sum(one.tokens for one in rounds()), sum(one.same for one in rounds())
_ON_THE_CLIFF = 12
PAGE_PT, LEFT_PT, WIDTH_PT = 326, 50, 356
BAR = 0.72  # of the place of a round
_NUMBERED = (1, *range(2, len(rounds()) + 1, 2))
_LOOK: dict[str, dict[str, Any]] = {
    "found": style.look("prefill"),
    "lost": {"facecolor": style.REQUEST["A"], "hatch": "////", "edgecolor": style.INK, "linewidth": style.THIN_PT},
    "rest": style.look("foreign") | {"hatch": ""},
}
_MEASURED: dict[str, Any] = {
    "marker": "D", "markersize": 7, "linestyle": "", "markerfacecolor": "none", "color": style.INK,
}  # fmt: skip
_SIMULATED: dict[str, Any] = {"color": style.LINE["fit"][0], "marker": "o", "markersize": 3, "linewidth": style.THIN_PT}


class Sizes(StrEnum):
    """The pool sizes that are replayed."""

    THIS = "only this one"
    ALL = f"{LEAST_GIB} to {MOST_GIB} GiB"


_found = lru_cache(4096)(replay)


def agent_rounds(
    *,
    pool: Annotated[float, Slider("pool", float(LEAST_GIB), float(MOST_GIB), 0.02, "GiB")] = MOST_GIB * GIB,
    sizes: Annotated[Sizes, Choice("pools drawn", tuple(Sizes))] = Sizes.THIS,
    interfering: Annotated[int, Slider("others in each gap", 0, 6, 1)] = INTERFERING,
    gap: Annotated[float, Slider("wait in gaps", 0.0, 2.0, 0.1, "s")] = 0.0,
    block_tokens: Annotated[int, Choice("block, tokens", BLOCKS)] = BLOCK_TOKENS,
    order: Annotated[Order, Choice("evicted first", tuple(Order))] = Order.LEAST_RECENTLY_USED,
    language: str = "en",
) -> Figure:
    """The tokens of each round: equal to the round before and found, equal and not found, and the rest.

    Below, what all rounds find in pools of other sizes; `pool` in bytes, `gap` in seconds. Raises InputError for values
    that make no sense. Source: sections 8.3.3 and 8.3.4, records agent_rounds and cache_replay.
    """
    setup, drawn = _drawn(pool, sizes, interfering, gap, block_tokens, order)
    text = words(language, "agent-rounds")
    with style.in_book_style():
        page = new_page(PAGE_PT)
        write(page, 14, PAGE_PT - 16, text["tokens"])
        bars = box(page, LEFT_PT, 180, WIDTH_PT, 124)
        _draw_rounds(bars, _found(setup), text["rounds"])
        for place, role in enumerate(("found", "lost", "rest")):
            _bar_key(page, LEFT_PT + 12, 288 - 18 * place, text[role], role)
        write(page, 14, 126, text["in_all"].format(others=setup.interfering, tokens=f"{INTERFERING_TOKENS:,}"))
        sizes_box = box(page, LEFT_PT, 72, WIDTH_PT, 46)
        _draw_sizes(sizes_box, setup, drawn, text["pool"])
        _draw_key(page, text, setup, pool)
    return page


def _setup(pool: float, interfering: int, block_tokens: int, order: str) -> Setup:
    allowed = f"a pool from {LEAST_GIB} GiB to {MOST_GIB} GiB"
    if not LEAST_GIB * GIB <= (given := finite("pool", pool, 0, allowed)) <= MOST_GIB * GIB:
        raise InputError("pool", pool, allowed)
    size = one_of("block_tokens", block_tokens, BLOCKS)
    return Setup(blocks_in(round(given), size), size, interfering, order=one_of("order", order, Order))


def _drawn(
    pool: float, sizes: str, interfering: int, gap: float, block_tokens: int, order: str
) -> tuple[Setup, Sequence[Setup]]:
    """The replay that the figure's parameters describe, and those that are drawn below, by size of the pool.

    A wait is no part of them: a cache has no clock.
    """
    setup = _setup(pool, interfering, block_tokens, order)
    in_ns("gap", gap)
    if one_of("sizes", sizes, Sizes) == Sizes.THIS:
        return setup, (setup,)
    edges = setup.blocks_between, setup.blocks_to_keep_all
    cliff = (edges[0] + (edges[1] - edges[0]) * part // _ON_THE_CLIFF for part in range(_ON_THE_CLIFF + 1))
    whole_gib = [blocks_in(gib * GIB, setup.block_tokens) for gib in range(LEAST_GIB, MOST_GIB + 1)]
    seen = {blocks for blocks in cliff if whole_gib[0] <= blocks <= whole_gib[-1]}
    return setup, [replace(setup, blocks=blocks) for blocks in sorted(seen | {setup.blocks, *whole_gib})]


def _bytes(setup: Setup, blocks: int) -> int:
    return blocks * paged_kv_bytes(INSTANCE.model, 1, setup.block_tokens)


def _in_all(setup: Setup) -> int:
    return sum(_found(setup))


def _recorded(setup: Setup) -> list[Recorded]:
    """The recorded runs without a wait, of the same load in any pool."""
    return [one for one in recorded() if _load(one.setup) == _load(setup) and not one.gap_s]


def _load(setup: Setup) -> tuple[int, int, int, Order]:
    return setup.block_tokens, setup.interfering, setup.interfering_tokens, setup.order


def _draw_rounds(axes: Axes, found: Sequence[int], name: str) -> None:
    """One bar a round: what is equal to the round before stands below, since it comes first in the input."""
    boxes: dict[str, list[list[tuple[float, float]]]] = {role: [] for role in _LOOK}
    for one, hit in zip(rounds(), found, strict=True):
        left, right = one.number - BAR / 2, one.number + BAR / 2
        for role, low, high in (("found", 0, hit), ("lost", hit, one.same), ("rest", one.same, one.tokens)):
            if high > low:
                boxes[role].append([(left, low), (right, low), (right, high), (left, high)])
    most = max(one.tokens for one in rounds())
    axes.set(xlim=(0.4, len(rounds()) + 0.6), ylim=(0, 1.06 * most))
    every = round_above(most / 4)
    ticks_left(axes, {place * every: f"{place * every:g}" for place in range(int(most / every) + 1)})
    ticks_below(axes, {number: str(number) for number in _NUMBERED}, name)
    for role, corners in boxes.items():
        axes.add_collection(PolyCollection(corners, **_LOOK[role]), autolim=False)


def _draw_sizes(axes: Axes, setup: Setup, drawn: Sequence[Setup], name: str) -> None:
    """Tokens found in all, against the size of the pool."""
    most = sum(found_if_all_lives(setup.block_tokens))
    axes.set(xlim=(0, 1.01 * MOST_GIB), ylim=(0, most))
    ticks_below(axes, {gib: str(gib) for gib in range(MOST_GIB + 1)}, name)
    ticks_left(axes, {0: "0", most: f"{most:,}"})
    axes.axvspan(0, _bytes(setup, setup.blocks_between) / GIB, **style.look("queue"), zorder=0)
    axes.axvline(_bytes(setup, setup.blocks) / GIB, color=style.LIMIT, zorder=1)
    places = [_bytes(one, one.blocks) / GIB for one in drawn]
    axes.plot(places, [_in_all(one) for one in drawn], clip_on=False, **_SIMULATED)
    measured = _recorded(setup)
    sizes = [_bytes(one.setup, one.setup.blocks) / GIB for one in measured]
    axes.plot(sizes, [one.found for one in measured], clip_on=False, **_MEASURED)


def _bar_key(page: Figure, left: float, bottom: float, text: str, role: str) -> None:
    width, height = page.get_size_inches() * 72
    patch = (left / width, bottom / height), 14 / width, 9 / height
    page.add_artist(Rectangle(*patch, transform=page.transFigure, **_LOOK[role]))
    write(page, left + 20, bottom, text)


def _draw_key(page: Figure, text: Mapping[str, str], setup: Setup, pool: float) -> None:
    width, height = page.get_size_inches() * 72
    swatch(page, 14, 26, text["used_up"], "queue")
    page.add_artist(Line2D([254 / width], [30 / height], **_SIMULATED))
    write(page, 264, 26, text["modelled"])
    if _recorded(setup):
        page.add_artist(Line2D([334 / width], [30 / height], **_MEASURED))
        write(page, 344, 26, text["measured"])
    page.add_artist(Line2D([21 / width] * 2, [7 / height, 18 / height], color=style.LIMIT))
    now = {"gib": shown(pool, "GiB", 2), "found": f"{_in_all(setup):,}", "equal": f"{EQUAL:,}"}
    write(page, 34, 8, text["now"].format(**now), color=style.LIMIT)


def agent_readouts(**settings: Any) -> tuple[Readout, ...]:
    """What the rounds find and what they take, at the settings of `agent_rounds`."""
    setup, _ = _drawn(**settings)
    found = _found(setup)
    by = machine.fit()
    times = [first_token_ns(one.tokens, hit, by) / NS for one, hit in zip(rounds(), found, strict=True)]
    run = next((one for one in _recorded(setup) if one.setup == setup), None)
    # Where the edge is by another order depends on the size of a block, too.
    by_which = "" if setup.order == Order.LEAST_RECENTLY_USED else ", by last use"
    return (
        Readout("equal to the round before", EQUAL),
        Readout("found in the cache", sum(found)),
        Readout("computed", TOKENS - sum(found)),
        Readout("used up in each gap", _bytes(setup, setup.blocks_between), "GiB", 2),
        Readout(f"all is found from{by_which}", _bytes(setup, setup.blocks_to_keep_all), "GiB", 2),
        Readout("all rounds, to their first tokens", sum(times), "s", 2, (Clock.FIT,)),
        Readout("measured, without a wait", run.total_s if run else NOT_RECORDED, "s", 2, (Clock.CLIENT,)),
        Readout("median time to first token", median(times), "ms", 1, (Clock.FIT,)),
        Readout("median, measured without a wait", run.median_s if run else NOT_RECORDED, "ms", 1, (Clock.CLIENT,)),
    )


def _ask_between() -> Question:
    small, asked, large = (
        Setup(blocks_in(size), interfering=INTERFERING) for size in (LEAST_GIB * GIB, ASKED_BYTES, MOST_GIB * GIB)
    )
    parts = {"none": 0, "a third": 1 / 3, "two thirds": 2 / 3, "nearly all": 1}
    part = _in_all(asked) / _in_all(large)
    longest = _gib(asked, asked.blocks_to_keep_all - asked.blocks_between)
    return Question(
        text=f"Each round of an agent's task begins like the one before, and {INTERFERING} other requests of "
        f"{INTERFERING_TOKENS:,} tokens come in each gap. In {MOST_GIB} GiB the {len(rounds())} rounds find "
        f"{_in_all(large):,} tokens in the cache, in {LEAST_GIB} GiB {_in_all(small) or 'none'}. How many of them in "
        f"{shown(ASKED_BYTES, 'GiB')}?",
        choices=tuple(parts),
        answer=min(parts, key=lambda name: abs(parts[name] - part)),
        reveals={"pool": ASKED_BYTES, "sizes": Sizes.ALL},
        because=f"{_in_all(asked):,}. What comes in a gap uses up {_gib(asked, asked.blocks_between)}: in no larger "
        f"pool does a round leave anything to the next. The longest prefix takes {longest} more, and from "
        f"{_gib(asked, asked.blocks_to_keep_all)} on all is found. Between the two lies a cliff; beyond it more memory "
        "finds nothing more.",
    )


def _gib(setup: Setup, blocks: int) -> str:
    return shown(_bytes(setup, blocks), "GiB", 2)


def _why_agent_rounds_still(moved: str, settings: Mapping[str, Any]) -> str:
    setup, _ = _drawn(**settings)
    if moved == "gap":
        alone = [one for one in recorded() if not one.setup.interfering]
        told = ", ".join(f"{one.found:,} after {shown(one.gap_s, 's', 1)}" for one in alone)
        return f"While nobody computes, nothing is evicted. Measured alone: {told}."
    if moved == "order" and setup.blocks >= setup.blocks_to_keep_all:
        return "By both orders the pool keeps all that a later round can find."
    if moved == "order" and setup.blocks <= setup.blocks_between:
        return "All blocks come to be used in each gap, so everything is evicted in any order."
    if moved == "order":
        return "By both orders what earlier others left goes first, and then the last round's blocks from their end on."
    return ""


AGENT_ROUNDS_EXPLORATION = Exploration(
    question=_ask_between,
    in_view=("pool", "sizes", "interfering", "gap"),
    settings={
        "2 GiB": {"pool": ASKED_BYTES, "sizes": Sizes.ALL},
        f"no others, {WAIT_S} s more between rounds": {"interfering": 0, "gap": WAIT_S},
        "2 GiB, evicted from the head": {"pool": ASKED_BYTES, "sizes": Sizes.ALL, "order": Order.HEAD_FIRST},
    },
    readouts=agent_readouts,
    why_still=_why_agent_rounds_still,
)
