"""Figures of the slots that four requests get for their KV: a maximum each, growing regions, blocks, shared blocks."""

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.markers import TICKDOWN
from matplotlib.patches import Rectangle

from figures import style
from figures.exploration import Choice, Exploration, Question, Readout, Slider
from figures.lines import TICK_PT
from figures.page import box, new_page, write
from figures.words import words
from lib import allotment as example
from lib.allotment import Allot, Allotment, Load, Piece, allotment, most_that_fit, most_unused, pieces_to_move
from lib.checks import one_of, seconds, whole
from lib.clocks import Clock
from lib.design_problem import INSTANCE
from lib.units import shown

PAGE_PT = 272
LEFT_PT, WIDTH_PT = 34, 326
# The axes hold both: memory at the bottom, the first request's line at the top.
HEIGHT_PT, LINES_PT, PITCH_PT, BAR_PT, STRIP_PT = 170, 151, 24, 15, 18
# Room that a letter needs above its slots, and the least width of a slot that is drawn apart from its neighbours.
LETTER_PT, SLOT_PT = 8, 4
# Where there is no room for all letters side by side they stand in rows, and there is room for so many of these.
MOST_ROWS, ROWS_APART = 2, 0.85
# On either side of a piece that is not too narrow, so that it is seen apart from the next.
GAP_PT = 0.8
BLOCKS = (1, 2, 4, 8, 16)
# Where both axes end as long as nothing is longer: those of the book's three figures.
REQUEST_END, MEMORY_END = example.MAX_TOKENS, example.MAX_TOKENS * len(example.NAMES)
_LOOK: dict[str, dict[str, Any]] = {
    "used": style.look("prefill"),
    "unused": style.look("queue"),
    # Fewer dots than elsewhere: here there are many pieces, and dots take long to draw.
    "shared": style.look("shared") | {"hatch": ".."},
    "found": {"facecolor": style.PAPER, "edgecolor": style.INK, "linewidth": style.THIN_PT, "linestyle": (0, (3, 2))},
}
Spans = defaultdict[str, list[tuple[float, float, float, float]]]  # by role: left, right, bottom, top


def slots_of_four(
    *,
    allot: Annotated[Allot, Choice("each gets slots", tuple(Allot))] = Allot.MAXIMUM,
    max_tokens: Annotated[int, Slider("maximum, tokens", 8, 64, 4)] = example.MAX_TOKENS,
    block_tokens: Annotated[int, Choice("block, tokens", BLOCKS)] = example.BLOCK_TOKENS,
    common_tokens: Annotated[int, Slider("common tokens", 0, 9, 1)] = 0,
    sharers: Annotated[int, Slider("share them", 2, 4, 1)] = example.SHARERS,
    slots: Annotated[int, Slider("pool, slots", 16, 128, 4)] = MEMORY_END,
    a: Annotated[int, Slider("tokens of A", 1, 16, 1)] = example.LENGTHS[0],
    b: Annotated[int, Slider("tokens of B", 1, 16, 1)] = example.LENGTHS[1],
    c: Annotated[int, Slider("tokens of C", 1, 16, 1)] = example.LENGTHS[2],
    d: Annotated[int, Slider("tokens of D", 1, 16, 1)] = example.LENGTHS[3],
    copy_call: Annotated[float, Slider("a copy call", 0.0, 5.0, 0.5, "us")] = 0.0,
    slug: str = "reserved-maximum",
    language: str = "en",
) -> Figure:
    """The slots of four requests in the order of their tokens, and below them where those slots are in memory.

    `copy_call` in seconds; the labels are those of `slug`. Raises InputError for values that make no sense. Source:
    figures 8-11, 8-12 and 8-13.
    """
    four = four_of(allot, max_tokens, block_tokens, common_tokens, sharers, slots, a, b, c, d, copy_call)
    load, got = four.load, four.got
    text = words(language, slug)
    how = {Allot.MAXIMUM: "maximum", Allot.AS_IT_GROWS: "grows", Allot.IN_BLOCKS: "blocks"}[four.allot]
    below = "moved" if four.allot == Allot.AS_IT_GROWS else "memory"
    with style.in_book_style():
        page = new_page(PAGE_PT)
        write(page, 14, 256, text[how].format(max_tokens=load.max_tokens, block=four.block_tokens))
        write(page, LEFT_PT + WIDTH_PT + 8, 256, text["slots"])
        write(page, 14, 117, text[below].format(allotted=got.allotted, unused=got.unused, moves=len(got.moves)))
        axes = box(page, LEFT_PT, 76, WIDTH_PT, HEIGHT_PT)
        axes.set(xlim=(0, WIDTH_PT), ylim=(0, HEIGHT_PT))
        axes.set_axis_off()
        request_end = _axis_end(REQUEST_END, load.max_tokens, *(sum(each.slots for each in of) for of in got.requests))
        most = load.max_tokens * len(got.requests)
        memory_end = _axis_end(MEMORY_END, most, four.slots, *(piece.end for piece in got.own))
        spans: Spans = defaultdict(list)
        _place_requests(axes, request_end, got, spans)
        _place_memory(axes, memory_end, got, spans)
        _fill(axes, spans)
        _number_slots(axes, LINES_PT - len(got.requests) * PITCH_PT + 19, request_end)
        _number_slots(axes, 0, memory_end)
        _draw_pool_end(axes, four.slots * WIDTH_PT / memory_end, text["pool"].format(slots=four.slots))
        _draw_key(page, text, with_shared=bool(got.found))
    return page


@dataclass(frozen=True)
class Four:
    """The four requests, how they get slots, the pool in which their likes are counted, and seconds of a copy call."""

    load: Load
    allot: Allot
    block_tokens: int
    slots: int
    copy_call: float

    @cached_property
    def got(self) -> Allotment:
        """What the four get where memory is as long as they need."""
        got = allotment(self.load, self.allot, self.block_tokens)
        assert got, "memory has no end"
        return got

    @property
    def use(self) -> float:
        """The share of the slots allotted in which a token stands, in percent."""
        return 100 * self.got.used / self.got.allotted

    @property
    def fit(self) -> Allotment:
        """What as many as the pool holds get: the four, and others of their lengths."""
        return most_that_fit(self.load, self.allot, self.slots, self.block_tokens)

    @property
    def pieces(self) -> int:
        return pieces_to_move(INSTANCE.model, len(self.got.own))

    @property
    def equal_not_shared(self) -> int:
        return self.load.equal_tokens(len(self.got.requests)) - sum(piece.tokens for piece in self.got.found)


def four_of(
    allot: Allot = Allot.MAXIMUM,
    max_tokens: int = example.MAX_TOKENS,
    block_tokens: int = example.BLOCK_TOKENS,
    common_tokens: int = 0,
    sharers: int = example.SHARERS,
    slots: int = MEMORY_END,
    a: int = example.LENGTHS[0],
    b: int = example.LENGTHS[1],
    c: int = example.LENGTHS[2],
    d: int = example.LENGTHS[3],
    copy_call: float = 0.0,
) -> Four:
    """The four requests that the figure's parameters describe."""
    most = example.MOST_TOKENS
    lengths = tuple(whole(name, given, 1, most) for name, given in (("a", a), ("b", b), ("c", c), ("d", d)))
    return Four(
        Load(lengths, max_tokens, common_tokens, whole("sharers", sharers, 2, len(lengths))),
        one_of("allot", allot, Allot),
        one_of("block_tokens", block_tokens, BLOCKS),
        whole("slots", slots, 1, example.MOST_POOL_SLOTS),
        seconds("copy_call", copy_call),
    )


def _at(settings: Mapping[str, Any]) -> Four:
    return four_of(**{name: value for name, value in settings.items() if name != "slug"})


def _in_every_figure(four: Four) -> tuple[Readout, ...]:
    return (
        Readout("slots allotted", four.got.allotted),
        Readout("of them unused", four.got.unused),
        Readout("use, %", four.use),
        Readout("requests that fit the pool (A to D come again and again)", len(four.fit.requests)),
        Readout("slots free while the next one waits", four.slots - four.fit.allotted),
        Readout("entries of all tables", four.got.entries),
    )


def maximum_readouts(**settings: Any) -> tuple[Readout, ...]:
    """What the four have and had to move, at the settings of `slots_of_four`."""
    four = _at(settings)
    return (
        *_in_every_figure(four),
        Readout("moves while they grew", len(four.got.moves)),
        Readout("tokens moved by them", four.got.tokens_moved),
    )


def blocks_readouts(**settings: Any) -> tuple[Readout, ...]:
    """What the four have, and what smaller blocks cost, at the settings of `slots_of_four`."""
    four = _at(settings)
    tails = [sum(piece.slots - piece.tokens for piece in pieces) for pieces in four.got.requests]
    return (
        *_in_every_figure(four),
        Readout(f"unused by {', '.join(example.NAMES)}", ", ".join(map(str, tails))),
        Readout("unused at most, whatever the lengths", most_unused(four.load, four.allot, four.block_tokens)),
        Readout("pieces if all KV is moved elsewhere", four.pieces),
        Readout("time of their copy calls", four.pieces * four.copy_call, "ms", 2, (Clock.ASSUMED,)),
    )


def sharing_readouts(**settings: Any) -> tuple[Readout, ...]:
    """What the four have, and what sharing saves of it, at the settings of `slots_of_four`."""
    four = _at(settings)
    return (
        *_in_every_figure(four),
        Readout("blocks saved by sharing", len(four.got.found)),
        Readout("tokens equal but not shared", four.equal_not_shared),
    )


def _ask_twice_the_maximum() -> Question:
    book, twice, four_times = (four_of(max_tokens=times * example.MAX_TOKENS) for times in (1, 2, 4))
    uses = [f"{each.use:.0f} %" for each in (book, twice, four_times)]
    return Question(
        text=f"The four hold {book.got.used} tokens and use {uses[0]} of what they have reserved. Now each may have "
        f"{twice.load.max_tokens} tokens instead of {book.load.max_tokens}, and gives the same answer. How much of the "
        "reserved slots is used?",
        choices=tuple(uses),
        answer=uses[1],
        reveals={"max_tokens": twice.load.max_tokens},
        because=f"What is never said is reserved as well: {twice.got.allotted} slots for the same {twice.got.used} "
        f"tokens, of which {twice.got.unused} are unused. A pool of {twice.slots} slots holds "
        f"{len(twice.fit.requests)} such requests instead of {len(book.fit.requests)}.",
    )


def _ask_the_price_of_one() -> Question:
    book, one = (
        four_of(allot=Allot.IN_BLOCKS, block_tokens=block, copy_call=1e-6) for block in (example.BLOCK_TOKENS, 1)
    )
    times = [shown(each.pieces * each.copy_call, "ms", 1) for each in (book, one)]
    choices = sorted({book.got.entries, 2 * book.got.entries, one.got.entries, book.block_tokens * book.got.entries})
    return Question(
        text=f"Blocks of {book.block_tokens} tokens leave {book.got.unused} slots unused, blocks of a single token "
        f"{one.got.unused or 'none'}. How many entries do the block tables of the four need then, instead of "
        f"{book.got.entries}?",
        choices=tuple(map(str, choices)),
        answer=str(one.got.entries),
        reveals={"block_tokens": one.block_tokens, "copy_call": one.copy_call},
        because=f"That is the price: each of {one.got.used} tokens asks for a block and has an entry of its own. And "
        "where all KV is moved elsewhere, a block is a call for keys and one for values in each of "
        f"{INSTANCE.model.layer_count} layers: {one.pieces} calls instead of {book.pieces}. At an assumed "
        f"{shown(one.copy_call, 'us')} a call these are {times[1]} instead of {times[0]}.",
    )


def _ask_one_token_less() -> Question:
    book, less = (
        four_of(allot=Allot.IN_BLOCKS, common_tokens=common)
        for common in (example.COMMON_TOKENS, example.COMMON_TOKENS - 1)
    )
    saved = len(book.got.found)
    return Question(
        text=f"A and B begin with the same {book.load.common_tokens} tokens, and sharing saves {saved} blocks of "
        f"{book.block_tokens}. If only {less.load.common_tokens} tokens are the same, how many blocks are saved?",
        choices=(str(saved), str(saved - 1), str(saved - 2)),
        answer=str(len(less.got.found)),
        reveals={"common_tokens": less.load.common_tokens},
        because=f"Only a block that is full of common tokens is shared. Of {less.load.common_tokens}, the last "
        f"{less.equal_not_shared} are in a block whose next token differs: A and B each hold them.",
    )


def _why_still(moved: str, settings: Mapping[str, Any]) -> str:
    allot, common = settings["allot"], settings["common_tokens"]
    in_blocks = allot == Allot.IN_BLOCKS
    if moved == "max_tokens" and allot != Allot.MAXIMUM:
        return "Nothing is reserved for a maximum here: slots are taken when tokens come."
    if moved == "copy_call":
        return "What copy calls cost is read off beside figure 8-12 only, where blocks are small and many."
    if moved == "block_tokens" and not in_blocks:
        return "Each request has one region, of whatever length; there are no blocks."
    if moved in ("common_tokens", "sharers"):
        if not common:
            return "No tokens are common, so it does not matter how many requests share them."
        if not in_blocks:
            return "Each request has a region to itself and holds the common tokens in it, whoever else does."
        return "No other block is shared: only one full of common tokens is, and none with the last token of a request."
    return ""


MAXIMUM_EXPLORATION = Exploration(
    question=_ask_twice_the_maximum,
    in_view=("allot", "max_tokens", "slots", "d"),
    settings={
        "as it grows": {"allot": Allot.AS_IT_GROWS},
        "in blocks": {"allot": Allot.IN_BLOCKS},
        "in blocks, a prefix shared": {"allot": Allot.IN_BLOCKS, "common_tokens": example.COMMON_TOKENS},
    },
    readouts=maximum_readouts,
    why_still=_why_still,
)
BLOCKS_EXPLORATION = Exploration(
    question=_ask_the_price_of_one,
    in_view=("block_tokens", "d", "copy_call", "allot"),
    settings={
        "blocks of 1, 1 us a call": {"block_tokens": 1, "copy_call": 1e-6},
        "blocks of 16, 1 us a call": {"block_tokens": 16, "copy_call": 1e-6},
        "each one token beyond a block": {"d": 13},
    },
    readouts=blocks_readouts,
    why_still=_why_still,
)
SHARING_EXPLORATION = Exploration(
    question=_ask_one_token_less,
    in_view=("common_tokens", "block_tokens", "sharers", "allot"),
    settings={
        "all four share": {"sharers": 4},
        "blocks of 1": {"block_tokens": 1},
        "nothing in common": {"common_tokens": 0},
    },
    readouts=sharing_readouts,
    why_still=_why_still,
)


def _place_requests(axes: Axes, end: int, got: Allotment, spans: Spans) -> None:
    """A line a request: its pieces in the order of its tokens, and right of it the slots that are its own."""
    for line, (name, pieces) in enumerate(zip(example.NAMES, got.requests, strict=True)):
        bottom, start = LINES_PT - line * PITCH_PT, 0
        for piece in pieces:
            _place(spans, piece._replace(start=start), _role(piece, got), WIDTH_PT / end, bottom)
            start += piece.slots
        own = sum(piece.slots for piece in pieces if not piece.found)
        axes.text(-8, bottom + BAR_PT / 2, name, ha="right", va="center")
        axes.text(WIDTH_PT + 8, bottom + BAR_PT / 2, str(own), va="center")


def _place_memory(axes: Axes, end: int, got: Allotment, spans: Spans) -> None:
    """All slots once, where they are, with the names of those who read them above, as far as there is room."""
    slot_pt = WIDTH_PT / end
    for piece in got.own:
        _place(spans, piece, _role(piece, got), slot_pt, 0)
        readers = "".join(
            name
            for name, pieces in zip(example.NAMES, got.requests, strict=True)
            if any(each.start == piece.start for each in pieces)
        )
        in_a_row = min(int(piece.slots * slot_pt / LETTER_PT), len(readers))
        rows = [readers[at : at + in_a_row] for at in range(0, len(readers), in_a_row)] if in_a_row else []
        if 0 < len(rows) <= MOST_ROWS:
            middle = (piece.start + piece.end) / 2 * slot_pt
            axes.text(middle, BAR_PT + 2, "\n".join(rows), ha="center", va="bottom", linespacing=ROWS_APART)
    axes.text(WIDTH_PT + 8, BAR_PT / 2, str(got.allotted), va="center")


def _role(piece: Piece, got: Allotment) -> str:
    if piece.found:
        return "found"
    return "shared" if any(piece.start == each.start for each in got.found) else "used"


def _place(spans: Spans, piece: Piece, role: str, slot_pt: float, bottom: float) -> None:
    """One piece in the look of its role, the slots of it that hold nothing, and lines between slots of some width."""
    start, filled, end = (slot * slot_pt for slot in (piece.start, piece.start + piece.tokens, piece.end))
    gap = min(GAP_PT, (end - start) / 5)
    left, right = start + gap, end - gap
    spans[role].append((left, min(filled, right), bottom, bottom + BAR_PT))
    if piece.tokens < piece.slots:
        spans["unused"].append((filled, right, bottom, bottom + BAR_PT))
    if slot_pt >= SLOT_PT:
        between = (start + slot * slot_pt for slot in range(1, piece.slots))
        spans["between"] += [(place, place, bottom, bottom + BAR_PT) for place in between]


def _fill(axes: Axes, spans: Spans) -> None:
    for role, look in _LOOK.items():
        corners = [[(left, low), (right, low), (right, top), (left, top)] for left, right, low, top in spans[role]]
        if corners:
            axes.add_collection(PolyCollection(corners, clip_on=False, **look), autolim=False)
    lines = [[(left, low), (right, top)] for left, right, low, top in spans["between"]]
    axes.add_collection(LineCollection(lines, colors=style.PAPER, linewidths=style.THIN_PT), autolim=False)


def _number_slots(axes: Axes, bottom: float, end: int) -> None:
    """A line below bars, with the slots counted at its ends and its middle."""
    places = [0, WIDTH_PT / 2, WIDTH_PT]
    mark: dict[str, Any] = {"marker": TICKDOWN, "markersize": TICK_PT, "markeredgewidth": style.THIN_PT}
    axes.plot(places, [bottom] * 3, color=style.INK, linewidth=style.THIN_PT, clip_on=False, **mark)
    for place, slots in zip(places, (0, end // 2, end), strict=True):
        axes.text(place, bottom - 2 * TICK_PT, str(slots), ha="center", va="top")


def _draw_pool_end(axes: Axes, place: float, name: str) -> None:
    """A line where the pool ends, and its name below, on the side with more room."""
    # With a gap for the number that may stand there.
    heights = [STRIP_PT, 0, math.nan, -20, -30]
    axes.plot([place] * 5, heights, color=style.LIMIT, linestyle=(0, (4, 2)), clip_on=False)
    side, shift = ("right", -4) if place > WIDTH_PT / 2 else ("left", 4)
    axes.text(place + shift, -29, name, ha=side, va="bottom", color=style.LIMIT)


def _axis_end(least: int, *ends: int) -> int:
    """Where an axis ends: it doubles where something is longer, so that it rarely moves."""
    while least < max(ends):
        least *= 2
    return least


def _draw_key(page: Figure, text: Mapping[str, str], with_shared: bool) -> None:
    width, height = page.get_size_inches() * 72
    for place, role in enumerate(_LOOK if with_shared else ("used", "unused")):
        left, bottom = 14 + 200 * (place % 2), 26 - 18 * (place // 2)
        patch = (left / width, bottom / height), 14 / width, 9 / height
        page.add_artist(Rectangle(*patch, transform=page.transFigure, **_LOOK[role]))
        write(page, left + 20, bottom, text[role])
