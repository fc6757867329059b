"""The explorer of a file and the KV beside it: bars are the bytes they stand for, and what is asked has that answer."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from figures import style
from figures.exploration import book_values
from figures.explorer import explore
from figures.file_budgets import BORDER_PT, MEMORIES, WIDTH_PT, budget_at, window_of
from figures.guard import guard
from figures.registry import entry
from figures.words import LANGUAGES, words
from lib.file_budget import FILE_BYTES, file_parts, stored_types
from lib.mapped_pages import pages_read
from lib.units import GIB

FIGURE = entry("file-in-memory")
SETTINGS: list[dict[str, Any]] = [
    {}, {"variant": "UD-Q2_K_XL"}, {"context": 32768, "kv_format": "q4_0"}, {"variant": "BF16", "context": 65536},
    {"memory": "192 GB", "context": 2048, "kv_format": "q4_0", "reserved_bytes": 0}, {"memory": "192 GB"},
    {"variant": "Q4_K_M", "memory": "192 GB", "context": 32768}, {"reserved_bytes": 16 * GIB}, {"kv_format": "q8_0"},
    {"variant": "Q3_K_S", "memory": "128 GB", "context": 65536, "reserved_bytes": 16 * GIB},
]  # fmt: skip
each_setting = pytest.mark.parametrize("settings", SETTINGS)


def at(**settings: Any) -> dict[str, Any]:
    return book_values(FIGURE.draw, FIGURE.arguments) | settings


def readouts(**settings: Any) -> dict[str, str]:
    return {one.label: str(one) for one in FIGURE.exploration.readouts(**at(**settings))}


def blocks(axes: Axes) -> dict[str, list[tuple[float, float]]]:
    """By colour: left and right ends of the blocks in a bar, in GiB."""
    found: dict[str, list[tuple[float, float]]] = {}
    for drawn in axes.collections:
        assert isinstance(drawn, PolyCollection)
        corners = [np.asarray(path.vertices)[:, 0] for path in drawn.get_paths()]
        for colour in np.asarray(drawn.get_facecolor()):
            found.setdefault(to_hex(tuple(colour)), []).extend(
                (float(each.min()), float(each.max())) for each in corners
            )
    return found


def limits(page: Figure) -> list[float]:
    """Where memory ends, in the magnified bar and in that of all memory."""
    return [float(np.asarray(axes.lines[-1].get_xdata())[0]) for axes in page.axes]


@each_setting
def test_memory_holds_the_reserve_the_file_and_whole_requests(settings: dict[str, Any]) -> None:
    values = at(**settings)
    budget, drawn = budget_at(**values), blocks(FIGURE.figure(**settings).axes[1])
    size = {role: sum(right - left for left, right in drawn.get(style.FILL[role], [])) * GIB for role in style.FILL}
    file, room = FILE_BYTES[values["variant"]], MEMORIES[values["memory"]] - values["reserved_bytes"]
    assert size["queue"] == pytest.approx(values["reserved_bytes"])
    assert size["prefill"] + size["shared"] == pytest.approx(min(file, room))
    assert size["foreign"] == pytest.approx(max(0, file - room))
    assert size["decode"] == pytest.approx(
        max(0, room - file) // budget.kv_bytes_per_request * budget.kv_bytes_per_request
    )
    if values["variant"] == "Q2_K":
        assert size["prefill"] == pytest.approx(file_parts(stored_types()).code_bytes)
    else:
        assert size["shared"] == 0
    ordered = sorted(span for role in style.FILL for span in drawn.get(style.FILL[role], []))
    assert all(left[1] == pytest.approx(right[0]) for left, right in pairwise(ordered))
    assert limits(FIGURE.figure(**settings)) == pytest.approx([MEMORIES[values["memory"]] / GIB] * 2)


@each_setting
def test_the_magnified_bar_has_a_block_for_each_request(settings: dict[str, Any]) -> None:
    budget, axes = budget_at(**at(**settings)), FIGURE.figure(**settings).axes[0]
    drawn, fit, each = blocks(axes), budget.requests_that_fit, budget.kv_bytes_per_request / GIB
    file_end = (budget.reserved_bytes + budget.file_bytes) / GIB
    assert axes.get_xlim() == pytest.approx([place / GIB for place in window_of(budget)])
    assert axes.get_xlim()[1] == pytest.approx(file_end + (fit + 1) * each)
    expected = [(file_end + place * each, file_end + (place + 1) * each) for place in range(fit)]
    if fit and WIDTH_PT / (fit + 1) < BORDER_PT:
        expected = [(file_end, file_end + fit * each)]
    assert drawn.get(style.FILL["decode"], []) == [pytest.approx(block) for block in expected]
    too_much = [(budget.memory_bytes / GIB, file_end)] if budget.left_bytes < 0 else []
    assert drawn.get(style.FILL["foreign"], []) == [pytest.approx(block) for block in too_much]
    numbers = [text.get_text() for text in axes.texts]
    assert numbers in ([], [str(place + 1) for place in range(fit)])
    assert bool(numbers) == (0 < fit <= 23)


def test_the_numbers_of_the_section() -> None:
    first, second = readouts(), readouts(variant="UD-Q2_K_XL")
    assert (first["file"], second["file"]) == ("79.81 GiB", "81.97 GiB")
    assert (first["left beside the file"], second["left beside the file"]) == ("1.60 GiB", "−0.56 GiB")
    assert first["KV of a request"] == second["KV of a request"] == "1.47 GiB"
    assert (first["requests that fit"], second["requests that fit"]) == ("1", "0")
    assert first["bits a weight"] == "2.92"
    assert [readouts(kv_format=name)["requests that fit"] for name in ("BF16", "q8_0", "q4_0")] == ["1", "2", "3"]
    assert readouts(context=32768, kv_format="q4_0")["KV of a request"] == "1.65 GiB"


def test_what_is_too_large_is_read_again_whole_and_what_fits_is_not() -> None:
    label = "read again in each step, if mapped"
    assert readouts()[label] == "0.00 GiB"
    for settings in ({"variant": "UD-Q2_K_XL"}, {"variant": "BF16"}):
        assert readouts(**settings)[label] == readouts(**settings)["file"]
    fitting = int(-(-FILE_BYTES["Q2_K"] // GIB))
    for room, again in ((fitting, 0), (fitting - 1, fitting)):  # in pages of 1 GiB
        assert pages_read([range(fitting)] * 3, room)[1:] == (again, again)


def test_the_question_has_the_answer_of_the_picture() -> None:
    question = FIGURE.exploration.question()
    assert question.answer == "the first only"
    for number in ("2.16 GiB", "79.81 GiB", "81.97 GiB"):
        assert number in question.text
    for number in ("81.41 GiB", "1.60 GiB", "1.47 GiB", "0.56 GiB"):
        assert number in question.because
    assert readouts(**question.reveals)["requests that fit"] == "0"


@pytest.mark.parametrize("language", LANGUAGES)
def test_only_the_file_whose_parts_are_known_is_divided(language: str) -> None:
    text = words(language, FIGURE.slug)
    for variant in FILE_BYTES:
        said = {one.get_text() for one in FIGURE.figure(variant=variant, language=language).texts}
        assert ({text["codes"], text["metadata"]} <= said) == (variant == "Q2_K")
        assert (text["undivided"] in said) == (variant != "Q2_K")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"variant": "Q1"}, "variant is 'Q1'; "),
        ({"context": 0}, "context is 0; "),
        ({"context": 2**41}, "context is 2199023255552; "),
        ({"reserved_bytes": 96 * 10**9}, "reserved_bytes is 96000000000; "),
        ({"kv_format": "FP8"}, "kv_format is 'FP8'; "),
        ({"memory": "64 GB"}, "memory is '64 GB'; "),
    ],
)
def test_what_makes_no_sense_is_one_sentence(settings: dict[str, Any], said: str) -> None:
    assert explore(FIGURE.slug, **settings).sentence.startswith(f"Nothing to draw: {said}allowed: ")


@pytest.mark.parametrize("language", LANGUAGES)
@each_setting
def test_no_fault_elsewhere(settings: dict[str, Any], language: str) -> None:
    guard(FIGURE.figure(language=language, **settings), FIGURE.slug, FIGURE.may_overlap)
