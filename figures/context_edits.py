"""Figures of a context that is edited: what is found again, what is processed anew, and what a summary costs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Annotated, Any

from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from figures import style
from figures.exploration import Choice, Exploration, Question, Readout, Slider
from figures.lines import round_above, round_ticks, ticks_below, ticks_left, token_axis
from figures.page import box, new_page, swatch
from figures.schedules import StepModel, clocks_of, model_of
from figures.words import words
from lib import context_edit as example
from lib.checks import one_of, whole
from lib.context_edit import Edit, Turn, append, break_even, rewrite, summarise, turns
from lib.step_time import NS, StepTime

MOST_APPENDED, MOST_SUMMARY, MOST_FURTHER = 4096, 4096, 50
BLOCKS = (1, 16, 64, 256)
# A word near the front of the history, such as one that is asked about.
EARLY_TOKEN = example.EQUAL_TOKENS
PAGE_PT, LEFT_PT, WIDTH_PT, BOTTOM_PT, HEIGHT_PT = 252, 14, 392, 78, 168
BAR_PT, PITCH_PT, LABEL_PT = 15, 42, 4
TOKENS_END = 12 * 1024
# What a part of a bar stands for, and how it looks. The book has what is found in blue, what is processed in orange.
ROLES = {"found": "prefill", "processed": "foreign", "written": "decode", "further": "queue"}


class Shown(StrEnum):
    """What the length of a bar is."""

    TOKENS = "tokens"
    SECONDS = "seconds"


@dataclass(frozen=True)
class Ways:
    """The three ways of an update, how many turns follow each, and the model of their times."""

    kept: Edit
    rewritten: Edit
    summarised: Edit
    further: int
    step_time: StepModel

    def seconds(self, edit: Edit) -> float:
        """Time of all turns of a way."""
        return sum(turn.time_ns for turn in _turns(edit, self.further, model_of(self.step_time))) / NS

    def carried(self, edit: Edit) -> int:
        """Tokens in KV after the last turn."""
        return _turns(edit, self.further, model_of(self.step_time))[-1].carried


@lru_cache(256)
def _turns(edit: Edit, further: int, step_time: StepTime) -> tuple[Turn, ...]:
    return turns(edit, further, step_time)


@lru_cache(256)
def _pays(summarised: Edit, kept: Edit, step_time: StepTime, in_time: bool) -> str:
    after = break_even(summarised, kept, _time_ns if in_time else _carried, step_time)
    if after is None:
        return f"not in {example.MOST_TURNS:,}"
    return "1 turn" if after == 1 else f"{after:,} turns"


def _time_ns(turn: Turn) -> int:
    return turn.time_ns


def _carried(turn: Turn) -> int:
    return turn.carried


def ways_of(
    position: int = 0,
    summary: int = example.SUMMARY_TOKENS,
    further: int = 0,
    appended: int = example.APPENDED_TOKENS,
    step_time: StepModel = StepModel.LAUNCH_BOUND,
    block_tokens: int = 1,
) -> Ways:
    """The three ways that the figure's parameters describe."""
    new, block = whole("appended", appended, at_most=MOST_APPENDED), one_of("block_tokens", block_tokens, BLOCKS)
    return Ways(
        append(new, block_tokens=block),
        rewrite(position, new, block_tokens=block),
        summarise(summary, new, block_tokens=block),
        whole("further", further, at_most=MOST_FURTHER),
        one_of("step_time", step_time, StepModel),
    )


def context_edits(
    *,
    position: Annotated[int, Slider("rewrite token", 0, example.HISTORY_TOKENS, 4)] = 0,
    summary: Annotated[int, Slider("summary", 512, MOST_SUMMARY, 256)] = example.SUMMARY_TOKENS,
    further: Annotated[int, Slider("further turns", 0, MOST_FURTHER, 1)] = 0,
    shown: Annotated[Shown, Choice("bars show", tuple(Shown))] = Shown.TOKENS,
    appended: Annotated[int, Slider("a turn appends", 0, MOST_APPENDED, 256)] = example.APPENDED_TOKENS,
    step_time: Annotated[StepModel, Choice("step time", tuple(StepModel))] = StepModel.LAUNCH_BOUND,
    block_tokens: Annotated[int, Choice("block, tokens", BLOCKS)] = 1,
    language: str = "en",
) -> Figure:
    """Three updates of a history: what of the next prompt is found and what is processed, and the turns behind it.

    Raises InputError for values that make no sense. Source: figure 8-20.
    """
    ways = ways_of(position, summary, further, appended, step_time, block_tokens)
    in_tokens = one_of("shown", shown, Shown) is Shown.TOKENS
    text = words(language, "context-edits")
    with style.in_book_style():
        page = new_page(PAGE_PT)
        axes = box(page, LEFT_PT, BOTTOM_PT, WIDTH_PT, HEIGHT_PT)
        bars = list(_bars_of_tokens(ways) if in_tokens else _bars_of_seconds(ways))
        longest = max(sum(bar.values()) for bar in bars)
        axes.set_ylim(0, HEIGHT_PT)
        ticks_left(axes, {})
        if in_tokens:
            token_axis(axes, _end_of_tokens(longest), text["tokens"])
        else:
            axes.set_xlim(0, end := round_above(1.02 * longest))
            by = text["by_fit"] if ways.step_time == StepModel.FIT else text["by_device"]
            ticks_below(axes, {tick: f"{tick:g}" for tick in round_ticks(end)}, by)
        _draw_bars(axes, bars)
        for place, (name, told) in enumerate(_told(ways, text, in_tokens)):
            above = _bottom(place) + BAR_PT + LABEL_PT
            axes.text(0, above, name)
            axes.text(axes.get_xlim()[1], above, told, ha="right")
        for place, role in enumerate(role for role in ROLES if any(bar.get(role) for bar in bars)):
            swatch(page, LEFT_PT + 190 * (place % 2), 28 - 18 * (place // 2), text[role], ROLES[role])
    return page


Bar = dict[str, float]  # lengths of its parts, by role, from left to right


def _bars_of_tokens(ways: Ways) -> Iterator[Bar]:
    """What stands in KV at the end, part by part, and before that what stands there once a summary is written."""
    short = ways.summarised
    for edit in (ways.kept, ways.rewritten, short):
        if edit.written:
            yield {"found": short.history - short.history_to_process, "processed": short.history_to_process,
                   "written": short.written}  # fmt: skip
        later = ways.carried(edit) - edit.prompt
        yield {"found": edit.reusable, "processed": edit.to_process, "further": later}


def _bars_of_seconds(ways: Ways) -> Iterator[Bar]:
    """Time of each part of the work."""
    model = model_of(ways.step_time)
    for edit in (ways.kept, ways.rewritten, ways.summarised):
        if edit.written:
            yield {"written": edit.write_ns(model) / NS}
        later = ways.seconds(edit) - edit.time_ns(model) / NS
        yield {"processed": edit.process_ns(model) / NS, "further": later}


def _told(ways: Ways, text: Mapping[str, str], in_tokens: bool) -> Iterator[tuple[str, str]]:
    """What stands above each bar, at its left and at the right."""
    kept, changed, short = ways.kept, ways.rewritten, ways.summarised
    new = _in_k(kept.appended)
    at_end = changed.unchanged == changed.history
    names = (
        text["append"].format(new=new),
        text["at_end" if at_end else "rewrite"].format(position=f"{changed.unchanged:,}", new=new),
        text["write"].format(summary=_in_k(short.written)),
        text["then"].format(summary=_in_k(short.written), new=new),
    )
    if in_tokens:
        sums = [
            text["sum"].format(found=_in_k(edit.reusable), processed=_in_k(edit.to_process))
            for edit in (kept, changed, short)
        ]
        sums.insert(2, text["sum_written"].format(found=_in_k(short.history), written=_in_k(short.written)))
    else:
        sums = [_in_s(sum(bar.values())) for bar in _bars_of_seconds(ways)]
    return zip(names, sums, strict=True)


def _in_s(seconds: float) -> str:
    return f"{seconds:.2f} s"


def _in_k(tokens: int) -> str:
    """A number of tokens, in units of 1024 where these are few digits."""
    return f"{tokens / 1024:g}K" if tokens and tokens % 256 == 0 else f"{tokens:,}"


def _end_of_tokens(longest: float) -> int:
    """Where an axis of tokens ends: it doubles where a bar is longer, so that it rarely moves."""
    end = TOKENS_END
    while end < longest:
        end *= 2
    return end


def _bottom(place: int) -> float:
    return HEIGHT_PT - (place + 1) * PITCH_PT + 6


def _draw_bars(axes: Axes, bars: list[Bar]) -> None:
    corners: dict[str, list[list[tuple[float, float]]]] = {role: [] for role in ROLES}
    for place, bar in enumerate(bars):
        left, low = 0.0, _bottom(place)
        for role, length in bar.items():
            right, top = left + length, low + BAR_PT
            if length:
                corners[role].append([(left, low), (right, low), (right, top), (left, top)])
            left = right
    for role, each in corners.items():
        if each:
            axes.add_collection(PolyCollection(each, clip_on=False, **style.look(ROLES[role])), autolim=False)


def edits_readouts(**settings: Any) -> tuple[Readout, ...]:
    """What each way finds, processes, carries and takes, at the settings of `context_edits`."""
    ways = _at(settings)
    kept, changed, short = ways.kept, ways.rewritten, ways.summarised
    clocks = clocks_of(ways.step_time)
    return (
        Readout("tokens reusable: append", kept.reusable),
        Readout("tokens reusable: rewrite", changed.reusable),
        Readout("tokens to process: append", kept.to_process),
        Readout("tokens to process: rewrite", changed.to_process),
        Readout("tokens to process: summary", short.to_process),
        Readout("tokens written: summary", short.written),
        Readout("in KV while it is written", short.carried_beside),
        Readout("in KV at the end: history", ways.carried(kept)),
        Readout("in KV at the end: summary", ways.carried(short)),
        Readout("all turns: append", ways.seconds(kept), "s", 2, clocks),
        Readout("all turns: rewrite", ways.seconds(changed), "s", 2, clocks),
        Readout("all turns: summary", ways.seconds(short), "s", 2, clocks),
        Readout("summary pays in KV after", _pays(short, kept, model_of(ways.step_time), in_time=False)),
        Readout("summary pays in time after", _pays(short, kept, model_of(ways.step_time), in_time=True)),
    )


def _at(settings: Mapping[str, Any]) -> Ways:
    one_of("shown", settings["shown"], Shown)
    return ways_of(**{name: value for name, value in settings.items() if name != "shown"})


def _ask_what_is_reusable() -> Question:
    changed, kept = rewrite(EARLY_TOKEN), append()
    in_blocks = rewrite(EARLY_TOKEN, block_tokens=BLOCKS[1])
    return Question(
        text=f"A history of {_in_k(kept.history)} tokens has its KV in the cache. Before the next turn one word is "
        f"rewritten, token {EARLY_TOKEN} counted from 0; all the text behind it stays the same. How many tokens are "
        "reusable?",
        choices=(_in_k(kept.history), f"{kept.history - 1:,}", _in_k(kept.history // 2), f"{changed.reusable}"),
        answer=f"{changed.reusable}",
        reveals={"position": EARLY_TOKEN},
        because=f"The KV of a token depends on all tokens before it, so nothing behind the changed one can be used "
        f"again: {changed.to_process:,} tokens are processed instead of {kept.to_process:,}. A cache of whole blocks "
        f"of {BLOCKS[1]} tokens finds {in_blocks.reusable} only. What changes from turn to turn belongs at the end.",
    )


def _why_edits_still(moved: str, settings: Mapping[str, Any]) -> str:
    ways = _at(settings)
    block = ways.kept.block_tokens
    if moved == "position":
        return f"Only whole blocks are found, and both tokens are in the same block of {block}."
    if moved == "block_tokens":
        return "What is found ends at the border of a block of either size."
    if moved == "further" and not ways.kept.appended:
        return "A turn that appends nothing adds nothing to a bar of tokens."
    return ""


EDITS_EXPLORATION = Exploration(
    question=_ask_what_is_reusable,
    in_view=("position", "summary", "further", "shown"),
    settings={
        f"a word at token {EARLY_TOKEN}": {"position": EARLY_TOKEN},
        "what it costs in seconds": {"shown": Shown.SECONDS},
        f"{MOST_FURTHER} further turns, seconds by the fit": {
            "further": MOST_FURTHER,
            "shown": Shown.SECONDS,
            "step_time": StepModel.FIT,
        },
    },
    readouts=edits_readouts,
    why_still=_why_edits_still,
)
