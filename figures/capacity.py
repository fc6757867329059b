"""Figures of what a pool of KV holds."""

from collections.abc import Mapping
from typing import Annotated, Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures import style
from figures.exploration import Choice, Exploration, Question, Readout, Slider
from figures.lines import round_ticks, ticks_below, ticks_left
from figures.page import box, new_page, swatch
from figures.words import words
from lib import model
from lib.checks import one_of
from lib.design_problem import INSTANCE, LONG_CONTEXT, SHORT_CHAT
from lib.memory import KvPool, RequestShape
from lib.units import GIB, shown

PAGE_PT = 194
# Beyond so many requests their borders would be closer than a reader can see.
MOST_BORDERS = 80
KV_FORMATS = {"BF16": 2, "FP8": 1}


def what_fits(
    *,
    input_tokens: Annotated[int, Slider("tokens in", 512, 32768, 256)] = SHORT_CHAT.input_tokens,
    output_tokens: Annotated[int, Slider("tokens out", 1, 1024, 1)] = SHORT_CHAT.output_tokens,
    shared_prefix_tokens: Annotated[int, Slider("shared prefix", 0, 8192, 256)] = 0,
    pool_bytes: Annotated[int, Slider("pool", 4, 48, 1, "GiB")] = INSTANCE.kv_pool_bytes,
    page_tokens: Annotated[int, Choice("page, tokens", (1, 8, 16, 32, 64, 128, 256))] = 16,
    of_model: Annotated[str, Choice("model", tuple(model.PRESETS))] = INSTANCE.model.name,
    kv_format: Annotated[str, Choice("KV format", tuple(KV_FORMATS))] = "BF16",
    language: str = "en",
) -> Figure:
    """What requests of one kind hold when they are admitted by their size after prefill, and by their final size.

    Raises InputError for values that make no sense and for a request that can never fit. Source: section 8.1.2.
    """
    request, kv = kind_and_pool(
        input_tokens, output_tokens, shared_prefix_tokens, pool_bytes, page_tokens, of_model, kv_format
    )
    text = words(language, "what-fits")
    early, final = kv.requests_that_fit(request, finished=False), kv.requests_that_fit(request)
    needed = kv.held_bytes(request, early)
    with style.in_book_style():
        drawn = new_page(PAGE_PT)
        bars = box(drawn, 14, 52, 392, 124)
        end = 1.04 * max(needed, kv.pool_bytes) / GIB
        bars.set(xlim=(0, end), ylim=(0, 4))
        ticks_below(bars, {tick: f"{tick:g} GiB" for tick in round_ticks(end)})
        ticks_left(bars, {})
        _draw_held(bars, 2.0, kv, request, early)
        _draw_held(bars, 0.2, kv, request, final)
        bars.axvline(kv.pool_bytes / GIB, color=style.LIMIT, linestyle=(0, (4, 2)))
        side = "right" if kv.pool_bytes > 0.5 * needed else "left"
        bars.text(kv.pool_bytes / GIB, 4, text["pool"], va="bottom", ha=side, color=style.LIMIT)
        for level, requests, key in ((3.5, early, "by_prefill"), (1.7, final, "by_final")):
            size = shown(kv.held_bytes(request, requests), "MiB")
            bars.text(0, level, text[key].format(requests=requests, size=size), va="center", bbox=_OVER_LINES)
        _draw_key(drawn, text, kv, request)
    return drawn


_OVER_LINES = {"facecolor": style.PAPER, "edgecolor": "none", "pad": 1}


def kind_and_pool(
    input_tokens: int,
    output_tokens: int,
    shared_prefix_tokens: int,
    pool_bytes: int,
    page_tokens: int,
    of_model: str,
    kv_format: str,
) -> tuple[RequestShape, KvPool]:
    """The requests and the pool that the figure's parameters describe; raises InputError if not one request fits."""
    element = KV_FORMATS[one_of("kv_format", kv_format, KV_FORMATS)]
    kv = KvPool(model.preset(one_of("of_model", of_model, model.PRESETS)), pool_bytes, page_tokens, element)
    request = RequestShape(input_tokens, output_tokens, shared_prefix_tokens)
    kv.refuse_if_never(request)
    return request, kv


def fits_readouts(**settings: Any) -> tuple[Readout, ...]:
    """What the requests hold and how many fit, counted in bytes, at the settings of `what_fits`."""
    request, kv = kind_and_pool(**settings)
    early, final = kv.requests_that_fit(request, finished=False), kv.requests_that_fit(request)
    return (
        Readout("shared by all", kv.shared_bytes(request), "MiB"),
        Readout("of one request, after prefill", kv.private_bytes(request, finished=False), "MiB", 1),
        Readout("of one request, at its end", kv.private_bytes(request), "MiB", 1),
        Readout("requests that fit at their end", final),
        Readout("requests that fit after prefill", early),
        Readout("what the latter need at their end", kv.held_bytes(request, early), "MiB"),
    )


def _ask_how_many() -> Question:
    kv = KvPool(INSTANCE.model, INSTANCE.kv_pool_bytes)
    alone, shared = kv.requests_that_fit(LONG_CONTEXT.shape_alone), kv.requests_that_fit(LONG_CONTEXT.shape)
    once, each = kv.shared_bytes(LONG_CONTEXT.shape), kv.private_bytes(LONG_CONTEXT.shape)
    return Question(
        text=f"Of long requests, {alone} fit into {shown(kv.pool_bytes, 'GiB')} when each keeps all of its own. Now "
        f"the {LONG_CONTEXT.shared_prefix_tokens} tokens that they have in common are held once. How many fit?",
        choices=(str(alone), str(2 * alone), str(shared), str(4 * alone + 2)),
        answer=str(shared),
        reveals={
            "input_tokens": LONG_CONTEXT.input_tokens,
            "shared_prefix_tokens": LONG_CONTEXT.shared_prefix_tokens,
        },
        because=f"The prefix takes {shown(once, 'MiB')}, once; each request adds {shown(each, 'MiB')} of its own.",
    )


def _why_fits_still(moved: str, settings: Mapping[str, Any]) -> str:
    _, kv = kind_and_pool(**settings)
    if moved == "shared_prefix_tokens":
        return f"Only full pages are shared, and no further page of {kv.page_tokens} tokens was filled."
    if moved in ("input_tokens", "output_tokens", "page_tokens"):
        return f"A request takes whole pages of {kv.page_tokens} tokens, and no further page was needed."
    return ""


FITS_EXPLORATION = Exploration(
    question=_ask_how_many,
    in_view=("input_tokens", "output_tokens", "shared_prefix_tokens", "pool_bytes"),
    settings={
        "long requests": {"input_tokens": LONG_CONTEXT.input_tokens},
        "long, prefix shared": {
            "input_tokens": LONG_CONTEXT.input_tokens,
            "shared_prefix_tokens": LONG_CONTEXT.shared_prefix_tokens,
        },
        "long, a latent per token": {"input_tokens": LONG_CONTEXT.input_tokens, "of_model": "DeepSeek-V3"},
    },
    readouts=fits_readouts,
    why_still=_why_fits_still,
)


def _draw_held(axes: Axes, bottom: float, kv: KvPool, request: RequestShape, requests: int) -> None:
    """The shared pages, then what all requests hold after prefill, then what they add until their end."""
    shared, early = kv.shared_bytes(request), kv.private_bytes(request, finished=False)
    growth = kv.private_bytes(request) - early
    start = 0.0
    for role, size in (("shared", shared), ("prefill", requests * early), ("decode", requests * growth)):
        if size:
            _bar(axes, role, start / GIB, size / GIB, bottom, requests if role != "shared" else 1)
        start += size


def _bar(axes: Axes, role: str, start: float, length: float, bottom: float, parts: int) -> None:
    axes.broken_barh([(start, length)], (bottom, 1), **style.look(role))
    if 1 < parts <= MOST_BORDERS:
        borders = [start + length * part / parts for part in range(1, parts)]
        axes.vlines(borders, bottom, bottom + 1, color=style.INK, linewidth=style.THIN_PT / 2)


def _draw_key(page: Figure, text: Mapping[str, str], kv: KvPool, request: RequestShape) -> None:
    early, final = kv.private_bytes(request, finished=False), kv.private_bytes(request)
    sizes = {"prefill": early, "decode": final - early, "shared": kv.shared_bytes(request)}
    for place, (role, size) in enumerate(sizes.items()):
        if size:
            swatch(page, 14 + 136 * place, 10, text[role].format(size=shown(size, "MiB")), role)
