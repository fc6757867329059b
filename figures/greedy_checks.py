"""The figure of a greedy verification: a draft, what the target chooses beside it, what the text and its KV become."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from figures import style
from figures.exploration import Exploration, Question, Readout, Slider
from figures.page import box, new_page, swatch, write
from figures.words import words
from lib.checks import whole
from lib.greedy_check import DIFFERS_AT, DRAFT_TOKENS, LONGEST_EXAMPLE, GreedyCheck, example

# Tokens of the text so far that are drawn; a round does the same behind any number of them.
KNOWN_TOKENS = 3
PAGE_PT, LEFT_PT, BOTTOM_PT, WIDTH_PT, HEIGHT_PT = 234, 108, 30, 302, 204
# In the box: the lower edges of the four rows of cells, the names of columns above, and the bracket below.
DRAFT_PT, TARGET_PT, TEXT_PT, KV_PT = 160, 122, 82, 42
CELL_PT, NAMES_PT, SIGN_PT, BRACKET_PT = 20, 190, 151, 34
WIDEST_PT, GAP_PT = 38, 1.5
SIGNS = {True: "=", False: "≠"}
_KNOWN: dict[str, Any] = {"facecolor": style.REQUEST["A"], "edgecolor": style.INK, "linewidth": style.THIN_PT}
_EMPTY: dict[str, Any] = {
    "facecolor": style.PAPER, "edgecolor": style.FAINT, "linewidth": style.THIN_PT, "linestyle": (0, (3, 2)),
}  # fmt: skip
_LOOKS = {"known": _KNOWN, "empty": _EMPTY} | {role: style.look(role) for role in ("decode", "shared", "queue")}
_OVER_HATCH = {"facecolor": style.PAPER, "edgecolor": "none", "pad": 0.5}

# Column, lower edge and look of a cell, and the token that is written in it.
Cell = tuple[int, float, str, str]


def round_of(draft_tokens: int, differs_at: int) -> GreedyCheck:
    """The round that the figure's parameters describe; a difference beyond the draft is none in it."""
    length = whole("draft_tokens", draft_tokens, at_least=1, at_most=LONGEST_EXAMPLE)
    place = whole("differs_at", differs_at, at_least=1, at_most=LONGEST_EXAMPLE + 1)
    return example(length, min(place, length + 1))


def greedy_check(
    *,
    draft_tokens: Annotated[int, Slider("draft, tokens", 1, LONGEST_EXAMPLE, 1)] = DRAFT_TOKENS,
    differs_at: Annotated[int, Slider("first difference", 1, LONGEST_EXAMPLE + 1, 1)] = DIFFERS_AT,
    language: str = "en",
) -> Figure:
    """A draft, the target's choice at each of its positions, and the text and the KV that count after the round.

    Raises InputError for values that make no sense. Source: section 8.5.1, figure 8-29.
    """
    came, text = round_of(draft_tokens, differs_at), words(language, "greedy-check")
    columns = KNOWN_TOKENS + len(came.choices)
    wide = min(WIDEST_PT, WIDTH_PT / columns)
    with style.in_book_style():
        page = new_page(PAGE_PT)
        axes = box(page, LEFT_PT, BOTTOM_PT, WIDTH_PT, HEIGHT_PT)
        axes.set(xlim=(0, WIDTH_PT / wide), ylim=(0, HEIGHT_PT))
        axes.set_axis_off()
        rows = {"draft": DRAFT_PT, "target": TARGET_PT, "text": TEXT_PT, "kv": KV_PT}
        for key, bottom in rows.items():
            write(page, 14, BOTTOM_PT + bottom + CELL_PT / 2, text[key], va="center")
        _draw_cells(axes, [*_above(came), *_below(came)], GAP_PT / wide)
        _name_columns(axes, came, text["known"])
        _compare(axes, came)
        _bracket(axes, came, GAP_PT / wide, text["written"].format(rows=len(came.choices)))
        for left, role in ((14, "decode"), (104, "shared"), (226, "queue")):
            swatch(page, left, 28, text[role], role)
        known = KNOWN_TOKENS + len(came.outputs)
        amounts = {"outputs": len(came.outputs), "accepted": came.accepted, "last": chr(came.outputs[-1])}
        write(page, 14, 8, text["sum"].format(kept=came.kv_kept(KNOWN_TOKENS), known=known, **amounts))
    return page


def _above(came: GreedyCheck) -> Iterable[Cell]:
    """The text so far and the draft behind it; below the draft what the target chooses there, and one position on."""
    for column in range(KNOWN_TOKENS):
        yield column, DRAFT_PT, "known", ""
    for place, token in enumerate(came.draft):
        yield KNOWN_TOKENS + place, DRAFT_PT, "decode" if place < came.accepted else "queue", chr(token)
    for place, token in enumerate(came.choices):
        is_void = place + 1 in came.void_positions
        look = "queue" if is_void else "decode" if place < came.accepted else "shared"
        yield KNOWN_TOKENS + place, TARGET_PT, look, "" if is_void else chr(token)


def _below(came: GreedyCheck) -> Iterable[Cell]:
    """The text after the round, and below each of its places what is in KV there."""
    for column in range(KNOWN_TOKENS):
        yield column, TEXT_PT, "known", ""
    for place, token in enumerate(came.outputs):
        yield KNOWN_TOKENS + place, TEXT_PT, "decode" if place < came.accepted else "shared", chr(token)
    written, kept = came.kv_written(KNOWN_TOKENS), came.kv_kept(KNOWN_TOKENS)
    for column in range(written):
        look = "known" if column < KNOWN_TOKENS else "decode" if column < kept else "queue"
        yield column, KV_PT, look, chr(came.draft[column - KNOWN_TOKENS]) if column >= KNOWN_TOKENS else ""
    if not came.discarded:  # else the last output's KV goes where that of a discarded token stands
        yield written, KV_PT, "empty", ""


def _draw_cells(axes: Axes, cells: Iterable[Cell], gap: float) -> None:
    corners: dict[str, list[Any]] = {look: [] for look in _LOOKS}
    for column, bottom, look, token in cells:
        left, right, top = column + gap, column + 1 - gap, bottom + CELL_PT
        corners[look].append([(left, bottom), (right, bottom), (right, top), (left, top)])
        behind = _OVER_HATCH if look in ("shared", "queue") else None
        if token:
            axes.text(column + 0.5, bottom + CELL_PT / 2, token, ha="center", va="center_baseline", bbox=behind)
    for look, found in corners.items():
        axes.add_collection(PolyCollection(found, clip_on=False, **_LOOKS[look]), autolim=False)


def _name_columns(axes: Axes, came: GreedyCheck, known: str) -> None:
    axes.text(KNOWN_TOKENS / 2, NAMES_PT, known, ha="center", va="center_baseline")
    for position in range(1, len(came.choices) + 1):
        axes.text(KNOWN_TOKENS + position - 0.5, NAMES_PT, str(position), ha="center", va="center_baseline")


def _compare(axes: Axes, came: GreedyCheck) -> None:
    """A sign between draft and choice at each position up to the first difference; beyond, nothing is compared."""
    for place in range(came.differs_at or came.accepted):
        sign = SIGNS[place < came.accepted]
        axes.text(KNOWN_TOKENS + place + 0.5, SIGN_PT, sign, ha="center", va="center")


def _bracket(axes: Axes, came: GreedyCheck, gap: float, text: str) -> None:
    """Which cells of KV the step has written: that of the last known token and those of the draft."""
    start, end = KNOWN_TOKENS - 1 + gap, came.kv_written(KNOWN_TOKENS) - gap
    corners = [start, start, end, end], [BRACKET_PT + 4, BRACKET_PT, BRACKET_PT, BRACKET_PT + 4]
    axes.plot(*corners, color=style.INK, linewidth=style.LINE_PT, clip_on=False)
    axes.text(KNOWN_TOKENS - 1 + gap, BRACKET_PT - 5, text, va="top")


def greedy_readouts(**settings: Any) -> tuple[Readout, ...]:
    """What the round outputs, and what of its work remains, at the settings of `greedy_check`."""
    came = round_of(**settings)
    return (
        Readout("outputs", len(came.outputs)),
        Readout("draft tokens accepted", came.accepted),
        Readout("draft tokens thrown away", len(came.discarded)),
        Readout("rows verified", len(came.choices)),
        Readout("choices that are void", len(came.void_positions)),
        Readout("tokens of text after the round", KNOWN_TOKENS + len(came.outputs)),
        Readout("tokens written in KV by then", came.kv_written(KNOWN_TOKENS)),
        Readout("of them count (KV length)", came.kv_kept(KNOWN_TOKENS)),
    )


def _ask_for_a_draft_accepted_in_full() -> Question:
    book, full = example(), example(differs_at=DRAFT_TOKENS + 1)
    outputs, in_kv = len(full.outputs), full.kv_kept(KNOWN_TOKENS) - KNOWN_TOKENS
    answer = f"{outputs}, {in_kv} of them in KV"
    return Question(
        text=f"The target differs at position {book.differs_at} of {DRAFT_TOKENS}, and the round outputs "
        f"{len(book.outputs)} tokens. If it agrees with all {DRAFT_TOKENS} instead, how many tokens does the round "
        "output, and how many of these are in KV behind it?",
        choices=(f"{in_kv}, all in KV", answer, f"{outputs}, all in KV"),
        answer=answer,
        reveals={"differs_at": DRAFT_TOKENS + 1},
        because=f"{len(full.choices)} rows are computed, one behind the last known token and one behind each token of "
        "the draft, and each makes a choice: the accepted prefix and always exactly one token more. That last token "
        "has only been chosen. Its own KV is computed by the next round.",
    )


def _why_greedy_still(moved: str, settings: Mapping[str, Any]) -> str:
    return f"The draft has only {settings['draft_tokens']} tokens: a difference beyond them is none, all are accepted."


GREEDY_EXPLORATION = Exploration(
    question=_ask_for_a_draft_accepted_in_full,
    in_view=("draft_tokens", "differs_at"),
    settings={
        "agreed in full": {"differs_at": DRAFT_TOKENS + 1},
        "wrong at once": {"differs_at": 1},
        "twice the draft, same difference": {"draft_tokens": 2 * DRAFT_TOKENS},
    },
    readouts=greedy_readouts,
    why_still=_why_greedy_still,
)
