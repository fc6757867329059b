"""Figures of the query-key pairs that a chunk of a prompt brings, cell by cell."""

from collections.abc import Mapping
from enum import StrEnum
from itertools import product
from typing import Annotated, Any

from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from figures import style
from figures.exploration import Choice, Exploration, Question, Readout, Slider
from figures.page import box, new_page, swatch, write
from figures.words import words
from lib.attention import EXAMPLE_CHUNK, causal_pairs
from lib.checks import one_of, whole

LEFT_PT, BOTTOM_PT, WIDTH_PT, HEIGHT_PT = 14, 52, 360, 136
# So that few tokens do not make cells that fill the page.
CELL_PT_AT_MOST = 30
# So that few tokens behind many do not make a thin strip.
STRETCH_AT_MOST = 3
# More tokens than these would make cells that cannot be seen.
MOST_NEW, MOST_CONTEXT = 32, 64


class Shaded(StrEnum):
    """Which cells are filled."""

    CAUSAL = "the pairs that count"
    ALL = "the future too"


def pairs_of_chunk(
    *,
    new_tokens: Annotated[int, Slider("new tokens", 1, 16, 1)] = EXAMPLE_CHUNK,
    context: Annotated[int, Slider("in context", 0, 64, 1)] = 0,
    shaded: Annotated[Shaded, Choice("shade", tuple(Shaded))] = Shaded.CAUSAL,
    slug: str = "pairs-first-chunk",
    language: str = "en",
) -> Figure:
    """The pairs of a chunk of new tokens: a rectangle with the context before it, a triangle within.

    `slug` says under which name its labels stand. Raises InputError for values that make no sense. Source: figures 8-8
    and 8-9.
    """
    c, h = chunk_and_context(new_tokens, context)
    text = words(language, slug)
    with_future = one_of("shaded", shaded, Shaded) is Shaded.ALL
    with style.in_book_style():
        page = new_page(214)
        write(page, LEFT_PT, 196, text["axes"])
        axes = box(page, LEFT_PT, BOTTOM_PT, WIDTH_PT, HEIGHT_PT)
        wide = min(CELL_PT_AT_MOST, WIDTH_PT / (c + h), HEIGHT_PT / c)
        high = min(CELL_PT_AT_MOST, STRETCH_AT_MOST * wide, HEIGHT_PT / c)
        axes.set(xlim=(0, WIDTH_PT / wide), ylim=(HEIGHT_PT / high, 0))
        axes.set_axis_off()
        _draw_cells(axes, c, h, with_future)
        _count_rows(axes, c, h, wide, high)
        _draw_key(page, c, h, with_future, text)
    return page


def chunk_and_context(new_tokens: int, context: int) -> tuple[int, int]:
    """The figure's two lengths, asked for."""
    c = whole("new_tokens", new_tokens, at_least=1, at_most=MOST_NEW)
    return c, whole("context", context, at_most=MOST_CONTEXT)


def pairs_readouts(**settings: Any) -> tuple[Readout, ...]:
    """The pairs of the chunk, and what counting all cells would make of them, at the settings of `pairs_of_chunk`."""
    c, h = chunk_and_context(settings["new_tokens"], settings["context"])
    one_of("shaded", settings["shaded"], Shaded)
    pairs, within, cells = causal_pairs(c, h), causal_pairs(c), c * (h + c)
    return (
        Readout("pairs", pairs),
        Readout("of them with the context", pairs - within),
        Readout("of them within the chunk", within),
        Readout("cells, the future counted too", cells),
        Readout("pairs / cells", pairs / cells, "", 3),
        Readout("times the pairs without a context", pairs / within, "", 1),
    )


def _ask_first_chunk() -> Question:
    c = 4
    answer = causal_pairs(c)
    return Question(
        text=f"A prompt begins with a chunk of {c} tokens. Each of them looks at itself and at what stands before it. "
        "How many pairs of tokens are that?",
        choices=(str(c * c), str(c * (c - 1)), str(answer), str(c * (c - 1) // 2)),
        answer=str(answer),
        reveals={"new_tokens": c, "context": 0, "shaded": Shaded.ALL},
        because=f"{_sum_of(c)}, for the last token looks at {c}, the first at itself only. A square has "
        f"{c * c} cells, of which {c * c - answer} are future. The longer the chunk, the nearer to half.",
    )


def _ask_behind_context() -> Question:
    c, h = 4, 16
    alone, answer = causal_pairs(c), causal_pairs(c, h)
    return Question(
        text=f"A chunk of {c} tokens makes {alone} pairs when nothing stands before it. Now {h} tokens do, and their "
        "KV is kept. How many pairs does the same chunk make?",
        choices=(str(alone + h), str(answer), str(c * (h + c)), str(causal_pairs(h + c))),
        answer=str(answer),
        reveals={"new_tokens": c, "context": h},
        because=f"Each new token also looks at all of the context: {c} x {h} = {answer - alone} pairs more. The old "
        "tokens ask nothing again. The triangle stays, the rectangle grows with the context.",
    )


def _why_pairs_still(moved: str, settings: Mapping[str, Any]) -> str:
    if moved == "shaded" and settings["new_tokens"] == 1:
        return "A single new token has no future within its chunk, so there is nothing more to shade."
    return ""


FIRST_CHUNK_EXPLORATION = Exploration(
    question=_ask_first_chunk,
    in_view=("new_tokens", "shaded"),
    settings={
        "the whole square": {"shaded": Shaded.ALL},
        "a chunk of 12": {"new_tokens": 12, "shaded": Shaded.ALL},
        "one token": {"new_tokens": 1},
    },
    readouts=pairs_readouts,
    why_still=_why_pairs_still,
)
BEHIND_CONTEXT_EXPLORATION = Exploration(
    question=_ask_behind_context,
    in_view=("new_tokens", "context", "shaded"),
    settings={
        "the first chunk": {"context": 0},
        "far behind": {"context": 32},
        "a decode step": {"new_tokens": 1, "context": 32},
    },
    readouts=pairs_readouts,
    why_still=_why_pairs_still,
)


def _draw_cells(axes: Axes, c: int, h: int, with_future: bool) -> None:
    """One line a new token, one column a token that it could look at."""
    future = style.look("queue") if with_future else style.look("queue") | {"facecolor": style.PAPER, "hatch": ""}
    looks = {"context": style.look("prefill"), "within": style.look("decode"), "future": future}
    cells: dict[str, list[list[tuple[int, int]]]] = {kind: [] for kind in looks}
    for y, x in product(range(c), range(h + c)):
        kind = "context" if x < h else "within" if x <= h + y else "future"
        cells[kind].append([(x, y), (x + 1, y), (x + 1, y + 1), (x, y + 1)])
    for kind, corners in cells.items():
        axes.add_collection(PolyCollection(corners, clip_on=False, **looks[kind]))


def _count_rows(axes: Axes, c: int, h: int, wide: float, high: float) -> None:
    """The pairs of each new token right of its line, or of every few where the lines are thin."""
    every = next(step for step in range(1, c + 1) if step * high >= style.TEXT_PT + 3 or step == c)
    for row in range(c - 1, -1, -every):
        axes.text(h + c + 6 / wide, row + 0.5, str(causal_pairs(1, h + row)), va="center")


def _draw_key(page: Figure, c: int, h: int, with_future: bool, text: Mapping[str, str]) -> None:
    within, every = causal_pairs(c), {"new": c, "context": h}
    swatch(page, LEFT_PT, 28, text["within"].format(sum=_sum_of(c)), "decode")
    if h:
        swatch(page, 214, 28, text["context"].format(**every, pairs=c * h), "prefill")
    total = text["total"].format(pairs=causal_pairs(c, h))
    if with_future and c > 1:
        swatch(page, 214, 8, text["future"].format(cells=c * c - within), "queue")
    write(page, LEFT_PT, 8, total)


def _sum_of(tokens: int) -> str:
    """The pairs within a chunk, token by token: 1 + 2 + 3 + 4 = 10."""
    terms = " + ".join(map(str, range(1, tokens + 1))) if tokens <= 4 else f"1 + 2 + … + {tokens}"
    return f"{terms} = {causal_pairs(tokens)}" if tokens > 1 else terms
