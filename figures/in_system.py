"""The figure of who is in the system: requests that queue, compute and wait for a tool, and the KV they hold."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures import machine, style
from figures.exploration import Choice, Exploration, Question, Readout, Slider
from figures.lines import FINER, height_from_zero, round_above, round_ticks, ticks_below, ticks_left
from figures.page import box, new_page, swatch, write
from figures.words import words
from lib.arrivals import Arrivals
from lib.clocks import Clock
from lib.design_problem import INSTANCE
from lib.little import EXAMPLE_RATE_PER_S, Occupancy, Phase
from lib.schedule import Integers
from lib.step_time import NS
from lib.tool_load import ARRIVING_S, MAX_RUNNING, SEED, WAIT_S, ToolLoad
from lib.units import GIB, shown

PAGE_PT, LEFT_PT, WIDTH_PT = 318, 40, 316
COUNTS_PT, COUNTS_HEIGHT_PT, KV_PT, KV_HEIGHT_PT = 178, 106, 74, 72
LONGER_S = 3.0
# Few requests are drawn on an axis of whole numbers.
LEAST_HEIGHT = 4
_ROLES = {Phase.COMPUTING: "decode", Phase.HOLDING: "foreign", Phase.QUEUED: "queue"}
_CLOCKS = (Clock.FIT, Clock.ASSUMED)


def requests_in_system(
    *,
    rate_per_s: Annotated[float, Slider("arrivals a second", 0.5, 5.0, 0.5)] = EXAMPLE_RATE_PER_S,
    wait_s: Annotated[float, Slider("tool", 0.0, 10.0, 0.5, "s")] = WAIT_S,
    max_running: Annotated[int, Slider("running at most", 1, 16, 1)] = MAX_RUNNING,
    arrivals: Annotated[Arrivals, Choice("they arrive", tuple(Arrivals))] = Arrivals.EVEN,
    pool_bytes: Annotated[int, Slider("pool", 2, 12, 1, "GiB")] = INSTANCE.kv_pool_bytes,
    seed: Annotated[int, Slider("seed", 0, 99, 1)] = SEED,
    language: str = "en",
) -> Figure:
    """Requests in the system over time by what they do, and below the KV they hold of the pool.

    Raises InputError for values that make no sense. Source: section 8.6.1, which names the three states and draws none.
    """
    load = load_at(rate_per_s, wait_s, max_running, arrivals, pool_bytes, seed)
    text = words(language, "requests-in-system")
    end = round_above(int(load.present.times_ns[-1]) / NS, FINER)
    with style.in_book_style():
        page = new_page(PAGE_PT)
        write(page, 14, PAGE_PT - 16, text["counts"])
        counts = box(page, LEFT_PT, COUNTS_PT, WIDTH_PT, COUNTS_HEIGHT_PT)
        counts.set_xlim(0, end)
        height_from_zero(counts, max(load.present.peak, load.by_the_law, LEAST_HEIGHT))
        _stack(counts, load.present, tuple(_ROLES), 1)
        counts.plot([0, ARRIVING_S], [load.by_the_law] * 2, color=style.LIMIT, linestyle=(0, (5, 2)))
        _beside(counts, load.by_the_law, f"λT = {load.by_the_law:.1f}")
        write(page, 14, KV_PT + KV_HEIGHT_PT + 12, text["kv"])
        kv = box(page, LEFT_PT, KV_PT, WIDTH_PT, KV_HEIGHT_PT)
        kv.set(xlim=(0, end), ylim=(0, pool_bytes / GIB))
        ticks_left(kv, {tick: f"{tick:g}" for tick in round_ticks(pool_bytes / GIB)[::2]})
        page_gib = load.kv_pool.bytes_of(1) / GIB
        _stack(kv, _idle_together(load.held), (Phase.COMPUTING, Phase.HOLDING), page_gib)
        kv.axhline(pool_bytes / GIB, color=style.LIMIT, linewidth=1.6 * style.LINE_PT, clip_on=False)
        _beside(kv, pool_bytes / GIB, text["pool"])
        for axes in (counts, kv):
            axes.axvline(ARRIVING_S, color=style.INK, linewidth=style.THIN_PT, linestyle=(0, (1, 2)))
        ticks_below(counts, {})
        ticks_below(kv, {tick: f"{tick:g}" for tick in round_ticks(end)}, text["time"])
        for left, bottom, role in ((14, 28, "decode"), (206, 28, "foreign"), (14, 8, "queue")):
            swatch(page, left, bottom, text[role], role)
        write(page, 206, 8, text["last"].format(seconds=ARRIVING_S))
    return page


def load_at(
    rate_per_s: float, wait_s: float, max_running: int, arrivals: Arrivals, pool_bytes: int, seed: int
) -> ToolLoad:
    """The load that the figure's parameters describe, on the machine that is drawn."""
    return _kept(ToolLoad(rate_per_s, wait_s, max_running, arrivals, pool_bytes, seed, machine.fit()))


@lru_cache(maxsize=4)
def _kept(load: ToolLoad) -> ToolLoad:
    """The first of equal loads, which has run: the read-outs and the picture ask for the same."""
    return load


def _idle_together(held: Occupancy) -> Occupancy:
    """All KV without a row as one: who is back from its tool and has no row yet holds some, too."""
    idle = held.by_phase[Phase.HOLDING] + held.by_phase[Phase.QUEUED]
    return Occupancy(held.times_ns, {**held.by_phase, Phase.HOLDING: idle, Phase.QUEUED: np.zeros_like(idle)})


def _stack(axes: Axes, amounts: Occupancy, phases: Sequence[Phase], unit: float) -> None:
    """The amounts in these phases over time, each upon the one before it."""
    times = amounts.times_ns / NS
    below: Integers = np.zeros(len(times), np.int64)
    for phase in phases:
        level = amounts.by_phase[phase]
        above = below + np.append(level, level[-1:])
        axes.fill_between(times, below * unit, above * unit, step="post", **style.look(_ROLES[phase]))
        below = above


def _beside(axes: Axes, height: float, text: str) -> None:
    axes.annotate(text, (1, height), (6, 0), ("axes fraction", "data"), textcoords="offset points", va="center")


def system_readouts(**settings: Any) -> tuple[Readout, ...]:
    """Both sides of Little's law and the KV held, at the settings of `requests_in_system`."""
    load = load_at(**settings)
    whole, settled = load.whole_run, load.settled
    return (
        Readout("mean stay", whole.mean_stay_s, "s", 2, _CLOCKS),
        Readout("rate × mean stay", load.by_the_law, "", 1),
        Readout(f"mean of {ARRIVING_S // 2}–{ARRIVING_S} s", settled.mean(), "", 1),
        Readout("… with a row", settled.mean(Phase.COMPUTING), "", 1),
        Readout("… at a tool", settled.mean(Phase.HOLDING), "", 1),
        Readout("… queued", settled.mean(Phase.QUEUED), "", 1),
        Readout("longest queue", load.longest_queue),
        Readout("to the last: rate × stay", whole.by_the_law, "", 1),
        Readout("to the last: mean", load.present.mean(), "", 1),
        Readout("peak of KV held", load.peak_bytes, "GiB", 2),
        Readout("share of it idle", load.idle_share, "", 2),
        Readout("requests the pool holds", load.fit),
    )


def _book_load(**other: Any) -> ToolLoad:
    return ToolLoad(**other)


def _ask_of_a_slower_tool() -> Question:
    here, there = _book_load(), _book_load(wait_s=LONGER_S)
    more = round(there.settled.mean()) - round(here.settled.mean())
    busy, busy_there = (f"{load.settled.mean(Phase.COMPUTING):.1f}" for load in (here, there))
    assert busy == busy_there
    rate, longer = f"{here.rate_per_s:g}", there.wait_s - here.wait_s
    answer = f"about {more} more"
    return Question(
        text=f"{rate} requests arrive a second. Each takes {here.whole_run.mean_stay_s:.1f} s, of which a tool has "
        f"{here.wait_s:g} s, and {here.settled.mean():.1f} are in the system on average. The tool becomes {longer:g} s "
        "slower. How many are there then?",
        choices=("as many: the device has no more to do", f"about {longer:g} more", answer, "more and more"),
        answer=answer,
        reveals={"wait_s": LONGER_S},
        because=f"The rate stays and each stay is {longer:g} s longer: {rate} × {longer:g} = {more} more. Only "
        f"{busy} have a row on average, as before; the others hold KV in which nothing is computed, "
        f"{shown(there.peak_bytes, 'GiB', 1)} of it at the peak in place of {shown(here.peak_bytes, 'GiB', 1)}.",
    )


def _why_system_still(moved: str, settings: Mapping[str, Any]) -> str:
    load = load_at(**settings)
    if moved == "max_running":
        most = int(load.present.by_phase[Phase.COMPUTING].max())
        return f"Never more than {most} have a row at once, so a further row stays idle."
    if moved == "seed":
        return "Nothing is drawn where requests arrive evenly."
    return ""


SYSTEM_EXPLORATION = Exploration(
    question=_ask_of_a_slower_tool,
    in_view=("rate_per_s", "wait_s", "max_running", "arrivals"),
    settings={
        "a slow tool": {"wait_s": LONGER_S},
        "overload: one row": {"max_running": 1},
        "a tool fills the pool": {"rate_per_s": 5.0, "wait_s": 10.0},
    },
    readouts=system_readouts,
    why_still=_why_system_still,
)
