"""Figures of what each output reads from memory, as curves over the batch."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from typing import Annotated, Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures import style
from figures.capacity import KV_FORMATS
from figures.exploration import Choice, Exploration, Question, Readout, Slider
from figures.lines import doubling_axis, height_from_zero, label_ends, line_key, log_height
from figures.page import box, new_page, write
from figures.words import words
from lib import model, reads
from lib.checks import one_of, whole
from lib.design_problem import INSTANCE, LONG_CONTEXT, SHORT_CHAT
from lib.memory import KvPool, RequestShape
from lib.step_time import Device, device
from lib.units import GIB, shown

MOST_BATCH = 128
BATCHES = range(1, MOST_BATCH + 1)
READ_FORMATS: Mapping[str, int | Fraction] = {**KV_FORMATS, "q8_0": Fraction(34, 32), "q4_0": Fraction(18, 32)}


def _reads_all_context(name: str) -> bool:
    """Whether a preset reads the same weights at every batch and, in each layer, the KV of the whole context."""
    shape = model.preset(name)
    attentions = [group.attention for group in shape.layers]
    by_heads = all(isinstance(one, model.HeadAttention) and one.window is None for one in attentions)
    return by_heads and not shape.has_experts


MODELS = tuple(filter(_reads_all_context, model.PRESETS))


@dataclass(frozen=True)
class Requests:
    """Requests of one context: what each of their outputs reads, and the batches at which something else sets in."""

    context: int
    pool: KvPool
    at_peak: Device

    def read_gib(self, batch: int, weights: bool = True) -> float:
        """GiB read for each output, with the weights or, as when they have a store of their own, without."""
        weight_bytes = self.at_peak.weight_bytes if weights else 0
        return float(reads.reads_per_output(weight_bytes, batch, self.context, self.at_peak.kv_bytes_per_token) / GIB)

    def between_gib(self) -> tuple[list[float], list[float]]:
        """Batches and what each output reads at them; in eighths where a line between two whole ones would bend."""
        weight_bytes, each_token = 8 * self.at_peak.weight_bytes, self.at_peak.kv_bytes_per_token
        eighths = [*range(8, 64), *range(64, 8 * MOST_BATCH + 1, 8)]
        reads_in = (reads.reads_per_output(weight_bytes, eighth, self.context, each_token) for eighth in eighths)
        return [eighth / 8 for eighth in eighths], [float(read / GIB) for read in reads_in]

    @property
    def kv_gib(self) -> float:
        return self.read_gib(1, weights=False)

    @property
    def crossing(self) -> int:
        """The batch from which KV is at least as much as the weights."""
        return reads.kv_crossover(self.at_peak.weight_bytes, self.context, self.at_peak.kv_bytes_per_token)

    @property
    def fit(self) -> int:
        """Requests with the outputs of a short chat that the pool holds at their end."""
        return self.pool.requests_that_fit(RequestShape(self.context, SHORT_CHAT.output_tokens))

    @property
    def crosses(self) -> bool:
        """Whether the crossing lies among the batches drawn."""
        return self.crossing <= MOST_BATCH

    @property
    def fills(self) -> bool:
        """Whether the pool is full at one of the batches drawn."""
        return 1 <= self.fit < MOST_BATCH

    @property
    def compute_bound(self) -> int | None:
        return reads.compute_crossover(self.at_peak, self.context)


def reads_per_output(
    *,
    batch: Annotated[int, Slider("batch", 1, MOST_BATCH, 1)] = 16,
    context: Annotated[int, Slider("first context", 512, 32768, 512)] = SHORT_CHAT.input_tokens,
    other_context: Annotated[int, Slider("second context", 512, 32768, 512)] = LONG_CONTEXT.input_tokens,
    pool_bytes: Annotated[int, Slider("pool", 4, 48, 1, "GiB")] = INSTANCE.kv_pool_bytes,
    kv_format: Annotated[str, Choice("KV format", tuple(READ_FORMATS))] = "BF16",
    of_model: Annotated[str, Choice("model", MODELS)] = INSTANCE.model.name,
    language: str = "en",
) -> Figure:
    """Bytes read for each output against the batch, for requests of two contexts, and how far the pool lets them go.

    Raises InputError for values that make no sense. Source: section 8.2.1, figure 8-3.
    """
    both = two_kinds(batch, context, other_context, pool_bytes, kv_format, of_model)
    text = words(language, "reads-per-output")
    weights = [both[0].at_peak.weight_bytes / GIB / each for each in BATCHES]
    with style.in_book_style():
        page = new_page(274)
        write(page, 14, 258, text["height"])
        axes = box(page, 44, 80, 286, 160)
        doubling_axis(axes, MOST_BATCH, text["width"])
        log_height(axes, [weights[-1], *(end for one in both for end in (one.kv_gib, one.read_gib(1)))])
        axes.plot(BATCHES, weights, **style.line("weights"))
        for role, one in zip(("one", "other"), both, strict=True):
            _draw_reads(axes, one, role)
        _mark_batch(axes, batch, [one.read_gib(batch) for one in both], text["batch"].format(batch=batch))
        ends = [one.read_gib(MOST_BATCH) for one in both]
        names = [text["context"].format(context=one.context) for one in both]
        label_ends(axes, [*ends, weights[-1]], [*names, text["weights"]])
        for role, one, bottom in zip(("one", "other"), both, (26, 8), strict=True):
            circle, bar = (text[mark] if drawn else "" for mark, drawn in (("circle", one.crosses), ("bar", one.fills)))
            numbers = {"context": one.context, "crossing": one.crossing, "fit": one.fit}
            line_key(page, 14, bottom, text["key"].format(**numbers, circle=circle, bar=bar), role)
    return page


def two_kinds(
    batch: int, context: int, other_context: int, pool_bytes: int, kv_format: str, of_model: str
) -> tuple[Requests, Requests]:
    """The requests of both contexts that the figure's parameters describe."""
    whole("batch", batch, at_least=1, at_most=MOST_BATCH)
    shape = model.preset(one_of("of_model", of_model, MODELS))
    element = READ_FORMATS[one_of("kv_format", kv_format, READ_FORMATS)]
    pool = KvPool(shape, pool_bytes, bytes_per_element=element)
    at_peak = replace(device(shape, mfu=1, mbu=1), kv_bytes_per_token=model.kv_bytes_per_token(shape, element))
    first = Requests(whole("context", context, at_least=1, at_most=reads.MOST_TOKENS), pool, at_peak)
    return first, replace(first, context=whole("other_context", other_context, at_least=1, at_most=reads.MOST_TOKENS))


def reads_readouts(**settings: Any) -> tuple[Readout, ...]:
    """What an output reads at the batch chosen, and the ends of a batch, at the settings of `reads_per_output`."""
    batch = settings["batch"]
    found = []
    for name, one in zip(("first", "second"), two_kinds(**settings), strict=True):
        found += [
            Readout(f"{name} context: read per output", one.read_gib(batch) * GIB, "GiB", 2),
            Readout(f"{name} context: of it KV, in %", 100 * one.kv_gib / one.read_gib(batch)),
            Readout(f"{name} context: KV as much as weights from batch", one.crossing),
            Readout(f"{name} context: requests that fit the pool", one.fit),
            Readout(f"{name} context: compute-bound from batch", one.compute_bound or "never at this context"),
        ]
    return tuple(found)


def _book_requests(context: int) -> Requests:
    at_peak = device(INSTANCE.model, mfu=1, mbu=1)
    return Requests(context, KvPool(INSTANCE.model, INSTANCE.kv_pool_bytes), at_peak)


def _ask_where_kv_overtakes() -> Question:
    short, long = _book_requests(SHORT_CHAT.input_tokens), _book_requests(LONG_CONTEXT.input_tokens)
    return Question(
        text=f"With {short.context} tokens in context the requests of a batch read as much KV as weights from batch "
        f"{short.crossing} on. Let the context be {long.context // short.context} times as long. From which batch on?",
        choices=(str(4 * short.crossing), str(short.crossing // 2), str(long.crossing), str(short.crossing // 16)),
        answer=str(long.crossing),
        reveals={"batch": long.crossing, "context": short.context, "other_context": long.context},
        because="Weights are read once for all, KV for each: four times the KV, a quarter of the batch. And the pool "
        f"of {shown(short.pool.pool_bytes, 'GiB')} is full before either: it holds {short.fit} of the short requests "
        f"and {long.fit} of the long ones.",
    )


def _why_reads_still(moved: str, settings: Mapping[str, Any]) -> str:
    if moved == "pool_bytes":
        return f"Whole requests only: no further one fits, or more than the {MOST_BATCH} that are drawn fit already."
    return ""


READS_EXPLORATION = Exploration(
    question=_ask_where_kv_overtakes,
    in_view=("batch", "context", "other_context", "pool_bytes"),
    settings={
        "a pool beyond both crossings": {"pool_bytes": 17 * GIB},
        "KV in 4.5 bits": {"kv_format": "q4_0"},
        "four and sixteen times the context": {"context": 8192, "other_context": 32768},
    },
    readouts=reads_readouts,
    why_still=_why_reads_still,
)


def _draw_reads(axes: Axes, one: Requests, role: str) -> None:
    """The curve, thin where the pool has no room any more, its KV alone, the crossing, and the pool's wall."""
    colour = style.LINE[role][0]
    curve = [one.read_gib(batch) for batch in BATCHES]
    within = min(one.fit, MOST_BATCH)
    axes.plot(BATCHES, curve, color=colour, linewidth=style.THIN_PT)
    axes.plot(BATCHES[:within], curve[:within], color=colour, linewidth=1.6 * style.LINE_PT)
    axes.axhline(one.kv_gib, color=colour, linestyle=(0, (1, 2)))
    if one.crosses:
        axes.plot([one.crossing], [one.kv_gib], "o", markerfacecolor=style.PAPER, markeredgecolor=colour)
    if one.fills:
        wall: dict[str, Any] = {"color": style.LIMIT, "markersize": 18, "markeredgewidth": 2 * style.LINE_PT}
        axes.plot([one.fit], [one.read_gib(one.fit)], "|", clip_on=False, **wall)


def _mark_batch(axes: Axes, batch: int, values: list[float], text: str) -> None:
    """A line through the batch that is looked at, its name above, and a dot on each curve."""
    axes.axvline(batch, color=style.FAINT, linewidth=style.THIN_PT)
    side = "left" if batch == 1 else "center"  # left of the axis stands the highest tick
    axes.text(batch, 1.02, text, transform=axes.get_xaxis_transform(), ha=side, va="bottom")
    for value in values:
        axes.plot([batch], [value], "o", markersize=4, color=style.INK, clip_on=False)


class WeightsFrom(StrEnum):
    """Where a step reads the weights."""

    HBM = "HBM"
    STORE = "a separate store"


def separate_weight_store(
    *,
    batch: Annotated[int, Slider("batch", 1, MOST_BATCH, 1)] = 16,
    context: Annotated[int, Slider("context", 128, 16384, 128)] = LONG_CONTEXT.input_tokens,
    weights_from: Annotated[WeightsFrom, Choice("weights from", tuple(WeightsFrom))] = WeightsFrom.HBM,
    of_model: Annotated[str, Choice("model", MODELS)] = INSTANCE.model.name,
    language: str = "en",
) -> Figure:
    """Bytes read from HBM for each output when the weights come from there too, and when a fast store holds them.

    Raises InputError for values that make no sense. Source: section 8.2.1, figure 8-4, which gives no values: those
    of the chapter's own model are this notebook's choice.
    """
    one, from_hbm = stored_weights(batch, context, weights_from, of_model)
    text = words(language, "separate-weight-store")
    batches, with_weights = one.between_gib()
    with style.in_book_style():
        page = new_page(236)
        write(page, 14, 220, text["height"])
        axes = box(page, 44, 62, 286, 140)
        doubling_axis(axes, MOST_BATCH, text["width"])
        height_from_zero(axes, with_weights[0])
        axes.fill_between(batches, with_weights, one.kv_gib, color=style.FILL["queue"], linewidth=0)
        for role, curve, followed in (
            ("one", with_weights, from_hbm),
            ("other", [one.kv_gib] * len(batches), not from_hbm),
        ):
            axes.plot(batches, curve, linewidth=style.LINE_PT * (2 if followed else 1), **style.line(role))
        _mark_batch(axes, batch, [one.read_gib(batch, from_hbm)], text["batch"].format(batch=batch))
        label_ends(axes, [with_weights[-1], one.kv_gib], [text["hbm"], text["store"]])
        saved = shown(GIB * (one.read_gib(batch) - one.kv_gib), "GiB", 2)
        write(page, 14, 8, text["distance"].format(batch=batch, saved=saved))
    return page


def stored_weights(batch: int, context: int, weights_from: str, of_model: str) -> tuple[Requests, bool]:
    """The requests that the figure's parameters describe, and whether their weights come from HBM."""
    whole("batch", batch, at_least=1, at_most=MOST_BATCH)
    from_hbm = one_of("weights_from", weights_from, WeightsFrom) is WeightsFrom.HBM
    shape = model.preset(one_of("of_model", of_model, MODELS))
    tokens = whole("context", context, at_least=1, at_most=reads.MOST_TOKENS)
    return Requests(tokens, KvPool(shape, INSTANCE.kv_pool_bytes), device(shape, mfu=1, mbu=1)), from_hbm


def store_readouts(**settings: Any) -> tuple[Readout, ...]:
    """What an output reads with and without a store for the weights, at the settings of `separate_weight_store`."""
    batch = settings["batch"]
    one, from_hbm = stored_weights(**settings)
    return (
        Readout("read from HBM per output", GIB * one.read_gib(batch, from_hbm), "GiB", 2),
        Readout("distance of the curves, weights / batch", GIB * (one.read_gib(batch) - one.kv_gib), "GiB", 2),
        Readout("KV of one request", GIB * one.kv_gib, "GiB", 3),
        Readout(
            "times less from HBM than at batch 1", one.read_gib(1, from_hbm) / one.read_gib(batch, from_hbm), "", 1
        ),
        Readout(
            "context from which reading KV takes longer than computing",
            reads.compute_kv_context(one.at_peak) or "never",
        ),
    )


def _ask_what_batching_still_saves() -> Question:
    one = _book_requests(LONG_CONTEXT.input_tokens)
    few, many = 16, 64
    from_hbm, from_store = (one.read_gib(few, hbm) / one.read_gib(many, hbm) for hbm in (True, False))
    choices = tuple(_times_less(times) for times in (from_store, from_hbm, many / few))
    return Question(
        text=f"Each request has {one.context} tokens in context. The weights now come from a fast store of their own. "
        f"The batch grows from {few} to {many}: how much less does each output read from HBM?",
        choices=choices,
        answer=choices[0],
        reveals={"weights_from": WeightsFrom.STORE, "batch": many, "context": one.context},
        because="What batching divides are the weights, and they are gone from HBM; each output still reads all KV of "
        f"its own request, {shown(GIB * one.kv_gib, 'GiB', 3)}. With the weights in HBM it would be {choices[1]}.",
    )


def _times_less(times: float) -> str:
    return "the same" if times == 1 else f"{times:.2g} times less"


STORE_EXPLORATION = Exploration(
    question=_ask_what_batching_still_saves,
    in_view=("batch", "context", "weights_from"),
    settings={
        "batch 16, from the store": {"batch": 16, "weights_from": WeightsFrom.STORE},
        "batch 64, from the store": {"batch": 64, "weights_from": WeightsFrom.STORE},
        "short contexts, from HBM": {"batch": 64, "context": 512},
    },
    readouts=store_readouts,
    why_still=lambda moved, settings: "",
)
