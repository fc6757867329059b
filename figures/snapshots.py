"""The figure of snapshots of a recurrent state: how far the text matches, and from where a request can go on."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from figures import style
from figures.exploration import Choice, Exploration, Question, Readout, Slider
from figures.lines import ticks_left, token_axis
from figures.page import box, new_page, swatch, write
from figures.words import words
from lib.checks import one_of, whole
from lib.state_cache import (
    CARDS,
    KIMI_K3,
    MATCHED_TOKENS,
    SPACING_TOKENS,
    CachedText,
    RecurrentState,
    cached_text,
    mean_between_snapshots,
)
from lib.units import shown

PAGE_PT, LEFT_PT, WIDTH_PT = 250, 100, 306
# Heights on the page: the axis, and from the top the two names of places and the three lanes.
AXIS_PT, MATCH_PT, RESUME_PT, KV_PT, SNAPSHOTS_PT, STATE_PT = 110, 236, 220, 192, 162, 132
BAR_PT, MARK_PT = 15, 6
MOST_MATCHED, MOST_BEYOND = 16_384, 8192
AXIS_ENDS = (12_288, MOST_MATCHED, MOST_MATCHED + MOST_BEYOND)
# So much room the name of a place needs left of its line, and the number of recomputed tokens in its bar.
NAME_PT, NUMBER_PT = 170, 34
_DASHES = (0, (4, 2))
_OVER = {"facecolor": style.PAPER, "edgecolor": "none", "pad": 1}
_MARK: dict[str, Any] = {"marker": "D", "linestyle": "", "markersize": MARK_PT, "markeredgewidth": style.LINE_PT}
_KEPT = _MARK | {"color": style.INK}
_DROPPED = _MARK | {"markeredgecolor": style.FAINT, "markerfacecolor": style.PAPER}
_CHOSEN = _MARK | {"color": style.LIMIT, "markersize": 2 * MARK_PT, "markerfacecolor": "none"}


class Keep(StrEnum):
    """Which snapshots of a text are kept."""

    ALL = "all"
    LAST = "the last few"


@dataclass(frozen=True)
class Case:
    """A text with the snapshots that are kept of it, those that were ever made, a match, and the state on one card."""

    text: CachedText
    made: CachedText
    matched: int
    state: RecurrentState


def case_of(matched: int, spacing: int, keep: str, beyond: int, last: int, cards: int) -> Case:
    """What the figure's parameters describe."""
    tokens = whole("matched", matched, at_most=MOST_MATCHED) + whole("beyond", beyond, at_most=MOST_BEYOND)
    kept = whole("last", last, at_least=1, at_most=AXIS_ENDS[-1])
    made = cached_text(tokens, spacing)
    text = made if one_of("keep", keep, Keep) == Keep.ALL else cached_text(tokens, spacing, kept)
    return Case(text, made, matched, KIMI_K3.on_each_of(cards))


def resume_from_snapshot(
    *,
    matched: Annotated[int, Slider("match ends at", 0, MOST_MATCHED, 256)] = MATCHED_TOKENS,
    spacing: Annotated[int, Slider("snapshot every", 256, 8192, 256)] = SPACING_TOKENS,
    keep: Annotated[Keep, Choice("kept", tuple(Keep))] = Keep.ALL,
    beyond: Annotated[int, Slider("cached beyond it", 0, MOST_BEYOND, 512)] = 0,
    last: Annotated[int, Slider("last ones kept", 1, 8, 1)] = 2,
    cards: Annotated[int, Choice("cards (TP)", (1, 2, 4, 8, 16))] = CARDS,
    language: str = "en",
) -> Figure:
    """How far a text matches, where its snapshots are, and from which of them its recurrent layers go on.

    Lengths in tokens. Raises InputError for values that make no sense. Source: figure 8-19.
    """
    case = case_of(matched, spacing, keep, beyond, last, cards)
    resume, end = case.text.resume_at(matched), next(end for end in AXIS_ENDS if end >= case.text.tokens)
    text = words(language, "snapshot-resume")
    with style.in_book_style():
        page = new_page(PAGE_PT)
        axes = box(page, LEFT_PT, AXIS_PT, WIDTH_PT, PAGE_PT - AXIS_PT)
        axes.set(ylim=(AXIS_PT, PAGE_PT))
        token_axis(axes, end, text["tokens"])
        ticks_left(axes, {})
        for height, key in ((KV_PT, "attention"), (SNAPSHOTS_PT, "snapshots"), (STATE_PT, "recurrent")):
            write(page, 14, height + BAR_PT / 2, text[key], va="center")
        _bar(axes, "decode", 0, matched, KV_PT)
        _bar(axes, "queue", matched, case.text.tokens, KV_PT)
        _bar(axes, "shared", 0, resume, STATE_PT)
        _bar(axes, "prefill", resume, matched, STATE_PT)
        _mark_snapshots(axes, case, resume, spacing * WIDTH_PT / end)
        _name_place(axes, end, matched, MATCH_PT, text["match"].format(place=f"{matched:,}"))
        name = text["resume"] if resume else text["beginning"]
        _name_place(axes, end, resume, RESUME_PT, name.format(place=f"{resume:,}"))
        if (matched - resume) * WIDTH_PT / end > NUMBER_PT:
            middle = (resume + matched) / 2, STATE_PT + BAR_PT / 2
            axes.text(*middle, f"{matched - resume:,}", ha="center", va="center", bbox=_OVER)
        _draw_key(page, text, case)
    return page


def _bar(axes: Axes, look: str, start: int, stop: int, bottom: float) -> None:
    if start < stop:
        corners = [(start, bottom), (stop, bottom), (stop, bottom + BAR_PT), (start, bottom + BAR_PT)]
        axes.add_collection(PolyCollection([corners], zorder=2, **style.look(look)), autolim=False)


def _mark_snapshots(axes: Axes, case: Case, resume: int, spacing_pt: float) -> None:
    """Each snapshot that was made; those not kept are hollow, and a ring is around the one that is gone back to."""
    height, size = SNAPSHOTS_PT + BAR_PT / 2, min(MARK_PT, 0.75 * spacing_pt)
    dropped = sorted(set(case.made.snapshots) - set(case.text.snapshots))
    for places, look in ((dropped, _DROPPED), (case.text.snapshots, _KEPT)):
        axes.plot(places, [height] * len(places), clip_on=False, zorder=3, **look | {"markersize": size})
    if resume:
        axes.plot(resume, height, clip_on=False, zorder=3, **_CHOSEN)


def _name_place(axes: Axes, end: int, place: int, height: float, name: str) -> None:
    """A dashed line through all lanes, and its name on the side where there is room for it."""
    axes.plot(
        [place] * 2, [AXIS_PT, height + 9], color=style.LIMIT, linestyle=_DASHES, linewidth=style.LINE_PT, zorder=1
    )
    is_far = LEFT_PT + place * WIDTH_PT / end > NAME_PT
    side: dict[str, Any] = {"ha": "right" if is_far else "left", "xytext": (-4 if is_far else 4, 0)}
    axes.annotate(name, (place, height), textcoords="offset points", color=style.LIMIT, bbox=_OVER, zorder=4, **side)


def _draw_key(page: Figure, text: Mapping[str, str], case: Case) -> None:
    width, height = page.get_size_inches() * 72
    marks = [(21, 48, _KEPT, "kept")]
    swatch(page, 14, 62, text["found"], "decode")
    swatch(page, 214, 62, text["restored"], "shared")
    swatch(page, 214, 44, text["recomputed"], "prefill")
    if case.text.tokens > case.matched:
        swatch(page, 14, 8, text["differs"], "queue")
    if case.text != case.made:
        marks.append((221, 12, _DROPPED, "dropped"))
    for left, middle, look, key in marks:
        page.add_artist(Line2D([left / width], [middle / height], **look))
        write(page, left + 13, middle - 4, text[key])
    one, all_of_them = case.state.snapshot_bytes, case.text.stored_bytes(case.state.snapshot_bytes)
    amounts = {"each": shown(one, "MiB", 1), "all": shown(all_of_them, "MiB", 1), "count": len(case.text.snapshots)}
    cards = KIMI_K3.heads // case.state.heads
    write(page, 14, 26, text["stored"].format(cards=cards, **amounts))


def snapshot_readouts(**settings: Any) -> tuple[Readout, ...]:
    """Where it goes on, what that costs and what the snapshots take, at the settings of `resume_from_snapshot`."""
    case = case_of(**settings)
    each = case.state.snapshot_bytes
    return (
        Readout("goes on from token", case.text.resume_at(case.matched)),
        Readout("tokens recomputed", case.text.recomputed(case.matched)),
        Readout("mean if all are kept", mean_between_snapshots(settings["spacing"])),
        Readout("mean over this text, as kept", case.text.mean_recomputed),
        Readout("snapshots kept", len(case.text.snapshots)),
        Readout("a snapshot, per card", each, "MiB", 1),
        Readout("stored per card", case.text.stored_bytes(each), "MiB"),
        Readout("stored on all cards", settings["cards"] * case.text.stored_bytes(each), "MiB"),
    )


def _ask_for_half_the_spacing() -> Question:
    half = SPACING_TOKENS // 2
    wide, narrow = (cached_text(MATCHED_TOKENS, spacing) for spacing in (SPACING_TOKENS, half))
    before, after = (text.recomputed(MATCHED_TOKENS) for text in (wide, narrow))
    mean, new_mean = (f"{mean_between_snapshots(spacing):,.0f}" for spacing in (SPACING_TOKENS, half))
    each = KIMI_K3.on_each_of(CARDS).snapshot_bytes
    stored, more = (shown(text.stored_bytes(each), "MiB") for text in (wide, narrow))

    def choice(tokens: int, average: str) -> str:
        return f"{before:,} → {tokens:,}; the average {average}"

    is_half = choice(after, "to half")
    return Question(
        text=f"The text matches up to token {MATCHED_TOKENS:,}. With a snapshot every {SPACING_TOKENS} tokens the "
        f"recurrent layers go on from {wide.resume_at(MATCHED_TOKENS)}, and {before:,} tokens are recomputed. With one "
        f"every {half}, what becomes of this match, and of the average one?",
        choices=(
            choice(before // 2, "to half"),
            is_half,
            choice(after, f"to {after / before:.0%}, too".replace("%", " %")),
            choice(before, "stays as well"),
        ),
        answer=is_half,
        reveals={"spacing": half},
        because=f"Now a snapshot is at {narrow.resume_at(MATCHED_TOKENS):,}, near the end of this match: luck. A match "
        f"that ends anywhere between two snapshots costs {mean} tokens on average before and {new_mean} now. The "
        f"price: {len(narrow.snapshots)} snapshots instead of {len(wide.snapshots)}, {more} instead of {stored} on "
        "each card.",
    )


def _why_snapshots_still(moved: str, settings: Mapping[str, Any]) -> str:
    if moved == "last" and settings["keep"] == Keep.ALL:
        return "All snapshots are kept, however many the last ones are."
    if moved in ("last", "keep"):
        return "The text has no more snapshots than are kept anyway."
    return ""


SNAPSHOTS_EXPLORATION = Exploration(
    question=_ask_for_half_the_spacing,
    in_view=("matched", "spacing", "keep", "beyond"),
    settings={
        "one every 256 tokens": {"spacing": 256},
        "just short of a snapshot": {"matched": 2 * SPACING_TOKENS - 256},
        "keep the last two, match ends early": {"keep": Keep.LAST, "beyond": MOST_BEYOND},
    },
    readouts=snapshot_readouts,
    why_still=_why_snapshots_still,
)
