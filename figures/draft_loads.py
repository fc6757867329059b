"""Figures of drafts under load: what they save or cost as more requests share the step."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures import style
from figures.chunks import CLOCKS
from figures.exploration import Choice, Exploration, Question, Readout, Slider
from figures.lines import doubling_axis, label_ends, log_height
from figures.page import box, new_page, swatch, write
from figures.schedules import StepModel, model_of
from figures.times import in_ns
from figures.words import words
from lib.checks import one_of
from lib.design_problem import INSTANCE, LONG_CONTEXT, SHORT_CHAT
from lib.four_requests import HOST_NS
from lib.memory import KvPool, RequestShape
from lib.speculation import ACCEPTS_B, DRAFT_TOKENS, at_every_position, expected_outputs
from lib.speculation_by_batch import SHORT_CONTEXT, SpeculativeDecode, context_that_always_pays
from lib.step_time import NS, LaunchBound
from lib.units import shown

PAGE_PT, LEFT_PT, BOTTOM_PT, WIDTH_PT, HEIGHT_PT = 290, 44, 84, 290, 166
MOST_BATCH = 512
BATCHES = (*range(1, 64), *range(64, MOST_BATCH + 1, 8))
CONTEXTS = tuple(2**power for power in range(7, 15))
QUICK_HOST_S = 0.01
BY_MODEL = {StepModel.LAUNCH_BOUND: "launch", StepModel.FIT: "fit"}
_CIRCLE: dict[str, Any] = {"marker": "o", "markerfacecolor": style.PAPER, "markeredgecolor": style.INK, "zorder": 4}
_SAVED: dict[str, Any] = style.look("decode") | {"linewidth": 0}
_COST: dict[str, Any] = style.look("foreign") | {"linewidth": 0}


@dataclass(frozen=True)
class Load:
    """Equal requests in decode, and how many of them the pool holds when each has its last output."""

    decode: SpeculativeDecode
    fit: int

    def plain_ms(self, batch: int) -> float:
        """What an output takes without drafts."""
        return self.decode.plain_ns(batch) / NS * 1e3

    def drafted_ms(self, batch: int) -> float:
        """What it takes with them, on average."""
        return self.decode.time_ratio(batch) * self.plain_ms(batch)

    @property
    def stops(self) -> int | None:
        """The batch from which drafts cost time, if it is drawn."""
        return _stops(self.decode)

    @property
    def stops_in_pool(self) -> bool:
        return self.stops is not None and self.stops <= self.fit

    @property
    def always_from(self) -> int | None:
        """The context from which drafts pay at every batch; none by the fit, in which each row costs the same."""
        by = self.decode.step_time
        return context_that_always_pays(by.device, self.decode.acceptance) if isinstance(by, LaunchBound) else None


@lru_cache(maxsize=1)
def _stops(decode: SpeculativeDecode) -> int | None:
    """Kept, as the read-outs and the picture ask for the same."""
    return decode.stops_paying_at(MOST_BATCH)


def speculation_under_load(
    *,
    context: Annotated[int, Choice("context", CONTEXTS)] = LONG_CONTEXT.input_tokens,
    host_s: Annotated[float, Slider("host", 0.0, 30.0, 1.0, "ms")] = HOST_NS / NS,
    draft_tokens: Annotated[int, Slider("draft, tokens", 1, 15, 1)] = DRAFT_TOKENS,
    acceptance: Annotated[float, Slider("accepted, each", 0.0, 1.0, 0.05)] = ACCEPTS_B,
    step_time: Annotated[StepModel, Choice("step time", tuple(StepModel))] = StepModel.LAUNCH_BOUND,
    pool_bytes: Annotated[int, Slider("pool", 4, 48, 1, "GiB")] = INSTANCE.kv_pool_bytes,
    language: str = "en",
) -> Figure:
    """The time of an output with and without drafts against the batch, and how far the pool lets the batch grow.

    Drafts themselves take neither time nor room. Raises InputError for values that make no sense. Source: section
    8.5.4, which gives no values: those of its example in 8.5.2 are this notebook's choice.
    """
    load = load_at(context, host_s, draft_tokens, acceptance, step_time, pool_bytes)
    text = words(language, "speculation-under-load")
    plain, drafted = ([of(batch) for batch in BATCHES] for of in (load.plain_ms, load.drafted_ms))
    with style.in_book_style():
        page = new_page(PAGE_PT)
        write(page, 14, PAGE_PT - 16, text[BY_MODEL[step_time]])
        axes = box(page, LEFT_PT, BOTTOM_PT, WIDTH_PT, HEIGHT_PT)
        doubling_axis(axes, MOST_BATCH, text["batch"])
        log_height(axes, [*plain, *drafted])
        for role, each in (("one", plain), ("other", drafted)):
            axes.plot(BATCHES, each, linewidth=style.THIN_PT, **style.line(role))
        _fill_pool(axes, load)
        if load.fit <= MOST_BATCH:
            axes.axvline(load.fit, color=style.LIMIT, linewidth=1.6 * style.LINE_PT, clip_on=False)
            axes.text(load.fit, 1.02, text["full"], transform=axes.get_xaxis_transform(), ha="center", va="bottom")
        if load.stops:
            axes.plot([load.stops], [load.plain_ms(load.stops)], clip_on=False, **_CIRCLE)
        label_ends(axes, [plain[-1], drafted[-1]], [text["plain"], text["drafted"]])
        swatch(page, 14, 28, text["saves"], "decode")
        swatch(page, 214, 28, text["costs"], "foreign")
        write(page, 14, 8, text[_verdict_of(load)].format(stops=load.stops, fit=load.fit))
    return page


def load_at(context: int, host_s: float, draft_tokens: int, acceptance: float, step_time: str, pool_bytes: int) -> Load:
    """The requests and their pool that the figure's parameters describe."""
    request = RequestShape(one_of("context", context, CONTEXTS), SHORT_CHAT.output_tokens)
    model = model_of(one_of("step_time", step_time, StepModel), host_ns=in_ns("host_s", host_s))
    pool = KvPool(INSTANCE.model, pool_bytes)
    pool.refuse_if_never(request)
    decode = SpeculativeDecode(context, at_every_position(acceptance, draft_tokens), model)
    return Load(decode, pool.requests_that_fit(request))


def _fill_pool(axes: Axes, load: Load) -> None:
    """Between the curves, as far as the pool goes: what drafts save, and what they cost; the curves thick so far."""
    most = min(load.fit, MOST_BATCH)
    batches = [*(batch for batch in BATCHES if batch < most), most]
    plain, drafted = ([of(batch) for batch in batches] for of in (load.plain_ms, load.drafted_ms))
    pays = [without > with_drafts for without, with_drafts in zip(plain, drafted, strict=True)]
    for look, where in ((_SAVED, pays), (_COST, [not each for each in pays])):
        axes.fill_between(batches, plain, drafted, where=where, interpolate=True, **look)
    for role, each in (("one", plain), ("other", drafted)):
        axes.plot(batches, each, linewidth=1.6 * style.LINE_PT, **style.line(role))


def _verdict_of(load: Load) -> str:
    if load.stops is None:
        return "never"
    return "stops" if load.stops_in_pool else "beyond"


def load_readouts(**settings: Any) -> tuple[Readout, ...]:
    """Where drafts stop paying, and what an output takes, at the settings of `speculation_under_load`."""
    load = load_at(**settings)
    clocks = CLOCKS[BY_MODEL[settings["step_time"]]]
    times = [
        Readout(f"an output, {name}: {way}", of(batch) / 1e3, "ms", 2, clocks)
        for name, batch in (("one request", 1), ("pool full", load.fit))
        for way, of in (("plain", load.plain_ms), ("drafts", load.drafted_ms))
    ]
    return (
        Readout("drafts stop paying from batch", load.stops or f"none to {MOST_BATCH}"),
        Readout("requests that fit the pool", load.fit),
        Readout("in the pool drafts pay", _where_they_pay(load)),
        Readout("outputs of a round", expected_outputs(load.decode.acceptance), "", 2),
        *times,
        Readout("drafts / plain, pool full", load.decode.time_ratio(load.fit), "", 3),
        Readout("pay at any batch from context", load.always_from or "none"),
    )


def _where_they_pay(load: Load) -> str:
    if not load.stops_in_pool:
        return "at every batch"
    assert load.stops
    return f"up to batch {load.stops - 1}" if load.stops > 1 else "at no batch"


def _book_load(context: int = LONG_CONTEXT.input_tokens, host_s: float = HOST_NS / NS) -> Load:
    return load_at(context, host_s, DRAFT_TOKENS, ACCEPTS_B, StepModel.LAUNCH_BOUND, INSTANCE.kv_pool_bytes)


def _ask_what_brings_the_end() -> Question:
    long, short = LONG_CONTEXT.input_tokens, SHORT_CONTEXT
    book, quick, brief, both = (
        _book_load(), _book_load(host_s=QUICK_HOST_S), _book_load(short), _book_load(short, QUICK_HOST_S),
    )  # fmt: skip
    assert [load.stops_in_pool for load in (book, quick, brief, both)] == [False, False, False, True]
    host, quick_host = shown(HOST_NS / NS, "ms"), shown(QUICK_HOST_S, "ms")
    answer = "only both together"
    return Question(
        text=f"Contexts of {long} tokens, a host that takes {host} for a step, drafts of {DRAFT_TOKENS} tokens, each "
        f"accepted with {ACCEPTS_B:g}: drafts pay at each batch that the pool holds, up to {book.fit}. What makes them "
        f"cost time in a batch that it holds: contexts of {short} tokens, a host of {quick_host}?",
        choices=("the short contexts", "the quick host", "either of them", answer),
        answer=answer,
        reveals={"context": short, "host_s": QUICK_HOST_S},
        because=f"Of short contexts the pool holds {brief.fit}, but as long as a step waits {host} for its host, to "
        f"verify costs nothing: drafts cost time only from batch {brief.stops} on. Contexts of {long} tokens take "
        f"longer to read than {DRAFT_TOKENS + 1} rows to compute, and with drafts they are read less often: from "
        f"{both.always_from} tokens on that pays at any batch. With both changes the limit is batch {both.stops}.",
    )


def _why_loads_still(moved: str, settings: Mapping[str, Any]) -> str:
    if moved == "host_s" and settings["step_time"] == StepModel.FIT:
        return "The fit has a fixed part of its own and knows no host."
    if moved == "host_s":
        return "The device takes longer than the host at every batch: the host costs nothing."
    if moved == "pool_bytes":
        return f"Whole requests only: no further one fits, or more than the {MOST_BATCH} that are drawn fit already."
    if moved == "draft_tokens":
        return "A token so late in a draft is never accepted, or hardly, and to verify it takes no longer."
    return ""


LOAD_EXPLORATION = Exploration(
    question=_ask_what_brings_the_end,
    in_view=("context", "host_s", "draft_tokens", "acceptance"),
    settings={
        "short contexts": {"context": SHORT_CONTEXT},
        "short contexts, a quick host": {"context": SHORT_CONTEXT, "host_s": QUICK_HOST_S},
        "long drafts, rarely accepted": {"context": 512, "draft_tokens": 15, "acceptance": 0.25},
    },
    readouts=load_readouts,
    why_still=_why_loads_still,
)
