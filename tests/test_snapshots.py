"""The snapshots explorer: what is drawn is what the cached text says, and what is said of it is true."""

from typing import Any

import pytest
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from figures import style
from figures.exploration import book_values
from figures.explorer import explore
from figures.guard import guard, visible_texts
from figures.registry import entry
from figures.snapshots import SNAPSHOTS_EXPLORATION, Keep, case_of
from figures.words import LANGUAGES

SNAPSHOTS = entry("snapshot-resume")
BOOK = book_values(SNAPSHOTS.draw, SNAPSHOTS.arguments)
CASES: tuple[dict[str, Any], ...] = (
    {},
    {"matched": 0},
    {"spacing": 256},
    {"matched": 16_384, "beyond": 8192, "spacing": 256, "keep": Keep.LAST, "last": 8},
    {"matched": 2048, "beyond": 8192, "spacing": 8192},
    {"beyond": 8192, "keep": Keep.LAST, "cards": 1},
)
each_case = pytest.mark.parametrize("settings", CASES, ids=repr)


def bars(figure: Figure, look: str) -> list[tuple[float, float]]:
    """Start and end, in tokens, of the bars of a look."""
    colour = to_rgba(style.FILL[look])
    drawn = [each for each in figure.axes[0].collections if isinstance(each, PolyCollection)]
    corners = [each.get_paths()[0].vertices[:, 0] for each in drawn if tuple(each.get_facecolor()[0]) == colour]
    return [(float(x.min()), float(x.max())) for x in corners]


def marks(figure: Figure, size: float, face: str) -> list[float]:
    lines = [line for line in figure.axes[0].lines if line.get_marker() == "D"]
    found = [
        line for line in lines if line.get_markerfacecolor() == face and (line.get_markersize() == 12) == (size == 12)
    ]
    return [float(place) for line in found for place in line.get_xdata()]  # type: ignore[union-attr]


@each_case
def test_bars_and_marks_are_those_of_the_text(settings: dict[str, Any]) -> None:
    case, figure = case_of(**BOOK | settings), SNAPSHOTS.figure(**settings)
    resume = case.text.resume_at(case.matched)
    for look, start, end in (
        ("decode", 0, case.matched),
        ("queue", case.matched, case.text.tokens),
        ("shared", 0, resume),
        ("prefill", resume, case.matched),
    ):
        assert bars(figure, look) == ([(start, end)] if start < end else [])
    assert marks(figure, 6, style.INK) == list(case.text.snapshots)
    assert marks(figure, 12, "none") == ([resume] if resume else [])
    assert sorted(marks(figure, 6, style.PAPER) + marks(figure, 6, style.INK)) == list(case.made.snapshots)
    assert figure.axes[0].get_xlim()[1] >= case.text.tokens


def test_the_readouts_at_the_book_values() -> None:
    assert {readout.label: str(readout) for readout in explore("snapshot-resume").readouts} == {
        "goes on from token": "8,192",
        "tokens recomputed": "2,560",
        "mean if all are kept": "2,048",
        "mean over this text, as kept": "1,865",
        "snapshots kept": "2",
        "a snapshot, per card": "53.6 MiB",
        "stored per card": "107 MiB",
        "stored on all cards": "857 MiB",
    }


def test_the_question_is_answered_by_the_snapshots() -> None:
    explorer = explore("snapshot-resume")
    assert explorer.question.choices == (
        "2,560 → 1,280; the average to half",
        "2,560 → 512; the average to half",
        "2,560 → 512; the average to 20 %, too",
        "2,560 → 2,560; the average stays as well",
    )
    assert explorer.question.answer == explorer.question.choices[1]
    verdict = explorer.predict(explorer.question.answer)
    assert "10,240" in verdict and "5 snapshots instead of 2, 268 MiB instead of 107 MiB" in verdict
    assert [str(readout) for readout in explorer.readouts[:3]] == ["10,240", "512", "1,024"]


def test_named_settings_show_what_they_say() -> None:
    cases = {name: case_of(**BOOK | settings) for name, settings in SNAPSHOTS_EXPLORATION.settings.items()}
    dense, short, early = cases.values()
    assert dense.text.recomputed(dense.matched) == 0 and len(dense.text.snapshots) == 42
    assert short.text.recomputed(short.matched) == 4096 - 256
    assert early.text.recomputed(early.matched) == early.matched and len(early.text.snapshots) == 2


def test_the_lines_beside_it_are_true() -> None:
    explorer = explore("snapshot-resume")
    explorer.widgets["last"].value = 1
    assert explorer.line == "All snapshots are kept, however many the last ones are."
    explorer.move(last=2)
    explorer.widgets["keep"].value = Keep.LAST
    assert explorer.line == "The text has no more snapshots than are kept anyway."


@each_case
@pytest.mark.parametrize("language", LANGUAGES)
def test_no_text_is_hidden_or_cut_off(settings: dict[str, Any], language: str) -> None:
    figure = SNAPSHOTS.figure(language=language, **settings)
    guard(figure, SNAPSHOTS.slug)
    case = case_of(**BOOK | settings)
    assert any(f"{case.matched:,}" in text.get_text() for text in visible_texts(figure))
