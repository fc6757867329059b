"""Figures of what one step executes: rows padded to a captured graph, new tokens that an interval has room for."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from itertools import chain, pairwise
from typing import Annotated, Any

from matplotlib.figure import Figure

from figures import machine, style
from figures.chunks import BY, CLOCKS, DEVICE, HOST_S, RECORDED_CHUNK
from figures.exploration import Choice, Exploration, Question, Readout, Slider
from figures.lines import height_from_zero, line_key, ticks_below, ticks_left, token_axis
from figures.page import box, new_page, swatch, write
from figures.times import in_ns
from figures.words import words
from lib import step_time
from lib.attention import causal_pairs
from lib.checks import one_of, seconds, whole
from lib.clocks import Clock
from lib.design_problem import ALLOWED_INTERVAL_S, INSTANCE, LONG_CONTEXT, SHORT_CHAT
from lib.memory import MOST_BYTES, KvPool, RequestShape
from lib.shapes import CAPTURED, FurtherGraph, padded_rows
from lib.step_time import FIT, NS, LaunchBound, StepPlan, StepTime, decode_plan
from lib.units import MIB

ROWS_DRAWN = 40
# What may stand in decode, far beyond any pool; more is a slip.
MOST_RESIDENTS, MOST_CONTEXT = 1024, 2**20
# So many tokens fit into a longer interval that their number would not stand beside the axis.
MOST_INTERVAL_S = 1
MARKED = (CAPTURED[0] + 2, CAPTURED[0] + 1, CAPTURED[0])


@dataclass(frozen=True)
class Rows:
    """A step of so many rows, one for each request in decode, and the graphs that it can run in."""

    needed: int
    further: int
    capture_s: float
    held_bytes: int

    @property
    def captured(self) -> tuple[int, ...]:
        return (*CAPTURED, self.further) if self.further else CAPTURED

    @property
    def executed(self) -> int:
        return padded_rows(self.needed, self.captured)

    def padding_s(self, model: StepTime) -> float:
        """Seconds that the padding adds to the step by a model of its time."""
        plan = decode_plan(self.needed, SHORT_CHAT.input_tokens)
        return (model(plan._replace(new_tokens=self.executed)) - model(plan)) / NS

    @property
    def graph(self) -> FurtherGraph | None:
        """The further graph and what it saves in a step of its size, by the fit; None for a size that needs none."""
        saved_rows = padded_rows(self.further, CAPTURED) - self.further if self.further else 0
        if not saved_rows:
            return None
        return FurtherGraph(self.capture_s, self.held_bytes, saved_rows * machine.fit().per_new_token_ns / NS)


def rows_of(rows: int, further_rows: int, capture_s: float, held_bytes: int) -> Rows:
    """The step and the graphs that the figure's parameters describe; no further graph for 0 rows."""
    return Rows(
        whole("rows", rows, at_least=1, at_most=ROWS_DRAWN),
        whole("further_rows", further_rows, at_most=ROWS_DRAWN),
        seconds("capture_s", capture_s),
        whole("held_bytes", held_bytes, at_most=MOST_BYTES),
    )


def rows_executed(
    *,
    rows: Annotated[int, Slider("rows of work", 1, ROWS_DRAWN, 1)] = MARKED[0],
    further_rows: Annotated[int, Slider("further graph, rows", 0, CAPTURED[-1], 1)] = 0,
    capture_s: Annotated[float, Slider("to capture it", 0.5, 5.0, 0.5, "s")] = 0.5,
    held_bytes: Annotated[int, Slider("it holds", 1, 256, 1, "MiB")] = 32 * MIB,
    language: str = "en",
) -> Figure:
    """Rows that a step executes against the rows it needs, when graphs are captured for some sizes only.

    Time and memory of a further graph are assumed. Raises InputError for values that make no sense. Source: section
    8.2.4.
    """
    step = rows_of(rows, further_rows, capture_s, held_bytes)
    text = words(language, "padded-rows")
    needed = range(1, ROWS_DRAWN + 1)
    executed = [padded_rows(each, step.captured) for each in needed]
    edges = [each + 0.5 for each in range(ROWS_DRAWN + 1)]
    with style.in_book_style():
        page = new_page(246)
        write(page, 14, 230, text["height"])
        axes = box(page, 44, 62, 360, 148)
        axes.set(xlim=(0.5, ROWS_DRAWN + 0.5), ylim=(0, ROWS_DRAWN + 0.5))
        ticks_below(axes, {place: str(place) for place in range(4, ROWS_DRAWN + 1, 4)}, text["width"])
        ticks_left(axes, {place: str(place) for place in range(0, ROWS_DRAWN + 1, 10)})
        axes.stairs(needed, edges, fill=True, **style.look("decode"))
        axes.stairs(executed, edges, baseline=needed, fill=True, **style.look("queue"))
        axes.plot(MARKED, [padded_rows(each, step.captured) for each in MARKED], "o", markersize=5, color=style.INK)
        axes.axvline(step.needed, color=style.LIMIT)
        side = "left" if step.needed < ROWS_DRAWN / 2 else "right"
        now = text["now"].format(rows=step.needed, executed=step.executed)
        axes.text(step.needed, 1.02, now, transform=axes.get_xaxis_transform(), ha=side, va="bottom", color=style.LIMIT)
        swatch(page, 14, 10, text["work"], "decode")
        swatch(page, 214, 10, text["padding"], "queue")
    return page


def rows_executed_readouts(**settings: Any) -> tuple[Readout, ...]:
    """What the step executes, and what a further graph costs and saves, at the settings of `rows_executed`."""
    step = rows_of(**settings)
    graph, block_bytes = step.graph, _POOL.bytes_of(1)
    return (
        Readout("rows executed", step.executed),
        Readout("padding rows", step.executed - step.needed),
        Readout("time of the padding, by the fit", step.padding_s(machine.fit()), "us", 0, (Clock.FIT,)),
        Readout("the same, by the device", step.padding_s(DEVICE), "us", 0, (Clock.FLOP_RULE,)),
        Readout(
            "saved by the further graph in a step of its size, by the fit",
            graph.saved_s_per_step if graph else 0,
            "us",
            0,
            (Clock.FIT,),
        ),
        Readout(
            "such steps until its capture (assumed) is repaid", graph.steps_to_repay if graph else "no further graph"
        ),
        Readout("held by it (assumed)", graph.held_bytes if graph else 0, "MiB"),
        Readout("KV blocks that the pool gives up for it", graph.blocks_lost(block_bytes) if graph else 0),
    )


def _ask_one_row_less() -> Question:
    before, after, last = (padded_rows(rows, CAPTURED) for rows in MARKED)
    return Question(
        text=f"Graphs are captured for {CAPTURED[0]} and for {CAPTURED[1]} rows. One request ends, and the "
        f"{MARKED[0]} rows of a step become {MARKED[1]}. How many rows fewer does the step execute?",
        choices=("0", "1", "2", str(CAPTURED[0])),
        answer=str(before - after),
        reveals={"rows": MARKED[1], "further_rows": 0},
        because=f"{MARKED[0]} and {MARKED[1]} rows both run as {after}. Only the next row less, {MARKED[2]}, fits the "
        f"smaller graph: {last} rows.",
    )


def _why_rows_executed_still(moved: str, settings: Mapping[str, Any]) -> str:
    if moved in ("capture_s", "held_bytes") and not rows_of(**settings).graph:
        return "No further graph is captured, so nothing has to be paid for one."
    return ""


ROWS_EXECUTED_EXPLORATION = Exploration(
    question=_ask_one_row_less,
    in_view=("rows", "further_rows", "capture_s", "held_bytes"),
    settings={
        "one row less": {"rows": MARKED[1]},
        "two rows less": {"rows": MARKED[2]},
        f"a graph for {MARKED[1]} rows": {"rows": MARKED[1], "further_rows": MARKED[1]},
    },
    readouts=rows_executed_readouts,
    why_still=_why_rows_executed_still,
)


class Shapes(StrEnum):
    """The row counts that a step can be executed in."""

    ANY = "any number of rows"
    POWERS = "powers of two"
    THREE = "256, 512 or 1024 rows"


POWERS_OF_TWO = tuple(2**power for power in range(15))
CAPTURED_AS: Mapping[Shapes, tuple[int, ...]] = {
    Shapes.ANY: (),
    Shapes.POWERS: POWERS_OF_TWO,
    Shapes.THREE: (256, 512, 1024),
}
CONTEXTS = range(0, 2 * LONG_CONTEXT.input_tokens + 1, 1024)
PROMPT = LONG_CONTEXT.input_tokens
_POOL = KvPool(INSTANCE.model, INSTANCE.kv_pool_bytes)
LONG_THAT_FIT = _POOL.requests_that_fit(RequestShape(PROMPT, SHORT_CHAT.output_tokens))
MOST_STEPS = 200
_tokens_that_fit = lru_cache(1024)(step_time.tokens_that_fit)


@dataclass(frozen=True)
class Interval:
    """An allowed interval between outputs, and the requests in decode that share each step with one new prompt."""

    allowed_ns: int
    residents: StepPlan
    captured: tuple[int, ...]
    launch_bound: LaunchBound

    def tokens(self, model: StepTime, context: int) -> int:
        """New tokens of a prompt with so much context that fit the step."""
        return _tokens_that_fit(self.allowed_ns, model, context, self.residents, self.captured)

    def shape(self, model: StepTime, context: int) -> tuple[float, bool]:
        """The captured rows that such a step is executed in and whether it needs all of them.

        Without a token that fits they are 0, beyond the largest graph infinitely many.
        """
        if not (tokens := self.tokens(model, context)):
            return 0, True
        rows = tokens + self.residents.new_tokens
        size = min((size for size in self.captured if size >= rows), default=math.inf)
        return size, rows == size

    def bends(self, model: StepTime, start: int, end: int) -> list[int]:
        """Contexts from start to end, close enough around each change of shape to draw what fits as straight lines."""
        if end - start <= 1 or self.shape(model, start) == self.shape(model, end):
            return [start, end]
        middle = (start + end) // 2
        return self.bends(model, start, middle)[:-1] + self.bends(model, middle, end)

    def step_s(self, model: StepTime, context: int) -> float | None:
        """Seconds that the step takes with as many tokens as fit, None if none does."""
        if not (tokens := self.tokens(model, context)):
            return None
        return model(step_time.executed_plan(tokens, context, self.residents, self.captured)) / NS

    def steps_of_prompt(self, model: StepTime) -> int | None:
        """Steps of as many tokens as fit until a long prompt is in; None if none fits or too many are needed."""
        done = 0
        for step in range(1, MOST_STEPS + 1):
            taken = self.tokens(model, done)
            done += taken
            if done >= PROMPT:
                return step
            if not taken:
                break
        return None


def interval_of(
    interval: float, residents: int, context: int, shapes: str, resident_context: int, host_s: float
) -> Interval:
    """The interval that the figure's parameters describe; `context` belongs to the point looked at."""
    whole("context", context, at_most=CONTEXTS[-1])
    of_each = whole("resident_context", resident_context, at_most=MOST_CONTEXT)
    decoding = whole("residents", residents, at_most=MOST_RESIDENTS)
    return Interval(
        max(1, in_ns("interval", interval, at_most=MOST_INTERVAL_S, above_zero=True)),
        decode_plan(decoding, of_each),
        CAPTURED_AS[one_of("shapes", shapes, Shapes)],
        LaunchBound(in_ns("host_s", host_s), DEVICE),
    )


def tokens_in_interval(
    *,
    interval: Annotated[float, Slider("interval", 20.0, 400.0, 5.0, "ms")] = ALLOWED_INTERVAL_S,
    residents: Annotated[int, Slider("in decode", 0, 64, 1)] = 1,
    context: Annotated[int, Slider("prompt's context", 0, CONTEXTS[-1], 512)] = 0,
    shapes: Annotated[Shapes, Choice("executed as", tuple(Shapes))] = Shapes.ANY,
    resident_context: Annotated[int, Slider("context in decode", 0, 16384, 512)] = SHORT_CHAT.input_tokens,
    host_s: Annotated[float, Slider("host", 0.0, 30.0, 1.0, "ms")] = HOST_S,
    language: str = "en",
) -> Figure:
    """New tokens of a prompt that a step takes on within an interval, against the context that stands before them.

    Times in seconds. Raises InputError for values that make no sense. Source: section 8.2.4.
    """
    allowed = interval_of(interval, residents, context, shapes, resident_context, host_s)
    text = words(language, "interval-to-budget")
    with style.in_book_style():
        page = new_page(222)
        write(page, 14, 206, text["height"])
        axes = box(page, 44, 62, 360, 132)
        token_axis(axes, CONTEXTS[-1], text["width"])
        axes.axvline(context, color=style.FAINT, linewidth=style.THIN_PT, clip_on=False)
        drawn, highest = sorted({*CONTEXTS, context}), 10
        for role, model, left in (("fit", machine.fit(), 14), ("launch", allowed.launch_bound, 170)):
            bends = (allowed.bends(model, start, end) for start, end in pairwise(drawn))
            contexts = sorted(set(chain.from_iterable(bends)))
            tokens = [allowed.tokens(model, each) for each in contexts]
            highest = max(highest, *tokens)
            axes.plot(contexts, tokens, clip_on=False, **style.line(role))
            here = allowed.tokens(model, context)
            axes.plot([context], [here], "o", markersize=5, color=style.INK, clip_on=False)
            line_key(page, left, 10, text[role].format(tokens=here), role)
        height_from_zero(axes, highest)
    return page


def budget_readouts(**settings: Any) -> tuple[Readout, ...]:
    """What fits into a step and the steps of a long prompt, by both models, at the settings of `tokens_in_interval`."""
    allowed, context = interval_of(**settings), settings["context"]
    found = []
    for name, model in (("fit", machine.fit()), ("launch", allowed.launch_bound)):
        step_s = allowed.step_s(model, context)
        found += [
            Readout(f"new tokens within the interval, by {BY[name]}", allowed.tokens(model, context)),
            Readout(
                f"a step with them, by {BY[name]}", *((step_s, "ms", 2, CLOCKS[name]) if step_s else ("none fits",))
            ),
            Readout(
                f"steps for a prompt of {PROMPT} from its beginning, by {BY[name]}",
                allowed.steps_of_prompt(model) or f"not within {MOST_STEPS}",
            ),
        ]
    return tuple(found)


def _ask_behind_context() -> Question:
    allowed = interval_of(ALLOWED_INTERVAL_S, 1, 0, Shapes.ANY, SHORT_CHAT.input_tokens, HOST_S)
    behind = PROMPT - RECORDED_CHUNK
    first, last = allowed.tokens(FIT, 0), allowed.tokens(FIT, behind)
    times = round(causal_pairs(RECORDED_CHUNK, behind) / causal_pairs(RECORDED_CHUNK))
    return Question(
        text=f"A step may take {allowed.allowed_ns / 1e6:g} ms. Beside one request in decode it has room for the first "
        f"{first} tokens of a prompt, by the fit. Later {behind} tokens of that prompt are in context. How many new "
        "tokens fit now?",
        choices=(str(first), str(last), str(first // times)),
        answer=str(last),
        reveals={"context": behind},
        because=f"A chunk of {RECORDED_CHUNK} tokens has {times} times the pairs there, but pairs are only a part of a "
        "step. So fewer tokens fit, not that few: a budget in tokens is no budget in time.",
    )


def _why_budget_still(moved: str, settings: Mapping[str, Any]) -> str:
    if moved == "resident_context" and not settings["residents"]:
        return "No request is in decode, so none has a context that is read."
    allowed = interval_of(**settings)
    launch_bound = allowed.launch_bound
    by_fit, by_both = (allowed.tokens(model, 0) for model in (machine.fit(), launch_bound))
    if moved == "host_s":
        if launch_bound.host_ns > allowed.allowed_ns:
            return "The host alone takes longer than the interval: by max(host, device) no token fits, before and now."
        if not by_both:
            return "The device alone takes longer than the interval, so no token fits, whatever the host needs."
        return "The host is done within the interval, and the device works meanwhile: the host costs no token."
    if not by_fit and not by_both:
        return "Not one new token fits into the interval, before and now."
    if moved == "shapes" and settings["shapes"] != Shapes.POWERS and _beyond_the_largest(allowed):
        return f"Each step has more than {CAPTURED_AS[Shapes.THREE][-1]} rows, so it is captured in neither case."
    if moved == "shapes" or settings["shapes"] != Shapes.ANY:
        return "Where a token fits at all, the step is executed in the same shape as before."
    return ""


def _beyond_the_largest(allowed: Interval) -> bool:
    """Whether each step drawn has more rows than the largest of three captured graphs; a longer context fits fewer."""
    fewest = min(allowed.tokens(model, CONTEXTS[-1]) for model in (machine.fit(), allowed.launch_bound))
    return fewest + allowed.residents.new_tokens > CAPTURED_AS[Shapes.THREE][-1]


BUDGET_EXPLORATION = Exploration(
    question=_ask_behind_context,
    in_view=("interval", "residents", "context", "shapes"),
    settings={
        "the last chunk of a long prompt": {"context": PROMPT - RECORDED_CHUNK},
        "in captured shapes": {"shapes": Shapes.POWERS},
        f"beside {LONG_THAT_FIT} long requests": {
            "residents": LONG_THAT_FIT,
            "resident_context": LONG_CONTEXT.input_tokens,
        },
    },
    readouts=budget_readouts,
    why_still=_why_budget_still,
)
