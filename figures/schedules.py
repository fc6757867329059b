"""Figures of a schedule of four requests: who is computed in which step, on one axis of time."""

import math
from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Annotated, Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from figures import machine, style
from figures.exploration import Choice, Exploration, Question, Readout, Slider
from figures.lines import ticks_below, ticks_left
from figures.page import box, new_page, swatch, write
from figures.times import in_ns
from figures.words import words
from lib import four_requests as example
from lib.checks import one_of, whole
from lib.clocks import Clock
from lib.fast_forward import simulate
from lib.four_requests import Batching
from lib.schedule import Interval, Schedule, Step
from lib.scheduling import Order
from lib.step_time import FIT, NS, LaunchBound, StepTime, device
from lib.units import shown

Spans = list[tuple[int, int]]  # start and end, ns
PAGE_PT, LANES_PT, LANE_PT, BAND_PT, STRIP_PT = 210, 148, 32, 11, 16
LEFT_PT, LANES_WIDTH_PT = 34, 372
AXIS_MS, AXIS_STEP_MS = 900, 300
# Beyond so many steps a reader could not tell one band from the next, so bands in a row are drawn as one.
MOST_BANDS = 100
# Whole milliseconds say too little of an interval below this.
_SHORT_NS = 10 * example.MS
_OVER_LINES = {"facecolor": style.PAPER, "edgecolor": "none", "pad": 0.5}
_IDLE: dict[str, Any] = {"facecolor": style.PAPER, "hatch": "////", "edgecolor": style.INK, "linewidth": style.THIN_PT}
_DEVICE = device()
_LAUNCH_BOUND = LaunchBound(example.HOST_NS, _DEVICE)
_EXTREMES = Order.PROMPTS_FIRST, Order.DECODES_FIRST


class StepModel(StrEnum):
    """How long a step takes: the chapter's fit, or the longer of the host's and the device's time."""

    FIT = "fit"
    LAUNCH_BOUND = "max(host, device)"


ChosenPolicy = Annotated[Batching, Choice("policy", tuple(Batching))]
MaxRunning = Annotated[int, Slider("running at most", 1, 4, 1)]
Chunk = Annotated[int, Slider("chunk", 128, 8192, 128)]


def schedule_of_four(
    *,
    policy: ChosenPolicy = Batching.FIXED,
    max_running: MaxRunning = example.MAX_RUNNING,
    r0_outputs: Annotated[int, Slider("outputs of r0", 1, 16, 1)] = example.R0_OUTPUTS,
    r1_outputs: Annotated[int, Slider("outputs of r1", 1, 16, 1)] = example.R1_OUTPUTS,
    r2_prompt: Annotated[int, Slider("prompt of r2", 512, 16384, 512)] = example.R2_PROMPT,
    r2_arrival: Annotated[float, Slider("r2 arrives", 0.0, 200.0, 10.0, "ms")] = example.R2_ARRIVAL_NS / NS,
    r3_arrival: Annotated[float, Slider("r3 arrives", 0.0, 200.0, 10.0, "ms")] = example.R3_ARRIVAL_NS / NS,
    wait_to_fill: Annotated[float, Slider("wait to fill", 0.0, 200.0, 20.0, "ms")] = 0.0,
    chunk: Chunk = example.CHUNK,
    token_budget: Annotated[int, Slider("token budget", 256, 8192, 128)] = example.TOKEN_BUDGET,
    order: Annotated[Order, Choice("order in a step", tuple(Order))] = Order.DECODES_FIRST,
    step_time: Annotated[StepModel, Choice("step time", tuple(StepModel))] = StepModel.FIT,
    fixed_term: Annotated[float, Slider("fixed term", 0.0, 40.02, 0.46, "ms")] = FIT.fixed_ns / NS,
    host_time: Annotated[float, Slider("host time", 0.0, 30.0, 2.0, "ms")] = example.HOST_NS / NS,
    slug: str = "fixed-batch",
    language: str = "en",
) -> Figure:
    """Four requests on one axis of time, a band for each step a request is computed in, as wide as the whole step.

    Times in seconds; the labels are those of `slug`. Raises InputError for values that make no sense. Source: figures
    8-5, 8-6 and 8-7.
    """
    schedule = schedule_at(
        policy, max_running, r0_outputs, r1_outputs, r2_prompt, r2_arrival, r3_arrival, wait_to_fill, chunk,
        token_budget, order, step_time, fixed_term, host_time,
    )  # fmt: skip
    text = words(language, slug)
    end = axis_end(in_ms(schedule.total_ns))
    with style.in_book_style():
        page = new_page(PAGE_PT)
        lanes = box(page, LEFT_PT, 42, LANES_WIDTH_PT, LANES_PT)
        lanes.set(xlim=(0, end), ylim=(0, LANES_PT))
        ticks_below(lanes, time_ticks(end))
        ticks_left(lanes, {})
        _draw_idle_rows(lanes, schedule)
        for lane, name in enumerate(reversed(example.NAMES)):
            bottom = STRIP_PT + 6 + lane * LANE_PT
            place = place_of(schedule, name)
            lanes.text(
                -0.02, bottom + BAND_PT / 2, name, transform=lanes.get_yaxis_transform(), ha="right", va="center"
            )
            _draw_request(lanes, bottom, schedule, place)
            if place == _longest(schedule).place:
                _draw_interval(lanes, bottom + BAND_PT, schedule, _longest(schedule), text["longest"])
        total = in_ms(schedule.total_ns)
        lanes.axvline(total, color=style.INK, linestyle=(0, (4, 2)), linewidth=style.THIN_PT, zorder=0)
        side = "right" if total > end / 2 else "left"
        lanes.text(total, LANES_PT + 3, text["total"].format(time=whole_ms(schedule.total_ns)), va="bottom", ha=side)
        _draw_key(page, text)
    return page


def schedule_at(
    policy: Batching,
    max_running: int,
    r0_outputs: int,
    r1_outputs: int,
    r2_prompt: int,
    r2_arrival: float,
    r3_arrival: float,
    wait_to_fill: float,
    chunk: int,
    token_budget: int,
    order: Order,
    step_time: StepModel,
    fixed_term: float,
    host_time: float,
) -> Schedule:
    """The schedule that the figure's parameters describe."""
    rows = rows_for_four(max_running)
    arrivals = in_ns("r2_arrival", r2_arrival), in_ns("r3_arrival", r3_arrival)
    load = example.four_requests(r0_outputs, r1_outputs, *arrivals, r2_prompt)
    wait_ns = in_ns("wait_to_fill", wait_to_fill)
    limits = example.policy_of(policy, rows, wait_ns, chunk, token_budget, order)
    return simulate(load, limits, model_of(step_time, in_ns("fixed_term", fixed_term), in_ns("host_time", host_time)))


def rows_for_four(max_running: int) -> int:
    """How many of the four requests may run at once, asked for."""
    return whole("max_running", max_running, at_least=1, at_most=len(example.NAMES))


def model_of(step_time: StepModel, fixed_ns: int | None = None, host_ns: int = example.HOST_NS) -> StepTime:
    """The model of a name: the fit of the machine that is drawn, perhaps with another fixed term, or max(host, device).

    Both in ns; the host time is by default the chapter's.
    """
    fit, launch_bound = machine.fit(), LaunchBound(host_ns, _DEVICE)
    if fixed_ns is not None:
        fit = replace(fit, fixed_ns=fixed_ns)
    return fit if one_of("step_time", step_time, StepModel) is StepModel.FIT else launch_bound


def _at(settings: Mapping[str, Any]) -> Schedule:
    return schedule_at(**{name: value for name, value in settings.items() if name != "slug"})


def place_of(schedule: Schedule, name: str) -> int:
    """Which of the schedule's requests has this name."""
    return next(place for place, request in enumerate(schedule.requests) if request.name == name)


def _longest(schedule: Schedule) -> Interval:
    interval = schedule.longest_interval()
    assert interval, "r2 and r3 give more than one output"
    return interval


def _prompts_in(schedule: Schedule, interval: Interval) -> list[str]:
    """Whose prompts were computed in an interval of another."""
    steps = schedule.steps_of(interval)
    parts = (part for step in schedule.steps(steps.start, steps.stop) for part in step.prompts)
    return sorted({schedule.requests[part.place].name for part in parts if part.place != interval.place})


def schedule_readouts(**settings: Any) -> tuple[Readout, ...]:
    """What the schedule comes to, at the settings of `schedule_of_four`."""
    schedule = _at(settings)
    clocks = clocks_of(settings["step_time"])
    longest = _longest(schedule)
    prompts = " and ".join(_prompts_in(schedule, longest))
    because = f"({prompts})" if prompts else "(no prompt in it)"
    first = {name: int(schedule.ttft_ns[place_of(schedule, name)]) for name in ("r2", "r3")}
    return (
        Readout("total", schedule.total_ns / NS, "ms", 0, clocks),
        *(Readout(f"first token of {name} after", wait / NS, "ms", 0, clocks) for name, wait in first.items()),
        Readout("longest interval", longest.length_ns / NS, "ms", 1, clocks),
        Readout("whose (because of whom)", f"{schedule.requests[longest.place].name} {because}"),
        Readout("idle rows", f"{schedule.idle_rows} of {schedule.row_steps}"),
        Readout("steps", schedule.step_count),
    )


def chunked_readouts(**settings: Any) -> tuple[Readout, ...]:
    """The same, and what the other model of step times says of it."""
    other = _at({**settings, "step_time": StepModel.LAUNCH_BOUND})
    clocks, longest = clocks_of(StepModel.LAUNCH_BOUND), _longest(other)
    return (
        *schedule_readouts(**settings),
        Readout("total, by max(host, device)", other.total_ns / NS, "ms", 0, clocks),
        Readout("longest interval, by max(host, device)", longest.length_ns / NS, "ms", 1, clocks),
    )


def clocks_of(step_time: StepModel) -> tuple[Clock, ...]:
    """The clocks of the times by a model."""
    return (Clock.FIT,) if step_time == StepModel.FIT else (Clock.FLOP_RULE, Clock.ASSUMED)


def _run(policy: Batching, chunk: int = example.CHUNK, step_time: StepTime = FIT, **changed: int) -> Schedule:
    """The book's own run of a policy, or one with another chunk, model of step times or changed requests."""
    return simulate(example.four_requests(**changed), example.policy_of(policy, chunk=chunk), step_time)


def _ask_who_is_unhappy() -> Question:
    outputs = 2 * example.R0_OUTPUTS
    book, longer = _run(Batching.FIXED), _run(Batching.FIXED, r0_outputs=outputs)
    waits = {name: [int(run.ttft_ns[place_of(run, name)]) for run in (book, longer)] for name in example.NAMES}
    later = [name for name, (before, after) in waits.items() if after > before]
    before, after = map(whole_ms, waits["r2"])
    return Question(
        text=f"No output comes more than {shown(_longest(book).length_ns / NS, 'ms')} after the one before it. Is "
        f"anybody unhappy all the same? Let r0 give {outputs} outputs instead of {example.R0_OUTPUTS}: whose first "
        "token comes later?",
        choices=("nobody's", "that of r1", "those of r2 and r3"),
        answer=f"those of {' and '.join(later)}" if later else "nobody's",
        reveals={"r0_outputs": outputs},
        because=f"A group waits for its slowest. The row of r1 stays idle until r0 has ended, and r2's first token "
        f"comes after {after} instead of {before}. That wait is no interval, so the longest interval does not "
        "tell of it.",
    )


def _ask_whose_prompt() -> Question:
    twice = 2 * example.R2_PROMPT
    run = _run(Batching.CONTINUOUS, r2_prompt=twice)
    book, longer = _longest(_run(Batching.CONTINUOUS)).length_ns, _longest(run)
    return Question(
        text="r2 enters early, and the total is shorter than with a fixed batch. But its prompt of "
        f"{example.R2_PROMPT} tokens is computed in one step, and r0 waits {whole_ms(book)} for one output. With a "
        f"prompt of {twice} tokens, how long does {run.requests[longer.place].name} wait?",
        choices=(whole_ms(book), whole_ms(2 * book), whole_ms(longer.length_ns)),
        answer=whole_ms(longer.length_ns),
        reveals={"r2_prompt": twice},
        because="A newcomer's prompt lengthens the interval of everyone in decode. Twice the tokens have four times "
        "the query-key pairs, so the step takes more than twice as long.",
    )


def _ask_for_half_the_chunk() -> Question:
    half = example.CHUNK // 2
    runs = [[_run(Batching.CHUNKED, chunk, by) for chunk in (example.CHUNK, half)] for by in (FIT, _LAUNCH_BOUND)]
    book, halved = runs[0]
    by_fit, by_both = (shown((short.total_ns - long.total_ns) / NS, "ms", 1, signed=True) for long, short in runs)
    before, after = _longest(book).length_ns, _longest(halved).length_ns
    more = halved.step_count - book.step_count
    return Question(
        text=f"The longest interval is {whole_ms(before)}, in {book.step_count} steps. With chunks of {half} tokens "
        f"instead of {example.CHUNK}: is it halved, and how many steps are added?",
        choices=(
            f"{whole_ms(before // 2)}, 1 step",
            f"{whole_ms(before // 2)}, {more} steps",
            f"{whole_ms(after)}, {more} steps",
        ),
        answer=f"{whole_ms(after)}, {more} steps",
        reveals={"chunk": half},
        because=f"By the fit, the fixed {shown(FIT.fixed_ns / NS, 'ms', 2)} of a step are not halved with its tokens, "
        f"and each of the {more} further steps costs them again: {by_fit} in all. By max(host, device) no step has a "
        f"fixed part, and the total changes by {by_both}.",
    )


def _why_schedule_still(moved: str, settings: Mapping[str, Any]) -> str:
    chunked, fitted = settings["policy"] == Batching.CHUNKED, settings["step_time"] == StepModel.FIT
    if moved in ("chunk", "token_budget", "order") and not chunked:
        return "Only chunked prefill limits the tokens of a step; here whole prompts are computed."
    if moved == "wait_to_fill":
        return (
            _why_wait_still(_at(settings))
            if settings["policy"] == Batching.FIXED
            else "Only a fixed batch waits to be filled; here a free row is taken at the next border of a step."
        )
    if moved == "fixed_term" and not fitted:
        return "By max(host, device) a step has no fixed term: the host and the device work at once."
    if moved == "host_time":
        return (
            "The fit has the work of the host in its fixed term; the host time counts by max(host, device) only."
            if fitted
            else "In no step does the device wait for the host."
        )
    if moved == "order":
        return _why_order_still(settings)
    return {
        "chunk": "The token budget, or the length of the prompts, limits each part of a prompt before the chunk does.",
        "token_budget": "No step has more tokens to compute than that: rows and chunk limit it first.",
    }.get(moved, "")


def _why_wait_still(schedule: Schedule) -> str:
    groups: dict[int, list[str]] = {}
    for request, start in zip(schedule.requests, schedule.started_step, strict=True):
        groups.setdefault(start, []).append(request.name)
    unfilled = [" with ".join(names) for names in groups.values() if len(names) < schedule.rows]
    if not unfilled:
        return "Each group starts with all rows filled, and a wait ends at the latest when they are."
    those = " and for ".join(unfilled)
    return f"The rows are never all filled for {those}, but that wait is over before the earlier group ends."


def _why_order_still(settings: Mapping[str, Any]) -> str:
    prompts_first, decodes_first = (_at({**settings, "order": order}) for order in _EXTREMES)
    if prompts_first.stretches == decodes_first.stretches:
        return "In no step do a prompt and a decode compete for the budget, so it does not matter who takes first."
    return (
        "In order of admission gives the same schedule as decodes first: nobody asks for more tokens in a later step "
        "than in an earlier one, so whoever comes after a prompt that the budget cuts has not entered yet."
    )


FIXED_EXPLORATION = Exploration(
    question=_ask_who_is_unhappy,
    in_view=("max_running", "r0_outputs", "r2_arrival", "policy"),
    settings={
        "r0 ends with r1": {"r0_outputs": 2},
        "wait until three are there": {"max_running": 3, "wait_to_fill": 0.02},
        "fill free rows at once": {"policy": Batching.CONTINUOUS},
    },
    readouts=schedule_readouts,
    why_still=_why_schedule_still,
)
CONTINUOUS_EXPLORATION = Exploration(
    question=_ask_whose_prompt,
    in_view=("max_running", "r0_outputs", "r2_prompt", "policy"),
    settings={
        "a short prompt of r2": {"r2_prompt": 2048},
        "three rows": {"max_running": 3},
        "r2's prompt in chunks": {"policy": Batching.CHUNKED},
    },
    readouts=schedule_readouts,
    why_still=_why_schedule_still,
)
CHUNKED_EXPLORATION = Exploration(
    question=_ask_for_half_the_chunk,
    in_view=("chunk", "token_budget", "order", "step_time"),
    settings={
        "chunks of 512": {"chunk": 512},
        "prompts first, budget 2048": {"token_budget": 2048, "order": Order.PROMPTS_FIRST},
        "by max(host, device)": {"step_time": StepModel.LAUNCH_BOUND},
    },
    readouts=chunked_readouts,
    why_still=_why_schedule_still,
)


def _draw_request(axes: Axes, bottom: float, schedule: Schedule, place: int) -> None:
    """Arrival, the wait for the first step, then a band for each step that computes something of the request."""
    arrival, started = in_ms(schedule.arrival_ns[place]), in_ms(schedule.started_ns[place])
    axes.plot([arrival, started], [bottom, bottom], color=style.FAINT, linewidth=style.LINE_PT, linestyle=(0, (1, 1)))
    for role, spans in _spans(schedule, place).items():
        _draw_bands(axes, spans, bottom, BAND_PT, style.look(role))
    axes.plot([arrival], [bottom - 3], "^", color=style.INK, markersize=5, clip_on=False)


def _spans(schedule: Schedule, place: int) -> dict[str, Spans]:
    """Start and end of each step with a part of the request, by what the part is."""
    spans: dict[str, Spans] = {"prefill": [], "decode": []}
    for step in schedule.steps(schedule.started_step[place], schedule.last_output_step[place] + 1):
        for role, parts in (("prefill", step.prompts), ("decode", step.decodes)):
            if any(part.place == place for part in parts):
                _add(spans[role], step, join=schedule.step_count > MOST_BANDS)
    return spans


def _add(spans: Spans, step: Step, join: bool) -> None:
    """Add a step's span, or lengthen the last one if the step follows it and they are to be joined."""
    start = spans.pop()[0] if join and spans and spans[-1][1] == step.start_ns else step.start_ns
    spans.append((start, step.end_ns))


def _draw_bands(axes: Axes, spans: Spans, bottom: float, height: float, look: Mapping[str, Any]) -> None:
    bands = [(in_ms(start), in_ms(end - start)) for start, end in spans]
    axes.broken_barh(bands, (bottom, height), **look)


def _draw_interval(axes: Axes, bottom: float, schedule: Schedule, interval: Interval, label: str) -> None:
    """A bracket from one output to the next, with its length above it."""
    outputs = schedule.output_times_ns(interval.place)
    start, stop = (in_ms(time) for time in outputs[interval.output - 1 : interval.output + 1])
    low, high = bottom + 2, bottom + 5
    axes.plot([start, start, stop, stop], [low, high, high, low], color=style.LIMIT, solid_joinstyle="miter")
    end, middle = axes.get_xlim()[1], (start + stop) / 2
    side = "left" if middle < 0.2 * end else "right" if middle > 0.8 * end else "center"
    at = {"left": start, "center": middle, "right": stop}[side]
    digits = 0 if interval.length_ns >= _SHORT_NS else 1
    length = label.format(time=shown(interval.length_ns / NS, "ms", digits))
    axes.text(at, high + 1, length, ha=side, va="bottom", color=style.LIMIT, bbox=_OVER_LINES)


def _draw_idle_rows(axes: Axes, schedule: Schedule) -> None:
    """Below the lanes, the share of the rows that each step leaves idle."""
    spans: dict[int, Spans] = {}
    for step in schedule.steps():
        idle = spans.setdefault(schedule.rows - len(step.parts), [])
        _add(idle, step, join=schedule.step_count > MOST_BANDS)
    for rows in sorted(spans.keys() - {0}):
        _draw_bands(axes, spans[rows], 0, rows / schedule.rows * (STRIP_PT - 4), _IDLE)


def _draw_key(page: Figure, text: Mapping[str, str]) -> None:
    swatch(page, 14, 8, text["prefill"], "prefill")
    swatch(page, 108, 8, text["decode"], "decode")
    width, height = page.get_size_inches() * 72
    line = Line2D([206 / width, 224 / width], [12 / height] * 2, color=style.FAINT, linestyle=(0, (1, 1)))
    page.add_artist(line)
    page.add_artist(Line2D([206 / width], [12 / height], marker="^", color=style.INK, markersize=5, linestyle=""))
    write(page, 230, 8, text["arrival"])
    page.add_artist(Rectangle((318 / width, 8 / height), 14 / width, 9 / height, transform=page.transFigure, **_IDLE))
    write(page, 338, 8, text["idle"])


def axis_end(longest: float) -> float:
    """Where an axis of time ends, in ms: the same for all that is no longer than the book's three runs."""
    return max(AXIS_MS, AXIS_STEP_MS * math.ceil(longest / AXIS_STEP_MS))


def time_ticks(end: float) -> dict[float, str]:
    """Round times on the axis, none so near its end that its label would leave the page."""
    ticks = MaxNLocator(6, steps=[1, 2, 5, 10]).tick_values(0, end)
    return {tick: f"{tick:g} ms" for tick in ticks if tick <= 0.95 * end}


def in_ms(time_ns: Any) -> float:
    """A time of the schedule as the figures place it on their axis."""
    return int(time_ns) / example.MS


def whole_ms(time_ns: int) -> str:
    """A time of the schedule as the chapter prints it."""
    return shown(time_ns / NS, "ms")
