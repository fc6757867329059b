"""The figure of group formats: how many bytes the same 32 values take, and how far off attention is that reads them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from typing import Annotated, Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from figures import style
from figures.exploration import Choice, Exploration, Question, Readout, Slider
from figures.lines import ticks_below, ticks_left
from figures.page import box, new_page, swatch, write
from figures.words import words
from lib import codecs
from lib.attention_error import Data, attention_error
from lib.checks import one_of, whole
from lib.design_problem import INSTANCE, LONG_CONTEXT
from lib.group_rounding import FEWEST_BITS, MOST_BITS, SCALE_BYTES, as_read_in
from lib.model import kv_elements
from lib.quantization import BF16, Q4_0, Q8_0, GroupFormat
from lib.units import UNITS

PAGE_PT, BOTTOM_PT, HEIGHT_PT = 236, 78, 150
LEFT_PT, BARS_PT, ERRORS_LEFT_PT, ERRORS_PT = 14, 236, 268, 84
# Lower edges of the bars in their box; above each stands what it takes.
ROWS_PT, BAR_PT, HEADING_PT = (106, 56, 6), 20, 5
# Where in a row the errors from K and from V stand.
KEY_PT, VALUE_PT = 15, 4
NUMBERS_PT = 406
VALUES = 32
GROUPS = (16, 32, 64, 128, 256)
# The axis of errors, in powers of ten.
LEAST, MOST = -3, 0
CONTEXT_VALUES = kv_elements(INSTANCE.model, LONG_CONTEXT.input_tokens)
_MARK: dict[str, Any] = {"linestyle": "", "color": style.INK, "markeredgewidth": style.LINE_PT}
_K = _MARK | {"marker": "D", "markersize": 6}
_V = _MARK | {"marker": "o", "markersize": 7, "markerfacecolor": style.PAPER}
_FAINT: dict[str, Any] = {"color": style.FAINT}
_PUBLIC: dict[str, Any] = {"color": style.LIMIT, "linewidth": style.LINE_PT, "linestyle": (0, (4, 2))}


class Errors(NamedTuple):
    """The relative error of attention when keys, or when values, are read from a format."""

    key: float
    value: float


@dataclass(frozen=True)
class Row:
    """A format, the public one in whose place it stands, and the data that are read from it."""

    layout: GroupFormat
    public: GroupFormat
    data: Data

    @property
    def is_named(self) -> bool:
        """Whether it has a name of its own."""
        return self.layout in (BF16, Q8_0, Q4_0)

    @property
    def is_moved(self) -> bool:
        """Whether it is another than the public one."""
        return self.layout != self.public

    @property
    def errors(self) -> Errors:
        return errors_of(self.layout, self.data)


def rows_of(group: int, code_bits: int, scale_bytes: int, data: Data) -> tuple[Row, Row, Row]:
    """BF16, a format of 8-bit codes and one of as many bits as asked for, from the figure's parameters."""
    group, scale = one_of("group", group, GROUPS), one_of("scale_bytes", scale_bytes, SCALE_BYTES)
    bits = whole("code_bits", code_bits, at_least=FEWEST_BITS, at_most=MOST_BITS)
    data = one_of("data", data, Data)
    eight, other = (_layout(group, each, scale) for each in (MOST_BITS, bits))
    return Row(BF16, BF16, data), Row(eight, Q8_0, data), Row(other, Q4_0, data)


def _layout(group: int, bits: int, scale_bytes: int) -> GroupFormat:
    sizes = (group, bits, scale_bytes)
    named = {(each.group_values, each.code_bits, each.metadata_bytes): each for each in (Q8_0, Q4_0)}
    return named.get(sizes) or GroupFormat(f"{bits}-bit codes", *sizes)


@cache
def errors_of(layout: GroupFormat, data: Data) -> Errors:
    """Errors of attention over data that are read from a format."""
    read = codecs.BF16.as_read if layout == BF16 else partial(as_read_in, layout)
    return Errors(attention_error(data, key=read), attention_error(data, value=read))


def group_formats(
    *,
    group: Annotated[int, Choice("values a scale", GROUPS)] = Q8_0.group_values,
    code_bits: Annotated[int, Slider("lower bar, bits", FEWEST_BITS, MOST_BITS, 1)] = Q4_0.code_bits,
    scale_bytes: Annotated[int, Choice("bytes a scale", SCALE_BYTES)] = Q8_0.metadata_bytes,
    data: Annotated[Data, Choice("data", tuple(Data))] = Data.NORMAL,
    language: str = "en",
) -> Figure:
    """The bytes of the same values in BF16 and in two group formats, and the error of attention from each.

    Raises InputError for values that make no sense. Source: section 8.4.2, figure 8-23.
    """
    rows = rows_of(group, code_bits, scale_bytes, data)
    text = words(language, "group-formats")
    with style.in_book_style():
        page = new_page(PAGE_PT)
        bars, errors = (
            box(page, left, BOTTOM_PT, width, HEIGHT_PT)
            for left, width in ((LEFT_PT, BARS_PT), (ERRORS_LEFT_PT, ERRORS_PT))
        )
        most = BF16.bytes_of(VALUES)
        bars.set(xlim=(0, most), ylim=(0, HEIGHT_PT))
        errors.set(xlim=(LEAST, MOST), ylim=(0, HEIGHT_PT))
        for axes in (bars, errors):
            ticks_left(axes, {})
        ticks_below(bars, {tick: str(tick) for tick in range(0, most + 1, 16)}, text["bytes"])
        ticks_below(errors, {power: f"{100 * 10.0**power:g}" for power in range(LEAST, MOST + 1)}, text["error"])
        _draw_bars(bars, rows)
        _draw_errors(errors, rows)
        for bottom, row in zip(ROWS_PT, rows, strict=True):
            bits = float(row.layout.bits_per_value)
            takes = {"bytes": f"{bits * VALUES / 8:g}", "bits": f"{bits:g}"}
            name = row.layout.name if row.is_named else text["codes_of"].format(bits=row.layout.code_bits)
            write(page, LEFT_PT, BOTTOM_PT + bottom + BAR_PT + HEADING_PT, text["takes"].format(name=name, **takes))
            for height, part, error in zip((KEY_PT, VALUE_PT), "KV", row.errors, strict=True):
                number = f"{part} {100 * error:.2g} %"
                write(page, NUMBERS_PT, BOTTOM_PT + bottom + height, number, ha="right", va="center_baseline")
        _draw_key(page, text, rows)
    return page


def _draw_bars(axes: Axes, rows: tuple[Row, ...]) -> None:
    """Each group's scale and then its codes, as they are stored; dashed where the public format ends."""
    scales, codes = list[Any](), list[Any]()
    for bottom, row in zip(ROWS_PT, rows, strict=True):
        layout, size = row.layout, float(row.layout.bits_per_value) / 8
        # BF16 has no scale, and so no groups that could be seen.
        group = min(VALUES, layout.group_values) if layout.metadata_bytes else VALUES
        scale = layout.metadata_bytes * group / layout.group_values
        for first in range(0, VALUES, group):
            begin, end = first * size, (first + group) * size
            scales.append(_corners(begin, begin + scale, bottom))
            codes.append(_corners(begin + scale, end, bottom))
    for pieces, role in ((codes, "decode"), (scales, "foreign")):
        axes.add_collection(PolyCollection(pieces, clip_on=False, **style.look(role)), autolim=False)
    moved = [(bottom, row.public.bytes_of(VALUES)) for bottom, row in zip(ROWS_PT, rows, strict=True) if row.is_moved]
    for bottom, end in moved:
        axes.vlines(end, bottom - 3, bottom + BAR_PT + 2, **_PUBLIC)


def _corners(left: float, right: float, bottom: float) -> list[tuple[float, float]]:
    return [(left, bottom), (right, bottom), (right, bottom + BAR_PT), (left, bottom + BAR_PT)]


def _draw_errors(axes: Axes, rows: tuple[Row, ...]) -> None:
    """A mark for the error from K and one for that from V; small and faint where the public format has its own."""
    for height, part, look in ((KEY_PT, 0, _K), (VALUE_PT, 1, _V)):
        heights = [bottom + height for bottom in ROWS_PT]
        axes.plot([math.log10(row.errors[part]) for row in rows], heights, clip_on=False, zorder=3, **look)
        moved = [(row, place) for row, place in zip(rows, heights, strict=True) if row.is_moved]
        public = [math.log10(errors_of(row.public, row.data)[part]) for row, _ in moved]
        axes.plot(public, [place for _, place in moved], clip_on=False, zorder=2, **look | _FAINT)


def _draw_key(page: Figure, text: Mapping[str, str], rows: tuple[Row, ...]) -> None:
    width, height = page.get_size_inches() * 72
    swatch(page, LEFT_PT, 26, text["codes"], "decode")
    swatch(page, 150, 26, text["scale"], "foreign")
    for left, look, key in ((ERRORS_LEFT_PT, _K, "from_keys"), (ERRORS_LEFT_PT + 70, _V, "from_values")):
        page.add_artist(Line2D([(left + 4) / width], [30 / height], **look))
        write(page, left + 14, 26, text[key])
    if any(row.is_moved for row in rows):
        ends = [LEFT_PT / width, (LEFT_PT + 14) / width], [12 / height] * 2
        page.add_artist(Line2D(*ends, **_PUBLIC))
        write(page, LEFT_PT + 20, 8, text["public"])


def group_readouts(**settings: Any) -> tuple[Readout, ...]:
    """Bytes, bits, the KV of a long context and errors of both group formats, at the settings of `group_formats`."""
    told = list(zip(("8-bit codes", "lower bar"), rows_of(**settings)[1:], strict=True))
    bits = [(name, row.layout.bits_per_value) for name, row in told]
    return (
        *(_exactly(f"{name}: 32 values", each * VALUES / 8, "bytes") for name, each in bits),
        *(_exactly(f"{name}: bits a value", each) for name, each in bits),
        *(_exactly(f"{name}: 8K context", each * CONTEXT_VALUES / 8, "MiB") for name, each in bits),
        *(Readout(f"{name}: error from K, in %", 100 * row.errors.key, digits=2) for name, row in told),
        *(Readout(f"{name}: error from V, in %", 100 * row.errors.value, digits=2) for name, row in told),
    )


def _exactly(label: str, amount: Fraction, unit: str = "") -> Readout:
    """With as many digits as there are, up to four: the sizes of formats are exact."""
    number = f"{UNITS[unit].of(float(amount)):.4f}".rstrip("0")
    return Readout(label, float(amount), unit, len(number.partition(".")[2]))


def _ask_for_half_the_group() -> Question:
    narrow, wide = (GroupFormat("", group, Q4_0.code_bits, Q4_0.metadata_bytes) for group in (16, 256))
    errors = {layout: f"{100 * errors_of(layout, Data.NORMAL).key:.1f} %" for layout in (narrow, Q4_0, wide)}
    now, answer, least = (float(layout.bits_per_value) for layout in (Q4_0, narrow, wide))
    return Question(
        text=f"In q4_0, {VALUES} values take {Q4_0.code_bytes} bytes of codes and {Q4_0.metadata_bytes} of a scale: "
        f"{now:g} bits a value, not {Q4_0.code_bits}. With a scale for every {narrow.group_values} values, how many?",
        choices=tuple(f"{bits:g}" for bits in (now - 0.25, now, answer, answer + 1)),
        answer=f"{answer:g}",
        reveals={"group": narrow.group_values},
        because=f"The same codes now have two scales: {narrow.bytes_of(VALUES)} bytes. What that buys: the largest of "
        f"{narrow.group_values} values is not so large, and the error of attention from K falls from {errors[Q4_0]} to "
        f"{errors[narrow]}. With one for {wide.group_values} values: {least:g} bits, {errors[wide]}.",
    )


GROUP_FORMATS_EXPLORATION = Exploration(
    question=_ask_for_half_the_group,
    in_view=("group", "code_bits", "scale_bytes", "data"),
    settings={
        "large key channels": {"data": Data.LARGE_KEY_CHANNELS},
        "large channels, one scale for 256": {"data": Data.LARGE_KEY_CHANNELS, "group": 256},
        "scales of one byte": {"scale_bytes": 1},
    },
    readouts=group_readouts,
    why_still=lambda moved, settings: "",
)
