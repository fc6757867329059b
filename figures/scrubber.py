"""A run in a pool of KV blocks, step by step: how full it is over time, who holds which block, what a step touches."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import compress
from typing import Annotated, Any

from matplotlib.collections import LineCollection, PathCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.path import Path
from matplotlib.textpath import TextPath
from matplotlib.transforms import Affine2D

from figures import machine, style
from figures.exploration import Choice, Exploration, Question, Readout, Slider
from figures.lines import ticks_below, ticks_left
from figures.page import box, new_page, swatch, write
from figures.schedules import axis_end, in_ms, time_ticks
from figures.words import words
from lib.blocks import State
from lib.checks import one_of, whole
from lib.clocks import Clock
from lib.fast_forward import simulate
from lib.five_requests import BLOCK_TOKENS, POOL_BLOCKS, five_requests, policy, pool_of
from lib.paging import Findable
from lib.replay import PoolState, replay
from lib.residency import Departure, Gate, PoolSetup
from lib.schedule import Schedule, Step
from lib.step_time import NS, Fit

LEAST_BLOCKS, MOST_BLOCKS, MOST_STEPS = 16, 40, 51
PAGE_PT, LEFT_PT, HEIGHT_PT, BAR_PT = 346, 36, 80, 2
CELLS_A_ROW, CELL_PT, ROW_PT, APART_PT, WIDE_PT, HIGH_PT = 20, 18, 17, 3, 17, 14
_CROSS: dict[str, Any] = {"color": style.LIMIT, "linewidth": style.LINE_PT}
_EVENT: dict[str, Any] = {"color": style.LIMIT, "linestyle": "", "markersize": 6, "clip_on": False}


@dataclass(frozen=True)
class Run:
    """The run of the five requests in one pool, and the pool in each of its steps."""

    pool: PoolSetup
    schedule: Schedule
    steps: tuple[Step, ...]
    states: tuple[PoolState, ...]

    def name(self, place: int) -> str:
        """What the reader calls a request."""
        return self.schedule.requests[place].name

    def departures(self, step: int) -> tuple[list[Departure], list[Departure]]:
        """Who is preempted and who is cancelled at the border before a step, of those who held something."""
        schedule = self.schedule
        preempted = [one for one in schedule.preemptions if one.step == step]
        return preempted, [one for one in schedule.cancellations if one.step == step and one.lost_tokens]

    def phase(self, place: int, step: int) -> str:
        """What a request does in a step, as a key of the labels."""
        schedule, state = self.schedule, self.states[step]
        if place in state.leaving:
            return "leaves"
        if any(one.place == place and one.step <= step for one in schedule.cancellations):
            return "cancelled"
        if schedule.completed[place] and schedule.last_output_step[place] < step:
            return "done"
        here = self.steps[step]
        has_output = -1 < schedule.first_output_step[place] < step
        if any(part.place == place for part in here.prompts):
            return "again" if has_output or schedule.started_step[place] < self._entered(place, step) else "prefill"
        if any(part.place == place for part in here.decodes):
            return "decode"
        if schedule.arrival_ns[place] > here.start_ns:
            return "not_here"
        return "preempted" if -1 < schedule.started_step[place] <= step else "waits"

    def _entered(self, place: int, step: int) -> int:
        return max(stay.start for stay in self.schedule.stays()[place] if stay.start <= step)


def run_at(blocks: int, gate: str, findable: str) -> Run:
    """The run that the figure's parameters describe."""
    blocks = whole("blocks", blocks, at_least=LEAST_BLOCKS, at_most=MOST_BLOCKS)
    return _run(blocks, one_of("gate", gate, Gate), one_of("findable", findable, Findable), machine.fit())


@lru_cache(256)
def _run(blocks: int, gate: Gate, findable: Findable, step_time: Fit) -> Run:
    pool = pool_of(blocks, gate, findable)
    schedule = simulate(five_requests(), policy(), step_time, pool)
    return Run(pool, schedule, tuple(schedule.steps()), replay(schedule, pool))


_BOOK = run_at(POOL_BLOCKS, Gate.WHOLE_SEQUENCE, Findable.NEVER)
# Steps are counted from 1, as the reader counts. In the first of these the pool is full; in the next somebody loses its
# blocks, later a user goes away, and then what was lost is computed again.
FULL_STEP = _BOOK.schedule.preemptions[0].step
LEAVING_STEP = _BOOK.schedule.cancellations[0].step
AGAIN_STEP = _BOOK.schedule.stays()[_BOOK.schedule.preemptions[0].place][1].start + 1


def _step_of(run: Run, step: int) -> int:
    """The place of the step looked at, beyond the end of a short run that of its last."""
    return min(whole("step", step, at_least=1, at_most=MOST_STEPS), len(run.steps)) - 1


def run_scrubber(
    *,
    step: Annotated[int, Slider("step", 1, MOST_STEPS, 1)] = FULL_STEP,
    blocks: Annotated[int, Slider("blocks", LEAST_BLOCKS, MOST_BLOCKS, 1)] = POOL_BLOCKS,
    gate: Annotated[Gate, Choice("lets in for", tuple(Gate))] = Gate.WHOLE_SEQUENCE,
    findable: Annotated[Findable, Choice("can be found", tuple(Findable))] = Findable.NEVER,
    language: str = "en",
) -> Figure:
    """The pool over a run of five requests, and in one step of it: who holds each block, and every block table.

    Times in ms, by the fit. Raises InputError for values that make no sense. Source: section 8.3.2.
    """
    run = run_at(blocks, gate, findable)
    here = _step_of(run, step)
    text = words(language, "run-scrubber")
    with style.in_book_style():
        page = new_page(PAGE_PT)
        _draw_time(page, run, here, text)
        during = run.steps[here]
        times = f"{in_ms(during.start_ns):.0f} – {in_ms(during.end_ns):.0f} ms"
        write(page, 14, 206, text["step"].format(step=here + 1, last=len(run.steps), times=times), color=style.LIMIT)
        _draw_blocks(page, run, run.states[here])
        _write_tables(page, run, here, text)
        _draw_key(page, text)
    return page


def _draw_time(page: Figure, run: Run, here: int, text: Mapping[str, str]) -> None:
    """Held and idle blocks over time, the step looked at, and who lost its blocks when."""
    write(page, 14, PAGE_PT - 14, text["over_time"].format(blocks=run.pool.blocks))
    axes = box(page, LEFT_PT, 240, 370, HEIGHT_PT)
    end, blocks = axis_end(in_ms(run.schedule.total_ns)), run.pool.blocks
    axes.set(xlim=(0, end), ylim=(0, MOST_BLOCKS))
    ticks_below(axes, time_ticks(end))
    ticks_left(axes, {tick: str(tick) for tick in (0, 20, 40)})
    edges = [in_ms(step.start_ns) for step in run.steps] + [in_ms(run.schedule.total_ns)]
    held = [state.count(State.HELD) for state in run.states[:-1]]
    with_idle = [count + state.count(State.IDLE) for count, state in zip(held, run.states, strict=False)]
    axes.stairs(held, edges, fill=True, **style.look("decode"))
    axes.stairs(with_idle, edges, baseline=held, fill=True, **style.look("queue"))
    axes.hlines(blocks, 0, end, color=style.INK, linestyle=(0, (4, 2)), linewidth=style.THIN_PT)
    during = run.steps[here]
    axes.axvspan(in_ms(during.start_ns), in_ms(during.end_ns), facecolor="none", edgecolor=style.LIMIT, zorder=3)
    top = MOST_BLOCKS * 1.06
    lost = [in_ms(run.steps[one.step].start_ns) for one in run.schedule.preemptions]
    left = [in_ms(request.cancel_ns) for request in run.schedule.requests if request.cancel_ns is not None]
    axes.plot(lost, [top] * len(lost), marker="v", **_EVENT)
    axes.plot(left, [top] * len(left), marker="X", **_EVENT)


def _draw_blocks(page: Figure, run: Run, state: PoolState) -> None:
    """Each block in its place, with the names of those who hold it; a bar below those that the step touches.

    Drawn on the page itself: a box for them would take longer to make than all that is in it.
    """
    in_points = Affine2D().scale(1 / 72) + page.dpi_scale_trans
    corners = [_corner(block) for block in range(run.pool.blocks)]
    holders = [state.holders(block) for block in range(run.pool.blocks)]
    is_idle = [block == State.IDLE for block in state.blocks]
    others = [not idle for idle in is_idle]
    fills = [_fill_of(run, held) for held in holders]
    outlines = [[(x, y), (x + WIDE_PT, y), (x + WIDE_PT, y + HIGH_PT), (x, y + HIGH_PT)] for x, y in corners]
    edges: dict[str, Any] = {"edgecolors": style.INK, "linewidths": style.THIN_PT, "transform": in_points}
    page.add_artist(PolyCollection([*compress(outlines, others)], facecolors=[*compress(fills, others)], **edges))
    idle: dict[str, Any] = {"facecolors": style.FILL["queue"], "hatch": style.HATCH["queue"]}
    page.add_artist(PolyCollection([*compress(outlines, is_idle)], **idle, **edges))
    names = [_name_in_cell(run, held) for held in holders]
    _stamp(
        page, [(x + WIDE_PT / 2, y + HIGH_PT / 2, name) for (x, y), name in zip(corners, names, strict=True) if name]
    )
    touched = [corners[block] for block in sorted(state.touched)]
    bars = [[(left + 1, low - 0.5), (left + WIDE_PT - 1, low - 0.5)] for left, low in touched]
    page.add_artist(LineCollection(bars, colors=style.INK, linewidths=BAR_PT, transform=in_points))
    leaving = [corners[block] for place in sorted(state.leaving) for block in state.tables[place]]
    crosses = [[(left, low), (left + WIDE_PT, low + HIGH_PT)] for left, low in leaving]
    page.add_artist(LineCollection(crosses, colors=style.LIMIT, linewidths=style.LINE_PT, transform=in_points))
    firsts = range(0, run.pool.blocks, CELLS_A_ROW)
    _stamp(page, [(LEFT_PT - 12, corners[first][1] + HIGH_PT / 2, str(first)) for first in firsts])


def _name_in_cell(run: Run, held: tuple[int, ...]) -> str:
    """Who holds a block, or how many where that are more than two."""
    return "".join(map(run.name, held)) if len(held) < 3 else f"{len(held)}×"


def _fill_of(run: Run, held: tuple[int, ...]) -> str:
    """The colour of a cell: its request's, that of all who share, or none."""
    if not held:
        return style.PAPER
    return style.REQUEST[run.name(held[0])] if len(held) == 1 else style.FILL["shared"]


def _corner(block: int) -> tuple[float, float]:
    """Where a block's cell begins, in points of the page; a gap after each five makes them easy to count."""
    row, column = divmod(block, CELLS_A_ROW)
    return LEFT_PT + column * CELL_PT + column // 5 * APART_PT, 162 + (1 - row) * (ROW_PT + 2)


def _stamp(page: Figure, stamps: list[tuple[float, float, str]]) -> None:
    """Short names around these points of the page, as shapes of one artist: as many texts take twenty times as long."""
    in_points = Affine2D().scale(1 / 72) + page.dpi_scale_trans
    shapes, places = [_shape(name) for _, _, name in stamps], [(x, y) for x, y, _ in stamps]
    how: dict[str, Any] = {"facecolors": style.INK, "linewidths": 0, "transform": in_points}
    drawn = PathCollection(shapes, offsets=places, offset_transform=in_points, **how)
    drawn.set_gid(" ".join(name for _, _, name in stamps))
    page.add_artist(drawn)


@cache
def _shape(name: str) -> Path:
    """A short name in the figures' font and size, around its middle, in points."""
    shape = TextPath((0, 0), name, size=style.TEXT_PT, prop=FontProperties(fname=str(style.FONT_FILE)))
    extents = shape.get_extents()
    return shape.transformed(Affine2D().translate(-(extents.x0 + extents.x1) / 2, -0.36 * style.TEXT_PT))


def _write_tables(page: Figure, run: Run, here: int, text: Mapping[str, str]) -> None:
    """A line for each request: what it does in this step, its tokens in KV, its block table."""
    state = run.states[here]
    write(page, 198, 143, text["tokens"], ha="right")
    write(page, 210, 143, text["table"])
    stamps = list[tuple[float, float, str]]()
    for place, request in enumerate(run.schedule.requests):
        bottom = 128 - 15 * place
        write(page, 14, bottom, f"{request.name}  {text[run.phase(place, here)]}")
        if place in state.tables:
            numbers = {190: state.tokens[place]} | {217 + 17 * at: each for at, each in enumerate(state.tables[place])}
            stamps += [(left, bottom + 0.36 * style.TEXT_PT, str(number)) for left, number in numbers.items()]
    _stamp(page, stamps)


def _draw_key(page: Figure, text: Mapping[str, str]) -> None:
    width, height = page.get_size_inches() * 72

    def mark(left: float, middle: float, **how: Any) -> None:
        page.add_artist(Line2D([left / width], [middle / height], **how))

    swatch(page, 14, 42, text["held"], "decode")
    swatch(page, 150, 42, text["idle"], "queue")
    mark(294, 46, marker="v", **_EVENT)
    write(page, 304, 42, text["preempts"])
    page.add_artist(Line2D([14 / width, 28 / width], [28 / height] * 2, color=style.INK, linewidth=BAR_PT))
    write(page, 34, 24, text["touched"])
    mark(294, 28, marker="X", **_EVENT)
    write(page, 304, 24, text["goes"])
    page.add_artist(Line2D([14 / width, 28 / width], [6 / height, 17 / height], **_CROSS))
    write(page, 34, 6, text["crossed"])
    write(page, 288, 6, text["several"])


def scrubber_readouts(**settings: Any) -> tuple[Readout, ...]:
    """What the pool comes to in the step looked at and over the run, at the settings of `run_scrubber`."""
    run = run_at(settings["blocks"], settings["gate"], settings["findable"])
    here = _step_of(run, settings["step"])
    state, schedule = run.states[here], run.schedule
    preempted, cancelled = (", ".join(run.name(one.place) for one in ones) for ones in run.departures(here))
    lost = sum(one.lost_tokens for one in schedule.preemptions)
    return (
        Readout("this step begins at", run.steps[here].start_ns / NS, "ms", 0, (Clock.FIT,)),
        Readout("blocks held", f"{state.count(State.HELD)} of {run.pool.blocks}"),
        Readout("idle, could be found", state.count(State.IDLE)),
        Readout("touched by the step in flight", len(state.touched)),
        Readout("lost its blocks before this step", preempted or "nobody"),
        Readout("gave back as its user had gone", cancelled or "nobody"),
        Readout("KV lost to preemptions in the run", lost, "token"),
        Readout("tokens computed in the run", schedule.scheduled_tokens, "token"),
        Readout("all done after", schedule.total_ns / NS, "ms", 0, (Clock.FIT,)),
    )


def _ask_whose_blocks() -> Question:
    state, (lost, *_) = _BOOK.states[FULL_STEP - 1], _BOOK.schedule.preemptions
    needs = _needing_a_block()
    longest = max(state.tables, key=lambda place: len(state.tables[place]))
    stays = _BOOK.schedule.stays()
    first, last = (choose(state.tables, key=lambda place: stays[place][0].start) for choose in (min, max))
    assert last == lost.place, "the last to enter is the victim"
    names = sorted({_BOOK.name(place) for place in state.tables})
    return Question(
        text=f"In step {FULL_STEP} all {POOL_BLOCKS} blocks are held by {', '.join(names)}. In the next step "
        f"{needs} needs one more. {_BOOK.name(longest)} holds the most. Who loses its blocks?",
        choices=tuple(names),
        answer=_BOOK.name(lost.place),
        reveals={"step": FULL_STEP + 1},
        because=f"{_BOOK.name(lost.place)} entered last, so it is preempted, and those before it go on: whoever "
        f"entered first, here {_BOOK.name(first)}, always comes to its end. All {len(state.tables[lost.place])} blocks "
        f"of {_BOOK.name(lost.place)} are free at once. Its {lost.outputs} outputs are kept; later {lost.lost_tokens} "
        "tokens of prompt and outputs are computed again.",
    )


def _needing_a_block() -> str:
    """Who has filled its last block in the full step, so that its next token needs another."""
    state = _BOOK.states[FULL_STEP - 1]
    full = [place for place in state.tables if state.tokens[place] == len(state.tables[place]) * BLOCK_TOKENS]
    return " and ".join(map(_BOOK.name, full))


def _why_scrubber_still(moved: str, settings: Mapping[str, Any]) -> str:
    run = run_at(settings["blocks"], settings["gate"], settings["findable"])
    if moved == "step":
        return f"There is no step {settings['step']}: the run has {len(run.steps)} steps."
    if moved == "gate":
        return "Both gates open at the same steps here: for each who waits, both find enough free blocks or too few."
    return ""


SCRUBBER_EXPLORATION = Exploration(
    question=_ask_whose_blocks,
    in_view=("step", "blocks", "gate", "findable"),
    settings={
        "a user goes away": {"step": LEAVING_STEP},
        "its KV is computed again": {"step": AGAIN_STEP},
        "computed blocks can be found": {"step": FULL_STEP, "findable": Findable.ONCE_DONE},
    },
    readouts=scrubber_readouts,
    why_still=_why_scrubber_still,
)
