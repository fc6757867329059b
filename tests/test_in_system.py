"""The explorer of who is in the system: areas and lines are where `lib` has them, and what is said is true."""

from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex

from figures import style
from figures.exploration import book_values
from figures.explorer import explore
from figures.guard import guard
from figures.in_system import LONGER_S, load_at
from figures.machine import drawn_for
from figures.registry import entry
from figures.words import LANGUAGES
from lib.arrivals import Arrivals
from lib.little import Phase
from lib.step_time import FIT, NS, Fit
from lib.tool_load import ARRIVING_S, ToolLoad
from lib.units import GIB

IN_SYSTEM = entry("requests-in-system")
BOOK = book_values(IN_SYSTEM.draw, IN_SYSTEM.arguments)
SETTINGS: list[dict[str, Any]] = [
    {},
    {"wait_s": LONGER_S},
    {"max_running": 1},
    {"rate_per_s": 5.0, "wait_s": 10.0},
    {"rate_per_s": 0.5, "wait_s": 0.0},
    {"arrivals": Arrivals.POISSON, "rate_per_s": 5.0, "pool_bytes": 2 * GIB},
    {"arrivals": Arrivals.POISSON, "seed": 99, "max_running": 2},
]
AREAS = {style.FILL[role]: phase for role, phase in (
    ("decode", Phase.COMPUTING), ("foreign", Phase.HOLDING), ("queue", Phase.QUEUED),
)}  # fmt: skip


def load(**settings: Any) -> ToolLoad:
    return load_at(**BOOK | settings)


def readouts(**settings: Any) -> dict[str, str]:
    return {one.label: str(one) for one in IN_SYSTEM.exploration.readouts(**BOOK | settings)}


def drawn_area(axes: Axes, phase: Phase) -> float:
    """The area between the two lines that bound a phase, by the corners of what is drawn."""
    (shape,) = (each for each in axes.collections if AREAS[to_hex(np.asarray(each.get_facecolor())[0])] == phase)
    total = 0.0
    for path in shape.get_paths():
        x, y = np.asarray(path.vertices).T
        total += abs(float(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1)))) / 2
    return total


@pytest.mark.parametrize("settings", SETTINGS, ids=range(len(SETTINGS)))
def test_the_areas_are_those_of_the_run(settings: dict[str, Any]) -> None:
    here, (counts, kv) = load(**settings), IN_SYSTEM.figure(**settings).axes
    for phase in Phase:
        assert drawn_area(counts, phase) == pytest.approx(here.present.area(phase) / NS, abs=1e-6)
    gib = here.kv_pool.bytes_of(1) / GIB / NS
    assert drawn_area(kv, Phase.COMPUTING) == pytest.approx(here.held.area(Phase.COMPUTING) * gib)
    idle = here.held.area(Phase.HOLDING, Phase.QUEUED) * gib
    assert drawn_area(kv, Phase.HOLDING) == pytest.approx(idle, abs=1e-6)


@pytest.mark.parametrize("settings", SETTINGS, ids=range(len(SETTINGS)))
def test_the_lines_stand_at_the_law_and_at_the_pool(settings: dict[str, Any]) -> None:
    here, (counts, kv) = load(**settings), IN_SYSTEM.figure(**settings).axes
    law, wall = ([line for line in axes.lines if line.get_color() == style.LIMIT] for axes in (counts, kv))
    assert [np.asarray(line.get_ydata()).tolist() for line in law] == [[here.by_the_law] * 2]
    assert [np.asarray(line.get_ydata()).tolist() for line in wall] == [[here.pool_bytes / GIB] * 2]
    for axes in (counts, kv):
        assert any(np.asarray(line.get_xdata()).tolist() == [ARRIVING_S] * 2 for line in axes.lines)
        assert axes.get_xlim()[1] >= here.present.length_ns / NS
    assert counts.get_ylim()[1] >= max(here.present.peak, here.by_the_law)


def test_the_book_values_are_those_of_the_law() -> None:
    shown = readouts()
    assert (shown["mean stay"], shown["rate × mean stay"], shown["mean of 6–12 s"]) == ("1.64 s", "6.6", "6.6")
    assert (shown["… with a row"], shown["… at a tool"], shown["… queued"]) == ("2.5", "4.0", "0.1")
    assert (shown["peak of KV held"], shown["share of it idle"]) == ("1.98 GiB", "0.62")


@pytest.mark.parametrize("settings", SETTINGS, ids=range(len(SETTINGS)))
def test_both_sides_of_the_law_agree_over_each_run(settings: dict[str, Any]) -> None:
    shown = readouts(**settings)
    assert shown["to the last: rate × stay"] == shown["to the last: mean"]


def test_the_question_is_answered_by_two_loads() -> None:
    question = IN_SYSTEM.exploration.question()
    here, there = load(), load(**question.reveals)
    more = there.settled.mean() - here.settled.mean()
    assert question.answer == "about 8 more" and abs(more - 8) < 0.1
    assert there.by_the_law - here.by_the_law == pytest.approx(8, abs=0.1)
    assert question.answer not in question.text


def test_the_named_settings_show_what_they_are_called() -> None:
    named = {name: load(**settings) for name, settings in IN_SYSTEM.exploration.settings.items()}
    one_row = named["overload: one row"]
    assert one_row.longest_queue > 20 and one_row.peak_bytes < one_row.pool_bytes / 4
    full = named["a tool fills the pool"]
    assert full.peak_bytes > 0.99 * full.pool_bytes
    assert full.settled.mean(Phase.COMPUTING) < 2 and full.longest_queue > 10


@pytest.mark.parametrize(("start", "name", "there", "line"), [
    ({}, "max_running", 16, "Never more than 3 have a row at once, so a further row stays idle."),
    ({}, "seed", 3, "Nothing is drawn where requests arrive evenly."),
])  # fmt: skip
def test_why_nothing_moves(start: dict[str, Any], name: str, there: Any, line: str) -> None:
    explorer = explore("requests-in-system", **start)
    explorer.widgets[name].value = there
    assert explorer.line == line


def test_what_makes_no_sense_is_one_sentence() -> None:
    for wrong in ({"rate_per_s": 0}, {"wait_s": -1}, {"max_running": 0}, {"pool_bytes": 1}):
        assert explore("requests-in-system", **wrong).sentence.startswith("Nothing to draw: ")


@pytest.mark.parametrize("mine", [Fit(9_000_000, 60_000, 5), Fit(60_000_000, 400_000, 40), Fit(0, 1000, 0)], ids=str)
def test_the_load_is_that_of_the_machine_that_is_drawn(mine: Fit) -> None:
    books, shown = load(), readouts()
    with drawn_for(mine):
        assert load() == ToolLoad(step_time=mine) and load().whole_run.mean_stay_s != books.whole_run.mean_stay_s
        assert readouts()["mean stay"] != shown["mean stay"]
        for settings in SETTINGS:
            guard(IN_SYSTEM.figure(**settings), IN_SYSTEM.slug, IN_SYSTEM.may_overlap)
    assert load() == books == ToolLoad(step_time=FIT) and readouts() == shown


def test_kv_of_who_is_back_and_has_no_row_is_idle_too() -> None:
    held = load(max_running=1, wait_s=0.5).held
    assert held.area(Phase.QUEUED) > 0


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("settings", SETTINGS, ids=range(len(SETTINGS)))
def test_no_fault_elsewhere(settings: dict[str, Any], language: str) -> None:
    guard(IN_SYSTEM.figure(language=language, **settings), IN_SYSTEM.slug, IN_SYSTEM.may_overlap)
