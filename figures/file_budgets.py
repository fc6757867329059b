"""Figures of a file of quantised weights in the memory of a machine, and of the KV that fits beside it."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Annotated, Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from figures import style
from figures.exploration import Choice, Exploration, Question, Readout, Slider
from figures.lines import round_ticks, ticks_below, ticks_left
from figures.page import box, new_page, swatch, write
from figures.words import words
from lib.checks import one_of
from lib.file_budget import (
    CONTEXTS,
    FILE_BYTES,
    LARGER_MACHINE_BYTES,
    M2_MAX,
    RESERVED_BYTES,
    FileBudget,
    bits_per_weight,
    file_budget,
    file_parts,
    stored_types,
)
from lib.mapped_pages import MappedFile
from lib.quantization import BF16, Q4_0, Q8_0
from lib.units import GB, GIB, shown

# The one file of which it is known what its bytes are, and one that is a little larger.
KNOWN, OTHER = "Q2_K", "UD-Q2_K_XL"
SHORT, LONG = CONTEXTS
KV_FORMATS = {stored.name: stored for stored in (BF16, Q8_0, Q4_0)}
MEMORIES = {f"{size / GB:g} GB": size for size in (M2_MAX.memory_bytes, 128 * GB, LARGER_MACHINE_BYTES)}
SMALLEST, LARGEST = min(MEMORIES, key=MEMORIES.__getitem__), max(MEMORIES, key=MEMORIES.__getitem__)
PAGE_PT, LEFT_PT, WIDTH_PT, BAR_PT = 240, 14, 392, 28
# Lower edges of the bars: all memory, and above it its end, magnified.
MEMORY_PT, MAGNIFIED_PT = 106, 164
# The least width of a block that has a border, and of one that has its number.
BORDER_PT, NUMBER_PT = 3, 16
_FRAME: dict[str, Any] = {"facecolor": "none", "edgecolor": style.INK, "linewidth": style.THIN_PT}
_RAY: dict[str, Any] = {"color": style.FAINT, "linewidth": style.THIN_PT}
_LIMIT: dict[str, Any] = {"color": style.LIMIT, "linestyle": (0, (4, 2))}
_NEXT: dict[str, Any] = {
    "facecolor": "none", "edgecolor": style.FAINT, "linestyle": "--", "linewidth": style.THIN_PT,
}  # fmt: skip


class Stretch(NamedTuple):
    """From where to where something lies in memory, in bytes."""

    start: int
    end: int


def file_beside_kv(
    *,
    variant: Annotated[str, Choice("file", tuple(FILE_BYTES))] = KNOWN,
    context: Annotated[int, Slider("context, tokens", 2048, 65536, 1024)] = SHORT,
    reserved_bytes: Annotated[int, Slider("reserved", 0, 16, 1, "GiB")] = RESERVED_BYTES,
    kv_format: Annotated[str, Choice("KV format", tuple(KV_FORMATS))] = BF16.name,
    memory: Annotated[str, Choice("machine has", tuple(MEMORIES))] = SMALLEST,
    language: str = "en",
) -> Figure:
    """What a published file leaves of the memory of a machine, and the requests whose KV fits there.

    The upper bar magnifies the lower one from where room for KV begins, or where memory ends before the file does.
    Raises InputError for values that make no sense. Source: section 8.4.1.
    """
    budget, text = budget_at(variant, context, reserved_bytes, kv_format, memory), words(language, "file-in-memory")
    amounts = {name: shown(size, "GiB", 2) for name, size in {
        "file": budget.file_bytes, "all": budget.memory_bytes, "reserved": budget.reserved_bytes,
        "kv": budget.kv_bytes_per_request, "left": abs(budget.left_bytes), "spare": spare_bytes(budget),
    }.items()}  # fmt: skip
    window = window_of(budget)
    end = max(budget.memory_bytes, window.end)
    with style.in_book_style():
        page = new_page(PAGE_PT)
        write(page, LEFT_PT, PAGE_PT - 16, text["machine"].format(memory=memory, variant=variant, **amounts))
        outcome = text["fits" if budget.left_bytes >= 0 else "too_large"]
        of = {"requests": budget.requests_that_fit, "context": f"{context:,}", "format": kv_format}
        write(page, LEFT_PT, PAGE_PT - 33, outcome.format(**of, **amounts))
        _draw_magnified(page, budget)
        _draw_memory(page, variant, budget, end, text["gib"])
        _draw_rays(page, window, end)
        _draw_key(page, variant, text)
    return page


def budget_at(variant: str, context: int, reserved_bytes: int, kv_format: str, memory: str) -> FileBudget:
    """The file and the requests that the figure's parameters describe."""
    budget = file_budget(variant, context, KV_FORMATS[one_of("kv_format", kv_format, KV_FORMATS)])
    return replace(budget, memory_bytes=MEMORIES[one_of("memory", memory, MEMORIES)], reserved_bytes=reserved_bytes)


def spare_bytes(budget: FileBudget) -> int:
    """What is left when all requests that fit are there; nothing beside a file that is too large."""
    return max(0, budget.left_bytes) - budget.requests_that_fit * budget.kv_bytes_per_request


def contents_of(variant: str, budget: FileBudget) -> dict[str, Stretch]:
    """By role: what lies in memory, one behind the other, and what of the file finds no room in it."""
    sizes = {"queue": budget.reserved_bytes, "prefill": budget.file_bytes}
    if variant == KNOWN:
        codes = file_parts(stored_types()).code_bytes
        sizes |= {"prefill": codes, "shared": budget.file_bytes - codes}
    sizes["decode"] = budget.requests_that_fit * budget.kv_bytes_per_request
    ends = [min(end, budget.memory_bytes) for end in accumulate(sizes.values(), initial=0)]
    contents = {role: Stretch(*ends) for role, ends in zip(sizes, pairwise(ends), strict=True)}
    contents["foreign"] = Stretch(budget.memory_bytes, budget.memory_bytes + max(0, -budget.left_bytes))
    return {role: stretch for role, stretch in contents.items() if stretch.end > stretch.start}


def window_of(budget: FileBudget) -> Stretch:
    """What is magnified: from the end of the file, or of memory where that is earlier, to that of the next request."""
    file_end = budget.reserved_bytes + budget.file_bytes
    more = (budget.requests_that_fit + 1) * budget.kv_bytes_per_request
    return Stretch(min(file_end, budget.memory_bytes), file_end + more)


def _draw_memory(page: Figure, variant: str, budget: FileBudget, end: int, name: str) -> None:
    axes = _bar(page, MEMORY_PT, 0, end)
    ticks_below(axes, {tick: f"{tick:g}" for tick in round_ticks(end / GIB)}, name)
    for role, stretch in contents_of(variant, budget).items():
        _draw_blocks(axes, stretch, 1, style.look(role))
    _draw_blocks(axes, Stretch(0, budget.memory_bytes), 1, _FRAME)
    axes.axvline(budget.memory_bytes / GIB, **_LIMIT)


def _draw_magnified(page: Figure, budget: FileBudget) -> None:
    """The requests that fit, one by one, and the next one; before them what of the file is too much."""
    window, memory, each = window_of(budget), budget.memory_bytes, budget.kv_bytes_per_request
    axes, fit = _bar(page, MAGNIFIED_PT, *window), budget.requests_that_fit
    ticks_below(axes, {})
    axes.spines["bottom"].set_visible(False)
    full = window.end - each
    _draw_blocks(axes, Stretch(full, window.end), 1, _NEXT)
    if budget.left_bytes < 0:
        _draw_blocks(axes, Stretch(memory, full), 1, style.look("foreign"))
    else:
        _draw_blocks(axes, Stretch(window.start, memory), 1, _FRAME)
    if fit:
        _draw_blocks(axes, Stretch(window.start, full), fit, style.look("decode"))
    width = WIDTH_PT / (fit + 1) if budget.left_bytes >= 0 else 0
    for place in range(fit if width >= NUMBER_PT else 0):
        middle = window.start + (place + 0.5) * each
        axes.text(middle / GIB, 0.5, str(place + 1), ha="center", va="center_baseline")
    axes.axvline(memory / GIB, clip_on=False, **_LIMIT)


def _bar(page: Figure, bottom: float, start: int, end: int) -> Axes:
    axes = box(page, LEFT_PT, bottom, WIDTH_PT, BAR_PT)
    axes.set(xlim=(start / GIB, end / GIB), ylim=(0, 1))
    ticks_left(axes, {})
    return axes


def _draw_blocks(axes: Axes, stretch: Stretch, parts: int, look: Mapping[str, Any]) -> None:
    """A stretch in so many equal blocks, or as one where their borders would be all that is seen."""
    start, end = (place / GIB for place in stretch)
    low, high = axes.get_xlim()
    each = (end - start) / parts
    if each / (high - low) * WIDTH_PT < BORDER_PT:
        parts, each = 1, end - start
    axes.broken_barh([(start + part * each, each) for part in range(parts)], (0, 1), clip_on=False, **look)


def _draw_rays(page: Figure, window: Stretch, end: int) -> None:
    """From the ends of the magnified stretch in the lower bar to those of the upper one."""
    for place, above in zip(window, (LEFT_PT, LEFT_PT + WIDTH_PT), strict=True):
        _line(page, (LEFT_PT + WIDTH_PT * place / end, above), (MEMORY_PT + BAR_PT, MAGNIFIED_PT), _RAY)


def _line(page: Figure, x_pt: tuple[float, float], y_pt: tuple[float, float], look: Mapping[str, Any]) -> None:
    ends = [x / style.WIDTH_PT for x in x_pt], [y / PAGE_PT for y in y_pt]
    page.add_artist(Line2D(*ends, transform=page.transFigure, **look))


def _draw_key(page: Figure, variant: str, text: Mapping[str, str]) -> None:
    swatch(page, LEFT_PT, 48, text["reserved"], "queue")
    swatch(page, 150, 48, text["codes" if variant == KNOWN else "undivided"], "prefill")
    if variant == KNOWN:
        swatch(page, 276, 48, text["metadata"], "shared")
    swatch(page, LEFT_PT, 30, text["kv"], "decode")
    swatch(page, 150, 30, text["over"], "foreign")
    write(page, 276, 30, text["next"])
    _line(page, (LEFT_PT, LEFT_PT + 14), (16, 16), _LIMIT)
    write(page, LEFT_PT + 20, 12, text["limit"])


def file_beside_kv_readouts(**settings: Any) -> tuple[Readout, ...]:
    """What the file takes and leaves, and what a step reads again, at the settings of `file_beside_kv`."""
    budget = budget_at(**settings)
    mapped = MappedFile(budget.file_bytes, budget.usable_bytes)
    return (
        Readout("file", budget.file_bytes, "GiB", 2),
        Readout("bits a weight", bits_per_weight(budget.file_bytes), "", 2),
        Readout("left beside the file", budget.left_bytes, "GiB", 2),
        Readout("KV of a request", budget.kv_bytes_per_request, "GiB", 2),
        Readout("requests that fit", budget.requests_that_fit),
        Readout("read again in each step, if mapped", mapped.pages_read(1) * mapped.page_bytes, "GiB", 2),
    )


def _ask_which_leaves_room() -> Question:
    first, second = (file_budget(variant, SHORT) for variant in (KNOWN, OTHER))
    choices = {(True, True): "both", (True, False): "the first only", (False, False): "neither"}
    answer = choices[first.requests_that_fit > 0, second.requests_that_fit > 0]
    sizes = [shown(budget.file_bytes, "GiB", 2) for budget in (first, second)]
    return Question(
        text=f"Two files of one model differ by {shown(second.file_bytes - first.file_bytes, 'GiB', 2)}: {KNOWN} has "
        f"{sizes[0]}, {OTHER} {sizes[1]}. Beside which of them is there room for the KV of a request of {SHORT:,} "
        "tokens?",
        choices=tuple(choices.values()),
        answer=answer,
        reveals={"variant": OTHER},
        because=f"{shown(first.usable_bytes, 'GiB', 2)} are for file and KV. The first leaves "
        f"{shown(first.left_bytes, 'GiB', 2)} of them, and the request takes "
        f"{shown(first.kv_bytes_per_request, 'GiB', 2)}. The second is {shown(-second.left_bytes, 'GiB', 2)} too large "
        "by itself. It does load if it is mapped; but then a step that reads all weights reads all of it again.",
    )


FILE_BESIDE_KV_EXPLORATION = Exploration(
    question=_ask_which_leaves_room,
    in_view=("variant", "context", "reserved_bytes", "kv_format"),
    settings={
        "a little too large": {"variant": OTHER},
        "32K in q4_0": {"context": LONG, "kv_format": Q4_0.name},
        "twice the memory": {"memory": LARGEST},
    },
    readouts=file_beside_kv_readouts,
    why_still=lambda moved, settings: "",
)
