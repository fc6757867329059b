"""Figures of a pool of KV blocks under load: what its size has to do with the tokens that are computed once more."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Annotated, Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from figures import machine, style
from figures.exploration import Choice, Exploration, Question, Readout, Slider
from figures.lines import round_above, ticks_below, ticks_left
from figures.page import box, new_page, swatch, write
from figures.words import words
from lib.checks import one_of, whole
from lib.clocks import Clock
from lib.design_problem import INSTANCE
from lib.memory import KvPool
from lib.pool_size import BLOCK_TOKENS, OUTPUT, PROMPT, REQUESTS, TOKEN_BUDGET, EqualRequests, recorded, tokens_again
from lib.residency import Gate
from lib.step_time import NS, Fit
from lib.units import GIB, shown

SMALL, LARGE = recorded()
RECORDED = EqualRequests()
BLOCK_BYTES = KvPool(INSTANCE.model, INSTANCE.kv_pool_bytes, BLOCK_TOKENS).bytes_of(BLOCK_TOKENS)
# All but one block of the largest pool in which somebody is still preempted.
ALMOST_ALL = RECORDED.blocks_of_all - 2
AXIS_ENDS, FEWEST_AGAIN = (1000, 1500, 2000, 3000, 5000, 10000, 20000), 1000
# Runs of more requests, and those in which prompts thrash, take longer: fewer sizes keep a move short.
_SIZES, _FEWER, _MANY_REQUESTS = 60, 20, 8
_RESERVE = 32
# One box holds both pictures, as a second would take as long to draw as all that is in it.
LEFT_PT, STRIP_PT, FLOOR_PT, HEIGHT_PT = 50, 26, 48, 152
_MEASURED: dict[str, Any] = {
    "marker": "D", "markersize": 7, "linestyle": "", "markerfacecolor": "none", "color": style.INK,
}  # fmt: skip
_SIMULATED: dict[str, Any] = {"color": style.LINE["fit"][0], "markersize": 3, "linewidth": style.THIN_PT}
_BARS: dict[str, Any] = {"color": style.LINE["fit"][0], "linewidth": 2, "zorder": 3}


class Sizes(StrEnum):
    """The pool sizes that are drawn."""

    MEASURED = "the two that were measured"
    ALL = "all, in even steps"


def load_at(requests: int, output: int, token_budget: int, gate: str, reserve_blocks: int) -> EqualRequests:
    """The requests and rules that the figure's parameters describe; the reserve counts by its own gate only."""
    reserve = whole("reserve_blocks", reserve_blocks, at_most=AXIS_ENDS[-1] - 1)
    gate = one_of("gate", gate, Gate)
    return EqualRequests(requests, output, token_budget, gate, reserve if gate == Gate.RESERVE else 0)


@dataclass(frozen=True)
class Outcome:
    """What is shown of a run: little, so that many can be kept."""

    tokens_again: int
    preemptions: int
    first_lost: int  # tokens in KV of the first to be preempted, 0 if nobody was
    total_ns: int
    peak_blocks: int


@lru_cache(4096)
def _ran(load: EqualRequests, blocks: int, step_time: Fit) -> Outcome:
    run = load.in_pool(blocks, step_time)
    assert run.peak_blocks is not None, "a run in a pool"
    lost = [one.lost_tokens for one in run.preemptions]
    return Outcome(tokens_again(run), len(lost), lost[0] if lost else 0, run.total_ns, run.peak_blocks)


def _outcome(load: EqualRequests, blocks: int) -> Outcome:
    return _ran(load, blocks, machine.fit())


def pool_size(
    *,
    sizes: Annotated[Sizes, Choice("pool sizes", tuple(Sizes))] = Sizes.MEASURED,
    blocks: Annotated[int, Slider("blocks", RECORDED.blocks_of_one, AXIS_ENDS[0], 1)] = SMALL.blocks,
    gate: Annotated[Gate, Choice("lets in for", tuple(Gate))] = Gate.WHOLE_SEQUENCE,
    requests: Annotated[int, Slider("requests", 2, 16, 1)] = REQUESTS,
    output: Annotated[int, Slider("outputs of each", 64, 1024, 64)] = OUTPUT,
    token_budget: Annotated[int, Slider("token budget", 128, 2048, 128)] = TOKEN_BUDGET,
    reserve_blocks: Annotated[int, Slider("reserve", 0, 96, 8)] = _RESERVE,
    language: str = "en",
) -> Figure:
    """Tokens computed once more, and preemptions, against the blocks of the pool; measured where it was.

    Raises InputError for values that make no sense. Source: section 8.3.2, record preemption.
    """
    load, drawn = _drawn(sizes, blocks, gate, requests, output, token_budget, reserve_blocks)
    came = [_outcome(load, size) for size in drawn]
    again, preempted = [one.tokens_again for one in came], [one.preemptions for one in came]
    text = words(language, "pool-size")
    end = next(end for end in AXIS_ENDS if end >= max(drawn))
    with style.in_book_style():
        page = new_page(262)
        write(page, 14, 246, text["again"])
        axes = box(page, LEFT_PT, 76, 356, HEIGHT_PT)
        axes.set(xlim=(0, end), ylim=(0, HEIGHT_PT))
        write(page, LEFT_PT + 4, 106, text["preemptions"])
        axes.axvspan(0, load.blocks_of_one, **style.look("queue"), zorder=0)
        axes.axhspan(STRIP_PT, FLOOR_PT - style.THIN_PT, facecolor=style.PAPER, zorder=0.5)
        axes.vlines([blocks] * 2, (0, FLOOR_PT), (STRIP_PT, HEIGHT_PT), color=style.LIMIT, zorder=1)
        axes.hlines(FLOOR_PT, 0, end, color=style.INK, linewidth=style.THIN_PT, zorder=1)
        most = round_above(1.02 * max(FEWEST_AGAIN, *again))
        heights = [FLOOR_PT + (HEIGHT_PT - FLOOR_PT) * each / most for each in again]
        bars_end = round_above(1.02 * max(2, *preempted))
        axes.vlines(drawn, 0, [STRIP_PT * each / bars_end for each in preempted], **_BARS)
        ticks = {FLOOR_PT + (HEIGHT_PT - FLOOR_PT) * part / 4: _short(part * most / 4) for part in range(5)}
        ticks_left(axes, {0: "0", STRIP_PT: _short(bars_end)} | ticks)
        _mark_gib(axes, end)
        ticks_below(axes, {place * end / 5: f"{place * end / 5:g}" for place in range(6)}, text["blocks"])
        joined = "-" if sizes == Sizes.ALL else ""
        axes.plot(drawn, heights, marker="o", linestyle=joined, clip_on=False, **_SIMULATED)
        if load == RECORDED:
            measured = [FLOOR_PT + (HEIGHT_PT - FLOOR_PT) * one.tokens_again / most for one in (SMALL, LARGE)]
            axes.plot([SMALL.blocks, LARGE.blocks], measured, clip_on=False, **_MEASURED)
        _draw_key(page, text, load, blocks)
    return page


def _drawn(
    sizes: str, blocks: int, gate: str, requests: int, output: int, token_budget: int, reserve_blocks: int
) -> tuple[EqualRequests, Sequence[int]]:
    """The load, and the sizes at which the figure shows it: the cursor's is among them."""
    load = load_at(requests, output, token_budget, gate, reserve_blocks)
    whole("blocks", blocks, at_most=AXIS_ENDS[-1], at_least=max(load.blocks_of_one, load.reserve_blocks + 1))
    if one_of("sizes", sizes, Sizes) == Sizes.MEASURED:
        return load, sorted({blocks, *(one.blocks for one in (SMALL, LARGE) if one.blocks >= load.blocks_of_one)})
    is_slow = load.gate == Gate.FIRST_CHUNK or load.requests > _MANY_REQUESTS
    return load, sorted({blocks, load.blocks_of_all - 1, *load.sizes(_FEWER if is_slow else _SIZES)})


def _mark_gib(axes: Axes, end: int) -> None:
    """Faint lines at whole GiB, named above the box, as many as there is room for."""
    most = math.floor(end * BLOCK_BYTES / GIB)
    every = math.ceil(most / 8)
    named = {gib * GIB / BLOCK_BYTES: f"{gib} GiB" for gib in range(every, most + 1, every)}
    axes.vlines(list(named), 0, HEIGHT_PT, color=style.FAINT, linewidth=style.THIN_PT, linestyle=(0, (1, 2)), zorder=0)
    for place, name in named.items():
        axes.text(place, HEIGHT_PT + 3, name, ha="center", va="bottom")


def _draw_key(page: Figure, text: Mapping[str, str], load: EqualRequests, blocks: int) -> None:
    width, height = page.get_size_inches() * 72
    swatch(page, 14, 26, text["refused"], "queue")
    page.add_artist(Line2D([234 / width], [30 / height], marker="o", **_SIMULATED))
    write(page, 244, 26, text["modelled"])
    if load == RECORDED:
        page.add_artist(Line2D([324 / width], [30 / height], **_MEASURED))
        write(page, 334, 26, text["measured"])
    came = _outcome(load, blocks)
    page.add_artist(Line2D([21 / width] * 2, [7 / height, 18 / height], color=style.LIMIT))
    again = f"{came.tokens_again:,}"
    gib, time = shown(blocks * BLOCK_BYTES, "GiB", 2), shown(came.total_ns / NS, "s", 1)
    write(page, 34, 8, text["now"].format(blocks=blocks, gib=gib, tokens=again, time=time), color=style.LIMIT)


def _short(number: float) -> str:
    """A round number in few signs, such as 2000, 40K and 1M."""
    for unit, per in (("M", 10**6), ("K", 10**3)):
        if number >= per and number > 9999:
            return f"{number / per:g}{unit}"
    return f"{number:g}"


def pool_size_readouts(**settings: Any) -> tuple[Readout, ...]:
    """What the run comes to in a pool of the cursor's size, at the settings of `pool_size`."""
    load, drawn = _drawn(**settings)
    came = _outcome(load, settings["blocks"])
    worst = max(drawn, key=lambda size: _outcome(load, size).tokens_again)
    most = _outcome(load, worst).tokens_again
    return (
        Readout("pool", settings["blocks"] * BLOCK_BYTES, "GiB", 2),
        Readout("tokens computed once more", came.tokens_again),
        Readout("preemptions", came.preemptions),
        Readout("tokens in KV of the first to be preempted", came.first_lost or "nobody"),
        Readout("all done after", came.total_ns / NS, "s", 2, (Clock.FIT,)),
        Readout("most blocks held at once", came.peak_blocks),
        Readout("blocks for all at their largest", load.blocks_of_all),
        Readout("most of any size drawn", f"{most:,} in {worst:,} blocks" if most else "none in any"),
    )


def _ask_between_the_two() -> Question:
    small, almost = RECORDED.in_pool(SMALL.blocks), RECORDED.in_pool(ALMOST_ALL)
    (earlier,), (later,) = small.preemptions, almost.preemptions
    between = round(SMALL.tokens_again * (LARGE.blocks - ALMOST_ALL) / (LARGE.blocks - SMALL.blocks))
    answer = tokens_again(almost)
    before, after = (shown(run.total_ns / NS, "s", 1) for run in (small, almost))
    return Question(
        text=f"Four requests of {PROMPT} tokens and {OUTPUT} outputs. In {SMALL.blocks} blocks one of them is "
        f"preempted, and {SMALL.tokens_again:,} tokens are computed once more; in {LARGE.blocks} blocks none. And in "
        f"{ALMOST_ALL} blocks?",
        choices=("none", f"{between:,}", f"{SMALL.tokens_again:,}", f"{answer:,}"),
        answer=f"{answer:,}",
        reveals={"blocks": ALMOST_ALL, "sizes": Sizes.ALL},
        because=f"The larger pool is full later. By then the victim has {later.outputs} outputs instead of "
        f"{earlier.outputs}, and the KV of all its tokens goes. Only from "
        f"{RECORDED.blocks_of_all} blocks on is there room for all. Time tells another story, by the fit: {after} "
        f"instead of {before}, as the four run side by side for longer.",
    )


def _why_pool_size_still(moved: str, settings: Mapping[str, Any]) -> str:
    load, _ = _drawn(**settings)
    if moved == "reserve_blocks":
        return (
            "With this reserve the gate opens at the same steps as with the one before."
            if load.gate == Gate.RESERVE
            else "Only the gate with a reserve keeps blocks back for those who run."
        )
    if moved == "gate" and settings["blocks"] >= load.blocks_of_all:
        return "The pool holds all requests at their largest, so no gate keeps anybody waiting for blocks."
    if moved == "gate":
        return "Both gates open at the same steps here: for each who waits, both find enough free blocks or too few."
    return ""


POOL_SIZE_EXPLORATION = Exploration(
    question=_ask_between_the_two,
    in_view=("blocks", "sizes", "gate", "requests"),
    settings={
        "almost room for all": {"blocks": ALMOST_ALL, "sizes": Sizes.ALL},
        "wait for room to the end": {"gate": Gate.FINAL_SIZE, "sizes": Sizes.ALL},
        "let in for the first chunk": {"gate": Gate.FIRST_CHUNK, "sizes": Sizes.ALL},
    },
    readouts=pool_size_readouts,
    why_still=_why_pool_size_still,
)
