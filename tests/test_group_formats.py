"""The explorer of group formats: bars are bytes that are really stored, marks the errors that are really made."""

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from figures import style
from figures.exploration import book_values
from figures.group_formats import BARS_PT, GROUPS, rows_of
from figures.guard import guard, visible_texts
from figures.registry import entry
from figures.words import LANGUAGES
from lib import codecs
from lib.attention_error import Data, attention_error
from lib.group_rounding import SCALE_BYTES, as_read_in
from lib.quantization import GroupFormat

FORMATS = entry("group-formats")
BOOK = book_values(FORMATS.draw, FORMATS.arguments)
LARGE = Data.LARGE_KEY_CHANNELS
CASES: tuple[dict[str, Any], ...] = (
    {},
    {"group": 16},
    {"group": 256, "data": LARGE},
    {"code_bits": 2, "group": 16, "scale_bytes": 4},
    {"code_bits": 8, "scale_bytes": 1},
    {"code_bits": 3, "group": 64, "data": LARGE},
)
each_case = pytest.mark.parametrize("settings", CASES, ids=repr)


def pieces(figure: Figure, look: str) -> list[list[tuple[float, float]]]:
    """Begin and end, in bytes, of the pieces of a look, row by row from above."""
    (drawn,) = (
        each
        for each in figure.axes[0].collections
        if len(each.get_facecolor()) and tuple(each.get_facecolor()[0]) == to_rgba(style.FILL[look])
    )
    rows: dict[float, list[tuple[float, float]]] = {}
    for path in drawn.get_paths():
        x, y = path.vertices[:, 0], path.vertices[:, 1]
        rows.setdefault(-float(y.min()), []).append((float(x.min()), float(x.max())))
    return [rows[height] for height in sorted(rows)]


def marks(figure: Figure, marker: str, colour: str) -> list[float]:
    """The errors at which marks stand, row by row from above."""
    lines = [line for line in figure.axes[1].lines if line.get_marker() == marker and line.get_color() == colour]
    places = [place for line in lines for place in zip(line.get_ydata(), line.get_xdata(), strict=True)]
    return [10.0 ** float(x) for _, x in sorted(places, reverse=True)]


def length(rows: list[list[tuple[float, float]]]) -> list[float]:
    return [sum(end - begin for begin, end in row) for row in rows]


@each_case
def test_bars_are_the_bytes_of_codes_and_scales(settings: dict[str, Any]) -> None:
    figure, now = FORMATS.figure(**settings), BOOK | settings
    scales, codes = pieces(figure, "foreign"), pieces(figure, "decode")
    share = 32 / now["group"] * now["scale_bytes"]
    assert length(codes) == pytest.approx([64, 32, 4 * now["code_bits"]])
    assert length(scales) == pytest.approx([0, share, share])
    assert [len(row) for row in codes] == [1, *[max(1, 32 // now["group"])] * 2]
    for row_of_scales, row_of_codes in zip(scales, codes, strict=True):
        at = 0.0
        for (begin, between), (after, end) in zip(row_of_scales, row_of_codes, strict=True):
            assert (begin, between) == pytest.approx((at, after)), "a scale, then its codes"
            at = end
    assert figure.axes[0].get_xlim() == (0, 64)
    assert figure.axes[0].get_position().width * 420 == pytest.approx(BARS_PT)


def test_the_book_bars_are_bytes_that_are_stored() -> None:
    values = np.random.default_rng(8).normal(size=32)
    figure = FORMATS.figure()
    stored = [len(codec.encode(values)) for codec in (codecs.BF16, codecs.Q8_0, codecs.Q4_0)]
    assert stored == [64, 34, 18]
    assert [row[-1][1] for row in pieces(figure, "decode")] == stored


@each_case
def test_marks_are_the_errors_from_keys_and_from_values(settings: dict[str, Any]) -> None:
    figure, now = FORMATS.figure(**settings), BOOK | settings
    layouts = [GroupFormat("", now["group"], bits, now["scale_bytes"]) for bits in (8, now["code_bits"])]
    reads = [codecs.BF16.as_read, *(partial(as_read_in, layout) for layout in layouts)]
    public = [codecs.Q8_0.as_read, codecs.Q4_0.as_read]
    moved = [sizes(row.layout) != sizes(row.public) for row in rows_of(**now)[1:]]
    for marker, part in (("D", "key"), ("o", "value")):
        errors = [attention_error(now["data"], **{part: read}) for read in reads]
        there = [read for read, is_moved in zip(public, moved, strict=True) if is_moved]
        faint = [attention_error(now["data"], **{part: read}) for read in there]
        assert marks(figure, marker, style.INK) == pytest.approx(errors)
        assert marks(figure, marker, style.FAINT) == pytest.approx(faint)
        shown = {f"{part[0].upper()} {100 * error:.2g} %" for error in errors}
        assert shown <= {text.get_text() for text in visible_texts(figure)}
    ends = [float(x) for each in figure.axes[0].collections[2:] for x in each.get_segments()[0][:, 0]]
    assert ends == [end for end, is_moved in zip((34, 18), moved, strict=True) if is_moved for _ in range(2)]


def sizes(layout: GroupFormat) -> tuple[int, int, int]:
    return layout.group_values, layout.code_bits, layout.metadata_bytes


def readouts(**settings: Any) -> dict[str, str]:
    return {readout.label: str(readout) for readout in FORMATS.exploration.readouts(**BOOK | settings)}


def test_readouts_are_the_books() -> None:
    assert readouts() == {
        "8-bit codes: 32 values": "34 bytes",
        "lower bar: 32 values": "18 bytes",
        "8-bit codes: bits a value": "8.5",
        "lower bar: bits a value": "4.5",
        "8-bit codes: 8K context": "612 MiB",
        "lower bar: 8K context": "324 MiB",
        "8-bit codes: error from K, in %": "0.52",
        "lower bar: error from K, in %": "8.36",
        "8-bit codes: error from V, in %": "0.52",
        "lower bar: error from V, in %": "8.50",
    }


def test_readouts_elsewhere() -> None:
    wide = readouts(group=256, data=LARGE)
    assert wide["lower bar: 32 values"] == "16.25 bytes" and wide["lower bar: bits a value"] == "4.0625"
    assert wide["lower bar: 8K context"] == "292.5 MiB"
    assert wide["lower bar: error from K, in %"] == "65.91" and wide["lower bar: error from V, in %"] == "10.71"
    assert readouts(code_bits=3, group=16)["lower bar: 32 values"] == "16 bytes"


def test_the_question_is_answered_by_what_it_reveals() -> None:
    question = FORMATS.exploration.question()
    assert question.answer == readouts(**question.reveals)["lower bar: bits a value"] == "5"
    told = {"16 bytes of codes", "2 of a scale", "4.5 bits", "every 16 values"}
    assert all(words in question.text for words in told)
    assert all(words in question.because for words in ("20 bytes", "8.4 %", "7.6 %", "4.0625 bits", "11.5 %"))


@pytest.mark.parametrize("data", Data)
@pytest.mark.parametrize("code_bits", range(2, 9))
def test_a_wider_group_is_drawn_shorter_and_further_off(code_bits: int, data: Data) -> None:
    rows = [rows_of(group, code_bits, 2, data)[2] for group in GROUPS]
    takes = [row.layout.bits_per_value for row in rows]
    assert takes == sorted(takes, reverse=True)
    assert rows[0].errors.key < rows[-1].errors.key and rows[0].errors.value < rows[-1].errors.value


def test_large_key_channels_move_marks_of_keys_only() -> None:
    plain, large = FORMATS.figure(), FORMATS.figure(data=LARGE)
    assert marks(large, "o", style.INK) == pytest.approx(marks(plain, "o", style.INK), rel=1e-3)
    of_keys = zip(marks(plain, "D", style.INK), marks(large, "D", style.INK), strict=True)
    assert all(there > 2 * here for here, there in of_keys)
    assert pieces(large, "decode") == pieces(plain, "decode")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("settings", [{"group": 256, "code_bits": 7, "scale_bytes": 1}, {"group": 16}], ids=repr)
def test_no_text_lies_over_another(settings: dict[str, Any], language: str) -> None:
    guard(FORMATS.figure(language=language, data=LARGE, **settings), repr(settings))


def test_all_errors_are_on_the_axis() -> None:
    low, high = FORMATS.figure().axes[1].get_xlim()
    for group in GROUPS:
        for code_bits in range(2, 9):
            for scale_bytes in SCALE_BYTES:
                for data in Data:
                    errors = [error for row in rows_of(group, code_bits, scale_bytes, data) for error in row.errors]
                    assert all(low < math.log10(error) < high for error in errors)
