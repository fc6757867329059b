"""The figure of what a query for a draft may take: time per output with two drafts, beside plain decode."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from figures import style
from figures.exploration import Exploration, Question, Readout, Slider
from figures.lines import height_from_zero, label_ends, line_key, round_ticks, spread, ticks_below
from figures.page import box, new_page, write
from figures.words import words
from lib.checks import seconds, share
from lib.clocks import Clock
from lib.draft_length import RoundTime
from lib.speculation import (
    ACCEPTS_A,
    ACCEPTS_B,
    BASELINE,
    DRAFT_TOKENS,
    PLAIN_S,
    QUERY_S,
    Speculation,
    at_every_position,
    extra_verify_s,
)
from lib.units import shown

PAGE_PT, LEFT_PT, BOTTOM_PT, WIDTH_PT, HEIGHT_PT = 268, 40, 98, 322, 130
# Beyond the book's setting the axis follows the query.
AXIS_END_MS = 60
TITLE_PT, KEY_PT = 252, 180
# Above the box stand the queries at which lines cross, kept apart and off both corners.
CROSSING_PT, APART_PT, CORNER_PT = HEIGHT_PT + 4, 44, 20
ROLES, LONGEST_SPELLED = {"A": "one", "B": "other"}, 4
# What the bytes of the measured step take at the card's peak bandwidth: a plain step that waits for nothing else.
AT_PEAK_S = BASELINE["read_time_at_peak_bandwidth_ms"] / 1e3
_DOT: dict[str, Any] = {"marker": "o", "markersize": 5, "linestyle": "", "color": style.INK, "clip_on": False}
_CROSSING: dict[str, Any] = {
    "marker": "D", "markersize": 6, "linestyle": "", "color": style.LIMIT, "markerfacecolor": style.PAPER,
    "markeredgewidth": style.LINE_PT,
}  # fmt: skip
_DROP: dict[str, Any] = {"color": style.LIMIT, "linestyles": [(0, (2, 2))], "linewidth": style.THIN_PT}


@dataclass(frozen=True)
class Draft:
    """A draft of one letter repeated, and what its rounds come to."""

    letter: str
    acceptance: float
    rounds: Speculation

    @property
    def name(self) -> str:
        """The letters themselves, as the chapter writes them, or how many there are."""
        length = len(self.rounds.acceptance)
        return self.letter * length if length <= LONGEST_SPELLED else f"{length} × {self.letter}"

    @property
    def pays_up_to_s(self) -> float | None:
        """The query with which an output takes a plain step; None where it takes longer whatever the query."""
        longest = self.rounds.break_even_draft_s
        return longest if longest > 0 else None

    def ms_per_output(self, query_ms: float) -> float:
        """What an output takes with a query of so many ms."""
        return (query_ms + 1e3 * self.rounds.verify_s) / self.rounds.outputs_per_round


def both_drafts(
    acceptance_a: float, acceptance_b: float, draft_tokens: int, query_s: float, plain_s: float, position_s: float
) -> tuple[Draft, Draft]:
    """The drafts that the figure's parameters describe; to verify takes a plain step and so much for each position."""
    plain = seconds("plain_s", plain_s, above_zero=True)
    verify_s = RoundTime(plain, row_s=seconds("position_s", position_s))
    shares = {"A": share("acceptance_a", acceptance_a), "B": share("acceptance_b", acceptance_b)}
    query = seconds("query_s", query_s)

    def drafted(letter: str) -> Draft:
        acceptance = at_every_position(shares[letter], draft_tokens)
        return Draft(letter, shares[letter], Speculation(acceptance, query, verify_s(draft_tokens), plain))

    return drafted("A"), drafted("B")


def query_cost(
    *,
    draft_tokens: Annotated[int, Slider("draft, tokens", 1, 12, 1)] = DRAFT_TOKENS,
    query_s: Annotated[float, Slider("query", 0.0, float(AXIS_END_MS), 0.05, "ms")] = QUERY_S,
    plain_s: Annotated[float, Slider("plain step", 5.0, 30.0, 0.01, "ms")] = PLAIN_S,
    position_s: Annotated[float, Slider("per position", 0.0, 3.0, 0.05, "ms")] = 0.0,
    acceptance_a: Annotated[float, Slider("A accepted, a", 0.0, 1.0, 0.01)] = ACCEPTS_A,
    acceptance_b: Annotated[float, Slider("B accepted, a", 0.0, 1.0, 0.01)] = ACCEPTS_B,
    language: str = "en",
) -> Figure:
    """Time of an output against the time that a query for a draft takes, for two drafts and for plain decode.

    Times in seconds; `position_s` is what each position beyond the first adds to verifying. Raises InputError for
    values that make no sense. Source: section 8.5.2, figure 8-32.
    """
    drafts = both_drafts(acceptance_a, acceptance_b, draft_tokens, query_s, plain_s, position_s)
    text, plain_ms, query_ms = words(language, "query-cost"), 1e3 * plain_s, 1e3 * query_s
    end = max(AXIS_END_MS, query_ms)
    with style.in_book_style():
        page = new_page(PAGE_PT)
        write(page, 14, TITLE_PT, text["height"])
        axes = box(page, LEFT_PT, BOTTOM_PT, WIDTH_PT, HEIGHT_PT)
        axes.set_xlim(0, end)
        ticks_below(axes, {tick: f"{tick:g}" for tick in round_ticks(end)}, text["width"])
        axes.axvline(query_ms, color=style.FAINT, linewidth=style.THIN_PT)
        axes.plot([0, end], [plain_ms] * 2, **style.line("weights"))
        for draft in drafts:
            axes.plot([0, end], [draft.ms_per_output(0), draft.ms_per_output(end)], **style.line(ROLES[draft.letter]))
        axes.plot([query_ms] * 2, [draft.ms_per_output(query_ms) for draft in drafts], zorder=4, **_DOT)
        ends = [*(draft.ms_per_output(end) for draft in drafts), plain_ms]
        height_from_zero(axes, max(*ends, *(draft.ms_per_output(0) for draft in drafts)))
        label_ends(axes, ends, [*(draft.name for draft in drafts), text["plain"]])
        _mark_crossings(page, axes, drafts, end, text["crossing"])
        _draw_key(page, drafts, text)
    return page


def _mark_crossings(page: Figure, axes: Axes, drafts: Sequence[Draft], end: float, meaning: str) -> None:
    """Where a draft is as quick as plain decode: a mark, a line through the query there, and above how long that is."""
    longest = [draft.pays_up_to_s for draft in drafts]
    places = [1e3 * each for each in longest if each is not None and 1e3 * each <= end]
    if not places:
        return
    plain_ms = 1e3 * drafts[0].rounds.plain_s
    axes.vlines(places, 0, axes.get_ylim()[1], **_DROP)
    axes.plot(places, [plain_ms] * len(places), zorder=3, clip_on=False, **_CROSSING)
    told = [*dict.fromkeys(places)]  # drafts that are accepted alike cross in one place
    above = spread([max(place / end * WIDTH_PT, CORNER_PT) for place in told], APART_PT)
    beyond = max(0, max(above) - (WIDTH_PT - CORNER_PT))
    for place, at_pt in zip(told, above, strict=True):
        where = LEFT_PT + at_pt - beyond, BOTTOM_PT + CROSSING_PT
        write(page, *where, shown(place / 1e3, "ms", 1), ha="center", color=style.LIMIT)
    width, height = page.get_size_inches() * 72
    page.add_artist(Line2D([KEY_PT / width], [(TITLE_PT + 4) / height], **_CROSSING))
    write(page, KEY_PT + 9, TITLE_PT, meaning)


def _draw_key(page: Figure, drafts: Sequence[Draft], text: Mapping[str, str]) -> None:
    for bottom, draft in zip((44, 26), drafts, strict=True):
        longest = draft.pays_up_to_s
        pays = text["never"] if longest is None else text["pays"].format(time=shown(longest, "ms", 1))
        amounts = {"outputs": f"{draft.rounds.outputs_per_round:.2f}", "time": _per_output(draft.rounds)}
        told = text["draft"].format(name=draft.name, acceptance=f"{draft.acceptance:g}", **amounts)
        line_key(page, 14, bottom, told + pays, ROLES[draft.letter])
    rounds = drafts[0].rounds
    times = {"plain": shown(rounds.plain_s, "ms", 2), "verify": shown(rounds.verify_s, "ms", 2)}
    step = text["measured"] if rounds.plain_s == PLAIN_S else text["assumed"]
    line_key(page, 14, 8, step.format(rows=_rows(rounds), **times), "weights")


def _rows(rounds: Speculation) -> int:
    """Positions that a round verifies: those of the draft and the one behind it."""
    return len(rounds.acceptance) + 1


def _digits(time: float) -> int:
    """Decimals of ms with which the chapter gives a time of an output."""
    return 2 if time < 0.01 else 1


def _per_output(rounds: Speculation) -> str:
    return shown(rounds.s_per_output, "ms", _digits(rounds.s_per_output))


def query_cost_readouts(**settings: Any) -> tuple[Readout, ...]:
    """What both drafts come to, and how long their query may take, at the settings of `query_cost`."""
    drafts = both_drafts(**settings)
    rounds = drafts[0].rounds
    plain = (Clock.ENGINE,) if rounds.plain_s == PLAIN_S else ()
    computed = (*plain, Clock.ASSUMED)
    found = []
    for draft in drafts:
        name, longest = draft.letter, draft.pays_up_to_s
        each_s, saved_s = draft.rounds.s_per_output, draft.rounds.saved_s_per_output
        pays = ("none",) if longest is None else (longest, "ms", 1, computed)
        found += [
            Readout(f"{name}: outputs a round, E[N]", draft.rounds.outputs_per_round, "", 2),
            Readout(f"{name}: an output takes", each_s, "ms", _digits(each_s), computed),
            Readout(f"{name}: saved an output", saved_s, "ms", 1, computed, signed=True),
            Readout(f"{name}: longest query that pays", *pays),
        ]
    return (
        *found,
        Readout("plain decode: an output takes", rounds.plain_s, "ms", 2, plain or (Clock.ASSUMED,)),
        Readout("rows verified", _rows(rounds)),
        Readout("to verify them takes", rounds.verify_s, "ms", 2, computed),
        Readout("a round, with the query", rounds.round_s, "ms", 2, computed),
        Readout(
            "computing the extra rows alone", extra_verify_s(settings["draft_tokens"], BASELINE["context_tokens"]),
            "ms", 1, (Clock.FLOP_RULE,),
        ),
    )  # fmt: skip


def _ask_for_a_quicker_step() -> Question:
    slow, quick = (
        Speculation(at_every_position(ACCEPTS_A, DRAFT_TOKENS), QUERY_S, plain_s, plain_s)
        for plain_s in (PLAIN_S, AT_PEAK_S)
    )
    plain, at_peak = shown(PLAIN_S, "ms", 2), shown(AT_PEAK_S, "ms", 2)
    same, answer, saved = (
        shown(time, "ms", 1)
        for time in (slow.break_even_draft_s, quick.break_even_draft_s, slow.plain_s - quick.break_even_draft_s)
    )
    more = slow.outputs_per_round - 1
    return Question(
        text=f"The first token of {'A' * DRAFT_TOKENS} is refused {100 * (1 - ACCEPTS_A):g} times of 100, yet beside a "
        f"plain step of {plain} its query may take {same}. If the same bytes were read at the card's peak bandwidth, a "
        f"plain step would take {at_peak}. How long may the query take then?",
        choices=(same, saved, answer, "no query pays"),
        answer=answer,
        reveals={"plain_s": AT_PEAK_S},
        because=f"A round outputs {slow.outputs_per_round:.2f} tokens on average and, with verification as long as a "
        f"plain step, has {more:.2f} plain steps left for the query. Where steps are quick, the same draft must be "
        "found quicker.",
    )


QUERY_COST_EXPLORATION = Exploration(
    question=_ask_for_a_quicker_step,
    in_view=("draft_tokens", "query_s", "plain_s", "position_s"),
    settings={
        "a plain step at peak bandwidth": {"plain_s": AT_PEAK_S},
        "a query of 20 ms": {"query_s": 0.02},
        "12 tokens, 1 ms per position": {"draft_tokens": 12, "position_s": 0.001},
    },
    readouts=query_cost_readouts,
    why_still=lambda moved, settings: "",
)
