"""Figures of copies beside compute: the link, the layers and the buffers on one line of time."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from figures import machine, style
from figures.exploration import Choice, Exploration, Question, Readout
from figures.lines import line_key, log_height, round_ticks, ticks_below, ticks_left
from figures.offloads import (
    PREFILL_EXAMPLE,
    Buffers,
    Every,
    Kind,
    Link,
    PromptTokens,
    hidden_from,
    just_hiding_link,
    offload_of,
    or_never,
)
from figures.page import box, new_page, swatch, write
from figures.words import words
from lib.checks import one_of
from lib.clocks import Clock
from lib.offload import EVERY, PCIE, Offload
from lib.prefetch import (
    CLOCK,
    Prefetch,
    Span,
    StepKind,
    hiding_distance,
    hiding_link,
    plain_step_ns,
    prefetch,
)
from lib.step_time import NS
from lib.units import GB, shown

PAGE_PT, LEFT_PT, WIDTH_PT = 344, 62, 344
# Lanes of the line of time, in points above its lower edge: the link, the layers, and below them all buffers.
LINK_PT, LAYERS_PT, LANE_PT, BUFFERS_PT, TIME_PT = 98, 58, 18, 46, 116
CURVE_PT = 72
# The least room for the number of a layer.
NUMBER_PT = 14
SLOWEST, FASTEST, LINK_TICKS = 16, 900, (16, 32, 64, 128, 256, 450, 900)
_CURVE_POINTS = 25
_OVER_HATCH = {"facecolor": style.PAPER, "edgecolor": "none", "pad": 0.5}
_ON_CARD, _HELD = "on_card", "held"
_LOOK: dict[str, dict[str, Any]] = {
    _ON_CARD: {"facecolor": style.PAPER, "edgecolor": style.INK, "linewidth": style.THIN_PT},
    _HELD: style.look("shared"),
    "foreign": style.look("foreign"),
    "decode": style.look("decode"),
    "queue": style.look("queue"),
}


class Placed(StrEnum):
    """Where the offloaded layers lie."""

    EVENLY = "evenly"
    IN_A_ROW = "in a row, the last ones"


def placed(every: int, buffers: int, where: Placed) -> Offload:
    """Every n-th layer, or as many at the end of the model."""
    of = offload_of(every, buffers)
    if one_of("where", where, Placed) is Placed.IN_A_ROW:
        return replace(of, offloaded=tuple(range(of.layers - of.sets, of.layers)))
    return of


def copy_and_compute(
    *,
    link_bytes_s: Link = PCIE.bandwidth_bytes_s,
    kind: Kind = StepKind.DECODE,
    buffers: Buffers = 2,
    where: Annotated[Placed, Choice("offloaded layers lie", tuple(Placed))] = Placed.EVENLY,
    every: Every = EVERY,
    prompt_tokens: PromptTokens = PREFILL_EXAMPLE,
    language: str = "en",
) -> Figure:
    """A steady step layer by layer: what the link copies, what computes or waits, what each buffer holds.

    Below, the time of the step against the link's bandwidth. Raises InputError for values that make no sense. Source:
    section 8.4.3, footnote 16.
    """
    one = step_at(link_bytes_s, kind, buffers, where, every, prompt_tokens)
    text = words(language, "copy-and-compute")
    with style.in_book_style():
        page = new_page(PAGE_PT)
        times = {"step": _ms(one.pass_ns), "compute": _ms(one.compute_ns), "wait": _ms(one.exposed_ns)}
        write(page, 14, PAGE_PT - 16, text["steady"].format(**times))
        axes = box(page, LEFT_PT, 204, WIDTH_PT, TIME_PT)
        _draw_lanes(axes, one, text)
        _draw_key(page, text)
        _draw_curve(page, one, link_bytes_s, text)
    return page


def step_at(link_bytes_s: int, kind: StepKind, buffers: int, where: Placed, every: int, prompt_tokens: int) -> Prefetch:
    """The step that the figure's parameters describe, with its copies."""
    step_ns = plain_step_ns(kind, prompt_tokens=prompt_tokens, prefill=machine.fit())
    return prefetch(placed(every, buffers, where), step_ns, link_bytes_s)


@dataclass(frozen=True)
class Use:
    """One use of a buffer: a set is copied into it, waits, and is read by its layer."""

    layer: int
    buffer: int
    copied: Span
    computed: Span


def uses_in_sight(one: Prefetch) -> Iterator[Use]:
    """The uses of buffers that touch a steady pass, some of which belong to the pass before or after."""
    of, steady = one.offload, one.steady
    for passes in (-1, 0, 1):
        shift = passes * one.pass_ns
        for place, (layer, copied) in enumerate(zip(of.offloaded, steady.copies, strict=True)):
            spans = [Span(start + shift, end + shift) for start, end in (copied, steady.layers[layer])]
            if spans[0].start < one.pass_ns and spans[1].end > 0:
                yield Use(layer, (place + passes * of.sets) % of.buffers, *spans)


def waits_of(one: Prefetch) -> Iterator[Span]:
    """When no layer computes in a steady pass."""
    before = 0
    for start, end in one.steady.layers:
        if start > before:
            yield Span(before, start)
        before = end


def _draw_lanes(axes: Axes, one: Prefetch, text: Mapping[str, str]) -> None:
    end, of = one.pass_ns / 1e6, one.offload
    axes.set(xlim=(0, end), ylim=(0, TIME_PT))
    ticks_below(axes, {tick: f"{tick:g}" for tick in round_ticks(end)}, text["ms"])
    ticks_left(axes, {})
    pitch = BUFFERS_PT / of.buffers
    boxes: dict[str, list[list[tuple[float, float]]]] = {role: [] for role in _LOOK}

    def place(role: str, span: Span, low: float, height: float = LANE_PT) -> None:
        left, right = (min(max(ns / 1e6, 0), end) for ns in span)
        if right > left:
            boxes[role].append([(left, low), (right, low), (right, low + height), (left, low + height)])

    for layer, span in enumerate(one.steady.layers):
        place("decode" if layer in of.offloaded else _ON_CARD, span, LAYERS_PT)
    for span in waits_of(one):
        place("queue", span, LAYERS_PT)
    for use in uses_in_sight(one):
        low, height = BUFFERS_PT - (use.buffer + 1) * pitch + 2, pitch - 4
        place("foreign", use.copied, LINK_PT)
        place("foreign", use.copied, low, height)
        place(_HELD, Span(use.copied.end, use.computed.start), low, height)
        place("decode", use.computed, low, height)
    for role, corners in boxes.items():
        if corners:  # as one path, since each path of a collection would be hatched anew
            axes.add_patch(PathPatch(Path.make_compound_path(*map(_closed, corners)), **_LOOK[role]))
    _number_layers(axes, one)
    names = {LINK_PT + LANE_PT / 2: text["link"], LAYERS_PT + LANE_PT / 2: text["layers"]}
    names |= {
        BUFFERS_PT - (buffer + 0.5) * pitch: text["buffer"].format(number=buffer + 1) for buffer in range(of.buffers)
    }
    for height, name in names.items():
        axes.annotate(
            name, (0, height), (-6, 0), xycoords=axes.get_yaxis_transform(), textcoords="offset points", ha="right",
            va="center_baseline",
        )  # fmt: skip


def _closed(corners: list[tuple[float, float]]) -> Path:
    return Path([*corners, corners[0]], closed=True)


def _number_layers(axes: Axes, one: Prefetch) -> None:
    """The number of each offloaded layer, in its copy and above it, where there is room; layers count from 1."""
    pt_per_ns = WIDTH_PT / one.pass_ns
    for use in uses_in_sight(one):
        start, end = max(use.copied.start, 0), min(use.copied.end, one.pass_ns)
        if (end - start) * pt_per_ns >= NUMBER_PT:
            middle = (start + end) / 2e6
            axes.text(
                middle, LINK_PT + LANE_PT / 2, str(use.layer + 1), ha="center", va="center_baseline", bbox=_OVER_HATCH
            )
    taken = -math.inf
    for layer in one.offload.offloaded:
        start, end = one.steady.layers[layer]
        middle = (start + end) / 2
        if (middle - taken) * pt_per_ns >= NUMBER_PT:
            axes.text(middle / 1e6, LAYERS_PT + LANE_PT + 3, str(layer + 1), ha="center")
            taken = middle


def _draw_key(page: Figure, text: Mapping[str, str]) -> None:
    for left, bottom, role in (
        (14, 160, "foreign"), (14, 144, "queue"), (150, 160, "decode"), (150, 144, "shared"),
    ):  # fmt: skip
        swatch(page, left, bottom, text[role], role)
    write(page, 300, 160, text["plain"])
    write(page, 300, 144, text["numbers"])


def curve_of(one: Prefetch) -> list[tuple[int, int]]:
    """Bandwidths, evenly apart on a logarithmic axis, and the time of the step at each."""
    ratio = (FASTEST / SLOWEST) ** (1 / (_CURVE_POINTS - 1))
    links = [round(SLOWEST * ratio**place * GB) for place in range(_CURVE_POINTS)]
    return [(link, prefetch(one.offload, one.compute_ns, link).pass_ns) for link in links]


def _draw_curve(page: Figure, one: Prefetch, link_bytes_s: int, text: Mapping[str, str]) -> None:
    """The step's time over the link's bandwidth, between its two bounds, and the link from which on all is hidden."""
    axes = box(page, LEFT_PT, 36, WIDTH_PT, CURVE_PT)
    links, times = zip(*curve_of(one), strict=True)
    copies = [one.offload.released_bytes / link * 1e3 for link in (links[0], links[-1])]
    axes.set_xscale("log")
    axes.set_xlim(SLOWEST, FASTEST)
    log_height(axes, [min(times) / 2e6, max(times) / 1e6])
    ticks_below(axes, {tick: str(tick) for tick in LINK_TICKS}, text["bandwidth"])
    axes.plot((SLOWEST, FASTEST), copies, **style.line("device"))
    axes.plot((SLOWEST, FASTEST), [one.compute_ns / 1e6] * 2, **style.line("launch"))
    axes.plot([link / GB for link in links], [ns / 1e6 for ns in times], **style.line("fit"), linewidth=2)
    axes.plot([link_bytes_s / GB], [one.pass_ns / 1e6], "o", color=style.LIMIT, markersize=6, clip_on=False)
    knee = hiding_link(one.offload, one.compute_ns)
    if knee is not None and SLOWEST * GB <= knee <= FASTEST * GB:
        axes.plot([knee / GB], [one.compute_ns / 1e6], "D", markerfacecolor=style.PAPER, color=style.INK, markersize=6)
    line_key(page, 14, 124, text["step"], "fit")
    line_key(page, 150, 124, text["copies"], "device")
    line_key(page, 270, 124, text["compute"], "launch")


def _ms(ns: int) -> str:
    return shown(ns / NS, "ms", 1)


def copy_and_compute_readouts(**settings: Any) -> tuple[Readout, ...]:
    """What a steady step takes, and from where on it hides all copies, at the settings of `copy_and_compute`."""
    one, link = step_at(**settings), settings["link_bytes_s"]
    computed, copied = (CLOCK[StepKind(settings["kind"])],), (Clock.ASSUMED,)
    both, of = computed + copied, one.offload
    apart = hiding_distance(of, one.compute_ns, link)
    return (
        Readout("step with prefetch", one.pass_ns / NS, "ms", 1, both),
        Readout("step without offload", one.compute_ns / NS, "ms", 2, computed),
        Readout("compute waits", one.exposed_ns / NS, "ms", 1, both),
        Readout("the link waits", one.link_idle_ns / NS, "ms", 1, both),
        Readout("copy of one set", one.copy_ns / NS, "ms", 2, copied),
        Readout("compute of one layer", one.compute_ns / NS / of.layers, "ms", 3, computed),
        *hidden_from(one, link),
        Readout("all hidden if every n-th, n from", or_never(apart)),
    )


def _ask_for_one_buffer() -> Question:
    two, one = (
        step_at(PCIE.bandwidth_bytes_s, StepKind.DECODE, buffers, Placed.EVENLY, EVERY, PREFILL_EXAMPLE)
        for buffers in (2, 1)
    )
    of, between = one.offload, EVERY - 1
    own = shown(sum(one.layer_ns[layer] for layer in of.offloaded) / NS, "ms", 1)
    return Question(
        text=f"With two buffers the step takes {_ms(two.pass_ns)}, as long as its copies; all layers together compute "
        f"for {_ms(two.compute_ns)}. One buffer is taken away. How long does the step take?",
        choices=(_ms(two.pass_ns), _ms(one.pass_ns), _ms(two.copies_ns + two.compute_ns)),
        answer=_ms(one.pass_ns),
        reveals={"buffers": 1},
        because=f"The one buffer cannot be filled while its own layer reads it: the link waits for {of.sets} layers, "
        f"{own} in all. The {between} layers between still compute while the next set is copied.",
    )


def _why_copy_and_compute_still(moved: str, settings: Mapping[str, Any]) -> str:
    if moved == "prompt_tokens" and settings["kind"] == StepKind.DECODE:
        return "In a decode step there is no prompt."
    return ""


COPY_AND_COMPUTE_EXPLORATION = Exploration(
    question=_ask_for_one_buffer,
    in_view=("link_bytes_s", "kind", "buffers", "where"),
    settings={
        "a prefill of 1024": {"kind": StepKind.PREFILL},
        "the same, in a row": {"kind": StepKind.PREFILL, "where": Placed.IN_A_ROW},
        "all just hidden": {"link_bytes_s": just_hiding_link()},
    },
    readouts=copy_and_compute_readouts,
    why_still=_why_copy_and_compute_still,
)
