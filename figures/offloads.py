"""Figures of weights in host memory: what the card gains by it, and what each step copies for it."""

from collections.abc import Mapping
from typing import Annotated, Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from figures import machine, style
from figures.exploration import Choice, Exploration, Question, Readout, Slider
from figures.lines import FINER, round_above, round_ticks, ticks_below, ticks_left
from figures.page import box, new_page, swatch, write
from figures.words import words
from lib.clocks import Clock
from lib.design_problem import INSTANCE, LONG_CONTEXT, SHORT_CHAT
from lib.latency import throughput
from lib.memory import KvPool
from lib.offload import EVERY, NVLINK, PCIE, REQUESTS_TOGETHER, Offload, Part, bytes_of_set, decode_steps, every_nth
from lib.prefetch import CLOCK, Prefetch, StepKind, hiding_link, hiding_prompt, is_recorded, plain_step_ns, prefetch
from lib.prefix_value import transfer_time
from lib.step_time import NS
from lib.units import GB, MIB, shown

Every = Annotated[int, Slider("every n-th layer, n", 2, 12, 1)]
Buffers = Annotated[int, Slider("buffers", 1, 3, 1)]
LINK = Slider("link", 16, 900, 2, "GB/s")
Link = Annotated[int, LINK]
Kind = Annotated[StepKind, Choice("step", tuple(StepKind))]
PromptTokens = Annotated[int, Slider("prompt tokens", 64, 8192, 64)]

MODEL = INSTANCE.model
_POOL = KvPool(MODEL, INSTANCE.kv_pool_bytes)
INPUT_BYTES, COMPLETE_BYTES = (_POOL.private_bytes(LONG_CONTEXT.shape_alone, finished) for finished in (False, True))
# The prompt whose prefill hides what a decode step does not.
PREFILL_EXAMPLE = 1024
LEFT_PT, WIDTH_PT = 14, 392
# A row of the memory figure: its heading, the bar, a strip of blocks for each way to count requests.
ROWS_PT, BAR_PT, STRIP_PT = 188, 15, 14
MOST_BUFFERS_DRAWN = 2
# Of the figure of times: its height, from one pair of bars to the next, and the height of a bar.
TIMES_PAGE_PT, PAIR_PT, TIME_BAR_PT = 234, 68, 16


def offload_of(every: int, buffers: int, part: Part = Part.FFN) -> Offload:
    """Every n-th layer of the chapter's model, its FFN or all of it, behind so many buffers."""
    return Offload(MODEL.layer_count, every_nth(MODEL.layer_count, every), bytes_of_set(MODEL, part), buffers)


def offload_memory(
    *,
    every: Every = EVERY,
    buffers: Buffers = 1,
    part: Annotated[Part, Choice("offloaded", tuple(Part))] = Part.FFN,
    language: str = "en",
) -> Figure:
    """What offloading releases, what the buffers take of it, and the requests that fit in the rest, by buffers.

    Raises InputError for values that make no sense. Source: section 8.4.3, figure 8-24.
    """
    rows = memory_rows(every, buffers, part)
    text, of = words(language, "offload-memory"), rows[0]
    end, pitch = of.released_bytes / MIB, ROWS_PT / len(rows)
    with style.in_book_style():
        page = new_page(278)
        sizes = {"sets": of.sets, "each": shown(of.set_bytes, "MiB"), "all": shown(of.released_bytes, "MiB")}
        write(page, LEFT_PT, 260, text["released"].format(**sizes))
        axes = box(page, LEFT_PT, 66, WIDTH_PT, ROWS_PT)
        axes.set(xlim=(0, end), ylim=(0, ROWS_PT))
        ticks_left(axes, {})
        ticks_below(axes, {tick: f"{tick:g}" for tick in round_ticks(end)}, text["mib"])
        for place, row in enumerate(rows):
            _draw_row(axes, ROWS_PT - place * pitch, row, row.buffers == buffers, text)
        swatch(page, LEFT_PT, 14, text["decode"], "decode")
        swatch(page, 150, 14, text["foreign"], "foreign")
        write(page, 290, 14, text["dashed"])
    return page


def memory_rows(every: int, buffers: int, part: Part) -> list[Offload]:
    """The same offload with one buffer, with two, and with those that are asked for."""
    asked = offload_of(every, buffers, part)
    most = min(max(asked.buffers, MOST_BUFFERS_DRAWN), asked.sets - 1)
    return [offload_of(every, each, part) for each in range(1, most + 1)]


def _draw_row(axes: Axes, top: float, of: Offload, is_read: bool, text: Mapping[str, str]) -> None:
    """From the top: the heading, the bar of what is gained and what buffers keep, and the requests that fit in it."""
    net, released = of.net_bytes / MIB, of.released_bytes / MIB
    amounts = {"net": shown(of.net_bytes, "MiB"), "kept": shown(of.buffer_bytes, "MiB")}
    heading = text["one" if of.buffers == 1 else "more"].format(buffers=of.buffers, **amounts)
    if is_read:
        axes.plot([0], [top - 8], ">", color=style.LIMIT, markersize=6, clip_on=False)
    axes.annotate(heading, (0, top - 12), (10, 0), textcoords="offset points")
    low = top - 16 - BAR_PT
    for role, start, width in (("decode", 0.0, net), ("foreign", net, released - net)):
        axes.broken_barh([(start, width)], (low, BAR_PT), clip_on=False, **style.look(role))
    for place, (name, size) in enumerate((("input", INPUT_BYTES), ("complete", COMPLETE_BYTES)), start=1):
        _draw_blocks(axes, low - place * (STRIP_PT + 1), of, size, text[name])
    axes.vlines(net, low - 2 * (STRIP_PT + 1), low, color=style.INK, linestyle=(0, (2, 2)), linewidth=style.THIN_PT)


def _draw_blocks(axes: Axes, low: float, of: Offload, request_bytes: int, name: str) -> None:
    """A block for each request that fits, with its name, and a dashed one for the first that does not."""
    fit, each = of.extra_requests(request_bytes), request_bytes / MIB
    look: dict[str, Any] = {"facecolor": style.REQUEST["A"], "edgecolor": style.INK, "linewidth": style.THIN_PT}
    axes.broken_barh([(place * each, each) for place in range(fit)], (low, STRIP_PT), clip_on=False, **look)
    if (start := fit * each) < of.released_bytes / MIB:
        over: dict[str, Any] = {
            "facecolor": "none",
            "edgecolor": style.FAINT,
            "linestyle": "--",
            "linewidth": style.THIN_PT,
        }
        axes.broken_barh([(start, each)], (low, STRIP_PT), **over)
    for place in range(fit):
        axes.text((place + 0.5) * each, low + STRIP_PT / 2, name, ha="center", va="center_baseline")


def offload_memory_readouts(**settings: Any) -> tuple[Readout, ...]:
    """What is gained and what fits in it, at the settings of `offload_memory`."""
    of = offload_of(**settings)
    return (
        Readout("sets offloaded", of.sets),
        Readout("released", of.released_bytes, "MiB"),
        Readout("kept by buffers", of.buffer_bytes, "MiB"),
        Readout("net", of.net_bytes, "MiB"),
        Readout("more 8K inputs", of.extra_requests(INPUT_BYTES)),
        Readout("more complete requests", of.extra_requests(COMPLETE_BYTES)),
        Readout("copied in each step", of.released_bytes, "GB", 2),
    )


def _ask_for_the_second_buffer() -> Question:
    one, two = (offload_of(EVERY, buffers) for buffers in (1, 2))
    fewer = [one.extra_requests(size) - two.extra_requests(size) for size in (INPUT_BYTES, COMPLETE_BYTES)]
    choices = {(0, 0): "none of either", (1, 0): "one input, no complete one", (0, 1): "one complete one, no input"}
    choices |= {(1, 1): "one of each"}
    answer = choices[fewer[0], fewer[1]]
    inputs, needed = one.extra_requests(INPUT_BYTES), shown(2 * COMPLETE_BYTES, "MiB")
    return Question(
        text=f"One buffer leaves {shown(one.net_bytes, 'MiB')} net. A second one takes another "
        f"{shown(one.set_bytes, 'MiB')}. How many 8K inputs of {shown(INPUT_BYTES, 'MiB')} fit less, and how many "
        f"complete requests of {shown(COMPLETE_BYTES, 'MiB')}?",
        choices=tuple(choices.values()),
        answer=answer,
        reveals={"buffers": 2},
        because=f"With one buffer exactly {inputs} inputs fit, and nothing is left over. Two complete requests need "
        f"{needed}: they fit neither before nor after, so whoever counts requests to their end loses nothing.",
    )


OFFLOAD_MEMORY_EXPLORATION = Exploration(
    question=_ask_for_the_second_buffer,
    in_view=("every", "buffers", "part"),
    settings={
        "two buffers": {"buffers": 2},
        "every other layer": {"every": 2},
        "whole layers": {"part": Part.LAYER},
    },
    readouts=offload_memory_readouts,
    why_still=lambda moved, settings: "",
)


def copy_time(
    *,
    link_bytes_s: Link = PCIE.bandwidth_bytes_s,
    kind: Kind = StepKind.DECODE,
    requests: Annotated[int, Slider("requests together", 1, 35, 1)] = 1,
    every: Every = EVERY,
    prompt_tokens: PromptTokens = PREFILL_EXAMPLE,
    tokens_per_step: Annotated[int, Slider("outputs each", 1, 4, 1)] = 1,
    buffers: Buffers = 2,
    language: str = "en",
) -> Figure:
    """What the copies of a step take over a link and over NVLink-C2C, and how long the step gets that waits for them.

    Raises InputError for values that make no sense. Source: section 8.4.3, figure 8-25.
    """
    others = kind, requests, every, prompt_tokens, tokens_per_step, buffers
    here, there = step_at(link_bytes_s, *others), step_at(NVLINK.bandwidth_bytes_s, *others)
    text, alone = words(language, "copy-time"), StepKind(kind)
    end = round_above(1.02 * max(here.copies_ns, here.pass_ns, there.pass_ns) / 1e6, FINER)
    with style.in_book_style():
        page = new_page(TIMES_PAGE_PT)
        is_between = alone is StepKind.DECODE and not is_recorded(requests)
        name = "decode_between" if is_between else f"{alone}_step"
        step = text[name].format(requests=requests, tokens=f"{prompt_tokens:,}")
        write(page, LEFT_PT, TIMES_PAGE_PT - 18, text["alone"].format(step=step, time=_ms(here.compute_ns, 2)))
        axes = box(page, LEFT_PT, 80, WIDTH_PT, 2 * PAIR_PT)
        axes.set(xlim=(0, end), ylim=(0, 2 * PAIR_PT))
        ticks_left(axes, {})
        ticks_below(axes, {tick: f"{tick:g}" for tick in round_ticks(end)}, text["ms"])
        links = f"{link_bytes_s / GB:g} GB/s", f"NVLink-C2C, {NVLINK.bandwidth_bytes_s / GB:g} GB/s"
        for low, link, one in zip((PAIR_PT, 0), links, (here, there), strict=True):
            times = {"link": link, "copies": _ms(one.copies_ns), "step": _ms(one.pass_ns)}
            axes.text(0, low + 2 * TIME_BAR_PT + 8, text["over"].format(**times))
            _draw_pair(axes, low, one)
        axes.vlines(
            [here.compute_ns / 1e6] * 2, [0, PAIR_PT], [2 * TIME_BAR_PT + 5, PAIR_PT + 2 * TIME_BAR_PT + 5],
            color=style.LIMIT, linestyle=(0, (4, 2)),
        )  # fmt: skip
        for left, bottom, role in ((LEFT_PT, 30, "foreign"), (210, 30, "decode"), (LEFT_PT, 12, "queue")):
            swatch(page, left, bottom, text[role], role)
        line = [210 / style.WIDTH_PT, 224 / style.WIDTH_PT], [16 / TIMES_PAGE_PT] * 2
        page.add_artist(Line2D(*line, transform=page.transFigure, color=style.LIMIT, linestyle=(0, (4, 2))))
        write(page, 230, 12, text["limit"])
    return page


def step_at(
    link_bytes_s: int, kind: StepKind, requests: int, every: int, prompt_tokens: int, tokens_per_step: int, buffers: int
) -> Prefetch:
    """A step that the figure's parameters describe, with its copies."""
    decode_steps(SHORT_CHAT.output_tokens, tokens_per_step)
    return prefetch(
        offload_of(every, buffers), plain_step_ns(kind, requests, prompt_tokens, machine.fit()), link_bytes_s
    )


def _draw_pair(axes: Axes, low: float, one: Prefetch) -> None:
    """Two bars: all copies of the step; below it all compute, and what of the copies it does not hide."""
    copies, compute, step = (ns / 1e6 for ns in (one.copies_ns, one.compute_ns, one.pass_ns))
    for role, bottom, start, end in (
        ("foreign", low + TIME_BAR_PT + 3, 0, copies), ("decode", low, 0, compute), ("queue", low, compute, step),
    ):  # fmt: skip
        if end > start:
            axes.broken_barh([(start, end - start)], (bottom, TIME_BAR_PT), **style.look(role))


def _ms(ns: int, digits: int = 1) -> str:
    return shown(ns / NS, "ms", digits)


def copy_time_readouts(**settings: Any) -> tuple[Readout, ...]:
    """Copies, compute and who waits, at the settings of `copy_time`."""
    one, kind = step_at(**settings), StepKind(settings["kind"])
    computed, copied = (CLOCK[kind],), (Clock.ASSUMED,)
    both, of = computed + copied, one.offload
    tokens = (
        settings["prompt_tokens"] if kind is StepKind.PREFILL else settings["requests"] * settings["tokens_per_step"]
    )
    steps, link = decode_steps(SHORT_CHAT.output_tokens, settings["tokens_per_step"]), settings["link_bytes_s"]
    of_decode = [
        Readout("outputs a second at most", throughput(tokens, one.pass_ns / NS), "token/s", 1),
        Readout("copies for 256 outputs", steps * transfer_time(of.released_bytes, link), "s", 2, copied),
    ]
    if kind is StepKind.PREFILL:
        of_decode = [Readout(readout.label, "–") for readout in of_decode]
    return (
        Readout("copies of a step", transfer_time(of.released_bytes, link), "ms", 1, copied),
        Readout("step without offload", one.compute_ns / NS, "ms", 2, computed),
        Readout("step with prefetch", one.pass_ns / NS, "ms", 1, both),
        Readout("who waits", who_waits(one)),
        Readout("compute waits", one.exposed_ns / NS, "ms", 1, both),
        Readout("copied for each token", of.released_bytes / tokens, "MiB", 1),
        *of_decode,
        *hidden_from(one, link),
    )


def who_waits(one: Prefetch) -> str:
    """Which of compute and link waits for the other in a steady step."""
    waiting = {"compute": one.exposed_ns, "the link": one.link_idle_ns}
    return " and ".join(name for name, ns in waiting.items() if ns) or "nobody"


def hidden_from(one: Prefetch, link_bytes_s: int) -> tuple[Readout, Readout]:
    """The link from which on this step hides all copies, and the prompt whose prefill hides those over this link."""
    prompt = hiding_prompt(one.offload, link_bytes_s, machine.fit())
    return (
        Readout("all hidden from a link of", or_never(hiding_link(one.offload, one.compute_ns)), "GB/s", 1),
        Readout("all hidden from a prompt of", "any length" if prompt == 1 else or_never(prompt), "token"),
    )


def or_never(amount: int | None) -> int | str:
    """An amount as a read-out shows it, or that there is none."""
    return "never" if amount is None else amount


def just_hiding_link() -> int:
    """Where the slider first hides all copies of the book's offload, with two buffers, behind the book's step."""
    least = hiding_link(offload_of(EVERY, 2), plain_step_ns(StepKind.DECODE))
    assert least
    lowest, step = LINK.to_parameter(LINK.low), LINK.to_parameter(LINK.step)
    return int(lowest + -(-(least - lowest) // step) * step)


def _ask_for_twice_the_batch() -> Question:
    four, eight = (
        step_at(PCIE.bandwidth_bytes_s, StepKind.DECODE, requests, EVERY, PREFILL_EXAMPLE, 1, 2)
        for requests in (REQUESTS_TOGETHER, 2 * REQUESTS_TOGETHER)
    )
    rates = [
        shown(throughput(requests, one.pass_ns / NS), "token/s")
        for requests, one in ((REQUESTS_TOGETHER, four), (2 * REQUESTS_TOGETHER, eight))
    ]
    return Question(
        text=f"{REQUESTS_TOGETHER} requests decode together, and the copies of a step take {_ms(four.copies_ns)}. What "
        f"do they take with {2 * REQUESTS_TOGETHER} requests?",
        choices=(_ms(four.copies_ns // 2), _ms(four.copies_ns), _ms(2 * four.copies_ns)),
        answer=_ms(eight.copies_ns),
        reveals={"requests": 2 * REQUESTS_TOGETHER},
        because="A step copies each offloaded set once, whoever is in it. Twice the requests share the same copies: at "
        f"most {rates[1]} instead of {rates[0]}. Each of them still waits {_ms(eight.pass_ns)} for its next output.",
    )


def _why_copy_time_still(moved: str, settings: Mapping[str, Any]) -> str:
    is_decode = settings["kind"] == StepKind.DECODE
    if moved == "prompt_tokens" and is_decode:
        return "In a decode step there is no prompt."
    if moved == "requests" and not is_decode:
        return "The step holds one prompt and no request in decode."
    if moved == "buffers":
        return "The step takes no longer than its copies or its compute already; a further buffer cannot shorten it."
    return ""


COPY_TIME_EXPLORATION = Exploration(
    question=_ask_for_twice_the_batch,
    in_view=("link_bytes_s", "kind", "requests", "every"),
    settings={
        "four together": {"requests": REQUESTS_TOGETHER},
        "a prefill of 1024": {"kind": StepKind.PREFILL},
        "all just hidden": {"link_bytes_s": just_hiding_link()},
    },
    readouts=copy_time_readouts,
    why_still=_why_copy_time_still,
)
