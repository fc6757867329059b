"""Figures of what keeping a prefix is worth: bars over the space that it takes, whose area is the time it saves."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from figures import style
from figures.exploration import Exploration, Question, Readout, Slider
from figures.lines import FINER, round_above, round_below, round_ticks, ticks_below, ticks_left
from figures.page import box, new_page, write
from figures.words import words
from lib.checks import share, whole
from lib.clocks import Clock
from lib.prefix_value import (
    A_TOKENS,
    B_TOKENS,
    EFFICIENCY,
    GEN4,
    GEN5,
    HIT_PROBABILITY,
    MOST_BYTES_S,
    MOST_TOKENS,
    Candidate,
    best_choice,
    break_even_link,
    prefix_of,
)
from lib.units import GB, MIB, shown

PAGE_PT, LEFT_PT, WIDTH_PT = 300, 50, 356
# The box of both rows of bars, and in it the height of a row and the lower edges of A's and B's.
BARS_PT, ROW_PT, ROWS_PT = 114, 62, (84, 0)
STRIP_PT, STRIP_HEIGHT_PT = 34, 24
TITLE_PT, UNIT_PT = 284, 250
# The least bar, in width and height, that has its time written in it.
TIME_PT, TEXT_PT = 66, 14
# The height of the marks in the strip; letters stand above it.
MARK_PT = 11
# The square that shows how much an area is has at most this side.
MOST_SIDE_PT = 12
RATES_END, RATE_TICKS = 500, (1, 3, 10, 30, 100, 300)
FEWEST_TOKENS, MOST_SHOWN_TOKENS, TOKENS_STEP = 512, 16384, 512
_OVER_HATCH = {"facecolor": style.PAPER, "edgecolor": "none", "pad": 0.5}
_COMPUTED = (Clock.FLOP_RULE, Clock.ASSUMED)


@dataclass(frozen=True)
class Kind:
    """Prefixes of one kind, as many as the room of the longer kind holds, and how many of them are best kept there."""

    name: str
    one: Candidate
    count: int
    kept: int

    @property
    def value_s(self) -> float:
        """What all of them save together."""
        return self.count * self.one.value_s

    @property
    def ms_per_mib(self) -> float:
        return self.one.value_per_byte * MIB * 1e3

    @property
    def mib(self) -> float:
        return self.one.prefix.kv_bytes / MIB


class Scale:
    """How both rows are drawn: MiB to the right, ms per MiB upwards, the same in both, so that areas compare."""

    def __init__(self, kinds: tuple[Kind, Kind]) -> None:
        values = [kind.ms_per_mib for kind in kinds]
        low, high = min(0, *values), max(0, *values)
        step = round_above((high - low) / 2.5, FINER)
        first, last = math.floor(low / step), math.ceil(high / step)
        self.room = max(kind.mib for kind in kinds)
        self.low, self.high = first * step, last * step
        self.ticks = [place * step for place in range(first, last + 1)]

    def height(self, ms_per_mib: float) -> float:
        """Points above the lower edge of a row."""
        return (ms_per_mib - self.low) / (self.high - self.low) * ROW_PT

    @property
    def ms_of_pt2(self) -> float:
        """The time for which a square point stands."""
        return (self.high - self.low) / ROW_PT * self.room / WIDTH_PT


def prefix_value(
    *,
    probability_a: Annotated[float, Slider("A used again, p", 0.0, 1.0, 0.01)] = HIT_PROBABILITY,
    probability_b: Annotated[float, Slider("B used again, p", 0.0, 1.0, 0.01)] = HIT_PROBABILITY,
    link_bytes_s: Annotated[int, Slider("link", 4, 450, 1, "GB/s")] = GEN5.bandwidth_bytes_s,
    a_tokens: Annotated[int, Slider("A, tokens", FEWEST_TOKENS, MOST_SHOWN_TOKENS, TOKENS_STEP)] = A_TOKENS,
    b_tokens: Annotated[int, Slider("B, tokens", FEWEST_TOKENS, MOST_SHOWN_TOKENS, TOKENS_STEP)] = B_TOKENS,
    efficiency: Annotated[float, Slider("share of peak", 0.35, 0.7, 0.001)] = EFFICIENCY,
    language: str = "en",
) -> Figure:
    """What the same room saves when it is filled with prefixes A or with prefixes B, and how fast each is recomputed.

    Raises InputError for values that make no sense. Source: section 8.3.4, figure 8-22.
    """
    kinds = both_kinds(probability_a, probability_b, link_bytes_s, a_tokens, b_tokens, efficiency)
    text, scale = words(language, "prefix-value"), Scale(kinds)
    with style.in_book_style():
        page = new_page(PAGE_PT)
        # One box holds both rows, as a second would take as long to draw as all that is in it.
        axes = box(page, LEFT_PT, BARS_PT, WIDTH_PT, ROWS_PT[0] + ROW_PT)
        axes.set(xlim=(0, scale.room), ylim=(0, ROWS_PT[0] + ROW_PT))
        ticks_left(axes, {row + scale.height(tick): _signed(tick) for row in ROWS_PT for tick in scale.ticks})
        axes.spines["left"].set_visible(False)
        axes.vlines([0, 0], ROWS_PT, [row + ROW_PT for row in ROWS_PT], color=style.INK, linewidth=style.THIN_PT)
        for row, kind in zip(ROWS_PT, kinds, strict=True):
            _draw_bars(axes, row, kind, scale)
            _write_heading(page, BARS_PT + row + ROW_PT + 6, kind, text)
        ticks_below(axes, {tick: f"{tick:g}" for tick in round_ticks(scale.room)}, text["width"])
        write(page, 14, TITLE_PT, text["height"])
        _draw_unit(page, scale, text["area"])
        _draw_rates(page, kinds, link_bytes_s, text["rates"])
    return page


def both_kinds(
    probability_a: float, probability_b: float, link_bytes_s: int, a_tokens: int, b_tokens: int, efficiency: float
) -> tuple[Kind, Kind]:
    """The prefixes that the figure's parameters describe; the room is what one of the longer takes."""
    link = whole("link_bytes_s", link_bytes_s, at_least=1, at_most=MOST_BYTES_S)
    lengths = [
        whole(name, tokens, at_least=1, at_most=MOST_TOKENS)
        for name, tokens in (("a_tokens", a_tokens), ("b_tokens", b_tokens))
    ]
    shares = share("probability_a", probability_a), share("probability_b", probability_b)
    ones = [Candidate(prefix_of(tokens, link, efficiency), each) for tokens, each in zip(lengths, shares, strict=True)]
    room = max(one.prefix.kv_bytes for one in ones)
    counts = [room // one.prefix.kv_bytes for one in ones]
    kept = best_choice([ones[0]] * counts[0] + [ones[1]] * counts[1], room).places
    of_a = sum(place < counts[0] for place in kept)
    return Kind("A", ones[0], counts[0], of_a), Kind("B", ones[1], counts[1], len(kept) - of_a)


def _draw_bars(axes: Axes, row: float, kind: Kind, scale: Scale) -> None:
    """The prefixes beside each other: below the line where keeping them costs time, framed where they are kept."""
    zero = row + scale.height(0)
    height = row + scale.height(kind.ms_per_mib) - zero
    look: dict[str, Any] = style.look("queue") if height < 0 else {"edgecolor": style.INK}
    frame = 1.6 * style.LINE_PT if kind.kept else style.THIN_PT
    look = look | {"facecolor": style.REQUEST[kind.name], "linewidth": frame}
    left = [place * kind.mib for place in range(kind.count)]
    axes.broken_barh([(each, kind.mib) for each in left], (zero, height), clip_on=False, **look)
    axes.hlines(zero, 0, scale.room, color=style.INK, linewidth=style.THIN_PT)
    behind = _OVER_HATCH if height < 0 else None
    if kind.mib * WIDTH_PT / scale.room >= TIME_PT and abs(height) >= TEXT_PT:
        name = f"{kind.name}  {shown(kind.one.value_s, 'ms', 1)}"
        for each in left:
            axes.text(each + kind.mib / 2, zero + height / 2, name, ha="center", va="center_baseline", bbox=behind)


def _signed(tick: float) -> str:
    return f"{tick:.3g}".replace("-", "−")


def _write_heading(page: Figure, bottom: float, kind: Kind, text: Mapping[str, str]) -> None:
    key = ("saves" if kind.value_s >= 0 else "costs") + ("" if kind.count == 1 else "_each")
    time = shown(abs(kind.value_s), "ms", 1)
    what = text[key].format(name=kind.name, count=kind.count, mib=f"{kind.mib:g}", time=time)
    write(page, LEFT_PT, bottom, what + (text["kept"] if kind.kept else ""))


def _draw_unit(page: Figure, scale: Scale, text: str) -> None:
    """A square whose area is a round time, and how much it is."""
    ms = round_below(MOST_SIDE_PT**2 * scale.ms_of_pt2)
    side = math.sqrt(ms / scale.ms_of_pt2)
    look: dict[str, Any] = {"facecolor": style.PAPER, "edgecolor": style.INK, "linewidth": style.THIN_PT}
    place = UNIT_PT / style.WIDTH_PT, TITLE_PT / PAGE_PT
    page.add_artist(Rectangle(place, side / style.WIDTH_PT, side / PAGE_PT, transform=page.transFigure, **look))
    write(page, UNIT_PT + MOST_SIDE_PT + 4, TITLE_PT, text.format(time=f"{ms:g} ms"))


def _draw_rates(page: Figure, kinds: tuple[Kind, Kind], link_bytes_s: int, text: str) -> None:
    """How fast each prefix is recomputed, as dots, beside the link, a line; each doubling takes the same width."""
    axes = box(page, LEFT_PT, STRIP_PT, WIDTH_PT, STRIP_HEIGHT_PT)
    axes.set(xlim=(0, math.log10(RATES_END)), ylim=(0, STRIP_HEIGHT_PT))
    ticks_left(axes, {})
    ticks_below(axes, {math.log10(tick): str(tick) for tick in RATE_TICKS})
    link = math.log10(link_bytes_s / GB)
    axes.vlines(link, 0, MARK_PT, color=style.LIMIT, linewidth=2 * style.LINE_PT)
    rates = [kind.one.prefix.recompute_bytes_s / GB for kind in kinds]
    places = [math.log10(rate) for rate in rates]
    axes.plot(places, [MARK_PT / 2] * 2, "o", markersize=5, color=style.INK, clip_on=False)
    sides = ("right", "left") if rates[0] <= rates[1] else ("left", "right")
    for kind, place, side in zip(kinds, places, sides, strict=True):
        axes.text(place, MARK_PT, kind.name, ha=side)
    numbers = dict(zip("ab", (f"{rate:.1f}" for rate in rates), strict=True))
    text_above = text.format(link=f"{link_bytes_s / GB:g}", **numbers)
    write(page, 14, STRIP_PT + STRIP_HEIGHT_PT + 4, text_above)


def prefix_value_readouts(**settings: Any) -> tuple[Readout, ...]:
    """What the same room saves with either kind, and from which probability on, at the settings of `prefix_value`."""
    a, b = both_kinds(**settings)
    kept = next((f"{kind.kept} {kind.name}" for kind in (a, b) if kind.kept), "neither")
    return (
        Readout("kept in the same room", kept),
        Readout("all A together save", a.value_s, "ms", 1, _COMPUTED),
        Readout("all B together save", b.value_s, "ms", 1, _COMPUTED),
        Readout("one B saves", b.one.value_s, "ms", 1, _COMPUTED),
        Readout("A pays from p, in %", _percent(a), "", 1),
        Readout("B pays from p, in %", _percent(b), "", 1),
        Readout("A recomputed in", a.one.prefix.recompute_s, "ms", 1, (Clock.FLOP_RULE,)),
        Readout("A over the link in", a.one.prefix.fetch_s, "ms", 1, (Clock.ASSUMED,)),
        Readout("recomputing makes KV of A at", a.one.prefix.recompute_bytes_s, "GB/s", 1),
        Readout("recomputing makes KV of B at", b.one.prefix.recompute_bytes_s, "GB/s", 1),
    )


def _percent(kind: Kind) -> float | str:
    least = kind.one.prefix.break_even
    return "never" if least is None else 100 * least


def _ask_for_the_slowest_link() -> Question:
    a = prefix_of(A_TOKENS)
    least = break_even_link(a, HIT_PROBABILITY)
    rate, sure, answer, gen4, gen5 = (
        shown(bytes_s, "GB/s")
        for bytes_s in (
            a.recompute_bytes_s, break_even_link(a, 1), least, GEN4.bandwidth_bytes_s, GEN5.bandwidth_bytes_s,
        )
    )  # fmt: skip
    transfers = f"{1 + 1 / HIT_PROBABILITY:g}"
    return Question(
        text=f"Recomputing makes KV of A at about {rate}; the link moves it at {gen5}. A is used again with "
        f"p = {HIT_PROBABILITY:g}. Below which link does keeping it cost more time than it saves?",
        choices=(rate, sure, answer, gen4),
        answer=answer,
        reveals={"link_bytes_s": int(least / GB) * GB},
        because="A is written out each time and fetched only when it is used again: that is "
        f"{transfers} transfers for each recomputation saved, so the link must be {transfers} times as fast as "
        f"recomputing. Were A sure to be used again, {sure} would do.",
    )


PREFIX_VALUE_EXPLORATION = Exploration(
    question=_ask_for_the_slowest_link,
    in_view=("probability_a", "probability_b", "link_bytes_s", "a_tokens"),
    settings={
        "A a little less likely": {"probability_a": 0.45},
        "PCIe 4.0": {"link_bytes_s": GEN4.bandwidth_bytes_s},
        "a link of 6 GB/s": {"link_bytes_s": 6 * GB},
    },
    readouts=prefix_value_readouts,
    why_still=lambda moved, settings: "",
)
