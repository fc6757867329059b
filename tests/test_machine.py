"""The explorers speak for a reader's machine once they are told its fit, and for the book's before and after."""

import math
import re
from collections.abc import Iterator
from threading import Thread
from typing import Any

import pytest

from figures import machine
from figures.exploration import Readout, Slider, book_values
from figures.explorer import Explorer, explore
from figures.machine import STAYS, back_to_the_book, drawn_for, fit, recalibrate
from figures.page import screen_png
from figures.registry import FIGURES, Entry, entry
from figures.schedules import StepModel
from lib.checks import InputError
from lib.clocks import Clock
from lib.step_time import FIT, Fit

MINE = Fit(9_000_000, 60_000, 5)
# What shows a time by the fit only at other settings than the book's.
ASKED: dict[str, dict[str, Any]] = {
    "speculation-under-load": {"step_time": StepModel.FIT},
    "context-edits": {"step_time": StepModel.FIT},
    "copy-time": {"kind": "prefill"},
    "copy-and-compute": {"kind": "prefill"},
    "request-timeline": {"inserted": 1, "inserted_as": "inside a decode step"},
    "padded-rows": {"further_rows": 17},
}
# Times by the fit that are nothing for either machine.
NOTHING = {"the-bill": {"queue"}, "copy-time": {"compute waits"}, "copy-and-compute": {"compute waits"}}


@pytest.fixture(autouse=True)
def _the_book_again() -> Iterator[None]:
    """Each test has only its own explorers open: others' would be drawn with them."""
    machine._Reader.open.clear()
    yield
    machine._Reader.open.clear()
    back_to_the_book()


def shown(explorer: Explorer) -> tuple[str, ...]:
    return tuple(map(str, explorer.readouts))


def book_column(explorer: Explorer) -> tuple[str, ...]:
    return tuple(map(str, explorer._book_readouts))


def read_out(figure: Entry) -> tuple[Readout, ...]:
    """The read-outs of a figure at the settings at which it has times by the fit, if it ever has."""
    at = book_values(figure.draw, figure.arguments) | ASKED.get(figure.slug, {})
    return figure.exploration.readouts(**dict(figure.arguments) | at)


def speaks_of_the_fit(one: Readout) -> bool:
    """A time by the fit, or a read-out that names it."""
    return Clock.FIT in one.clocks or bool(re.search(r"\bfit\b", str(one)))


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.slug)
def test_who_speaks_of_the_fit_at_any_named_setting_is_asked_below_or_stays(figure: Entry) -> None:
    book = dict(figure.arguments) | book_values(figure.draw, figure.arguments)
    shown = [
        one for at in figure.exploration.settings.values() for one in figure.exploration.readouts(**book | dict(at))
    ]
    if figure.slug not in STAYS and any(map(speaks_of_the_fit, shown)):
        assert any(Clock.FIT in one.clocks for one in read_out(figure))


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.slug)
def test_every_time_by_the_fit_follows_or_says_why_not(figure: Entry) -> None:
    """A new explorer with times by the fit asks `figures.machine.fit()` for it, or stands in STAYS with its reason."""
    books = read_out(figure)
    with drawn_for(MINE if figure.slug not in STAYS else FIT):
        mine = read_out(figure)
    by_fit = {one.label for one in books if Clock.FIT in one.clocks} - NOTHING.get(figure.slug, set())
    moved = {one.label for one, was in zip(mine, books, strict=True) if str(one) != str(was)}
    if figure.slug in STAYS:
        assert not moved
    else:
        assert by_fit <= moved
        assert not moved or by_fit


@pytest.mark.parametrize(
    "slug", ["fixed-batch", "the-bill", "run-scrubber", "context-edits", "copy-time", "requests-in-system", *STAYS]
)
def test_an_open_explorer_is_drawn_for_the_machine_and_back(slug: str) -> None:
    explorer = explore(slug, **ASKED.get(slug, {}))
    before, book, png = shown(explorer), book_column(explorer), explorer.png
    recalibrate(MINE)
    assert (shown(explorer) == before and explorer.png == png) == (slug in STAYS)
    assert book_column(explorer) == book
    assert not explorer.sentence
    back_to_the_book()
    assert (shown(explorer), explorer.png, explorer._machine.value) == (before, png, "")


@pytest.mark.parametrize("slug", ["fixed-batch", "continuous-batching", "chunked-prefill"])
def test_an_explorer_opened_later_shows_the_same_as_one_that_was_open(slug: str) -> None:
    opened = explore(slug)
    recalibrate(MINE)
    later = explore(slug)
    assert (shown(later), later.png, later.settings) == (shown(opened), opened.png, opened.settings)
    assert later.settings["fixed_term"] == MINE.fixed_ns / 1e9
    assert opened.widgets["fixed_term"].value == pytest.approx(9.2), "the step nearest to 9 ms"
    assert later.book["fixed_term"] == FIT.fixed_ns / 1e9


def test_a_control_that_was_moved_stays_where_it_is() -> None:
    explorer = explore("fixed-batch")
    explorer.move(fixed_term=0.005, max_running=3)
    recalibrate(MINE)
    assert (explorer.settings["fixed_term"], explorer.settings["max_running"]) == (0.005, 3)


def browser_shows(explorer: Explorer) -> None:
    """Put each slider on a whole step, as a browser does, which then sends back where it stands."""
    for name, control in explorer.controls.items():
        if isinstance(control, Slider):
            widget = explorer.widgets[name]
            steps = math.floor((widget.value - widget.min) / control.step + 0.5)
            # The arithmetic of a browser is a little off too.
            widget.value = widget.min + steps * control.step + (0 if control.is_whole else 3e-15)


@pytest.mark.parametrize("slug", ["fixed-batch", "continuous-batching", "chunked-prefill"])
def test_sliders_stand_where_a_browser_shows_them_so_that_it_sends_nothing_back(slug: str) -> None:
    explorer = explore(slug)
    sliders = [explorer.widgets[name] for name, control in explorer.controls.items() if isinstance(control, Slider)]
    for fixed_ns in (8_996_000, 39_000_000, FIT.fixed_ns):
        recalibrate(Fit(fixed_ns, 60_000, 5))
        before = [slider.value for slider in sliders]
        browser_shows(explorer)
        assert [slider.value for slider in sliders] == pytest.approx(before, rel=1e-12)


@pytest.mark.parametrize("fixed_ns", [8_996_000, 9_000_000, 8_970_000, 26_000_000, 41_000_000, 0])
@pytest.mark.parametrize("slug", ["fixed-batch", "continuous-batching", "chunked-prefill"])
def test_a_browser_that_knows_whole_steps_only_moves_nothing(slug: str, fixed_ns: int) -> None:
    explorer = explore(slug)
    browser_shows(explorer)
    book, png, settings = shown(explorer), explorer.png, dict(explorer.settings)
    recalibrate(Fit(fixed_ns, 60_000, 5))
    mine = shown(explorer)
    for _ in range(2):
        browser_shows(explorer)
        assert (shown(explorer), explorer.settings["fixed_term"]) == (mine, fixed_ns / 1e9)
        assert not explorer.line
    explorer._try({})
    browser_shows(explorer)
    assert shown(explorer) == mine
    back_to_the_book()
    browser_shows(explorer)
    assert (shown(explorer), explorer.png, explorer.settings) == (book, png, settings)


def test_a_reader_moves_by_whole_steps_from_a_start_between_two_and_finds_it_again() -> None:
    explorer = explore("fixed-batch")
    recalibrate(Fit(8_996_000, 60_000, 5))
    browser_shows(explorer)
    slider, mine = explorer.widgets["fixed_term"], shown(explorer)
    assert slider.value == pytest.approx(9.20)
    for position in (9.66, 8.74, 8.28):
        slider.value = position
        assert explorer.settings["fixed_term"] == pytest.approx(position / 1e3, rel=1e-12)
        assert shown(explorer) != mine
    slider.value = 9.20
    assert (shown(explorer), explorer.settings["fixed_term"]) == (mine, 0.008996)
    slider.value = 12.42
    # What was typed between two steps is a move, and so is the step that the browser makes of it.
    for position in (12.5, 12.42):
        slider.value = position
        assert explorer.settings["fixed_term"] == pytest.approx(position / 1e3)
    back_to_the_book()
    assert explorer.settings["fixed_term"] == pytest.approx(0.01242), "a reader moved it"


def test_book_values_and_predictions_are_drawn_for_the_machine() -> None:
    recalibrate(MINE)
    explorer = explore("fixed-batch")
    start, settings = shown(explorer), dict(explorer.settings)
    explorer.predict(explorer.question.choices[0])
    assert explorer.settings == settings | dict(explorer.question.reveals)
    explorer._try({})
    assert (shown(explorer), explorer.settings) == (start, settings)


def test_times_by_the_fit_are_called_yours_and_others_are_not() -> None:
    recalibrate(MINE)
    assert "your fit" in explore("chunked-prefill")._table.value
    assert "9.00 ms a step, 60.0 us a new token, 5 ns a pair" in explore("chunked-prefill")._machine.value
    for slug, reason in list(STAYS.items())[:2]:
        explorer = explore(slug)
        assert "your fit" not in explorer._table.value
        assert "stays with the book" in explorer._machine.value and reason.split("'")[0] in explorer._machine.value
    back_to_the_book()
    assert "your fit" not in explore("chunked-prefill")._table.value


def test_a_stored_explorer_says_that_it_is_not_the_books() -> None:
    recalibrate(MINE)
    bundle, _ = explore("fixed-batch")._stored
    assert "at the book's values" not in bundle["text/plain"] and "your fit" in bundle["text/plain"]
    back_to_the_book()
    bundle, _ = explore("fixed-batch")._stored
    assert "at the book's values" in bundle["text/plain"] and "your fit" not in bundle["text/plain"]


def test_print_figures_are_the_books_whatever_the_reader_has() -> None:
    def drawn() -> list[bytes]:
        return [machine_png(slug) for slug in ("fixed-batch", "the-bill", "interval-to-budget", "pool-size")]

    before = drawn()
    recalibrate(MINE)
    assert fit() == FIT
    assert drawn() == before
    with drawn_for(MINE):
        assert fit() == MINE
        assert all(mine != books for mine, books in zip(drawn(), before, strict=True))
    assert fit() == FIT


def machine_png(slug: str) -> bytes:
    return screen_png(entry(slug).figure())


def test_a_machine_that_is_drawn_for_is_that_of_one_thread() -> None:
    found = []
    with drawn_for(MINE):
        other = Thread(target=lambda: found.append(fit()))
        other.start()
        other.join()
    assert found == [FIT]


def test_the_machine_is_put_back_when_drawing_fails() -> None:
    with pytest.raises(ZeroDivisionError), drawn_for(MINE):
        raise ZeroDivisionError
    assert fit() == FIT


@pytest.mark.parametrize("wrong", [None, 26_220_000, (1, 2, 3), "fit"], ids=repr)
def test_only_a_fit_is_a_machine(wrong: Any) -> None:
    recalibrate(MINE)
    with pytest.raises(InputError, match=r"^machine is .*allowed: a Fit"):
        recalibrate(wrong)
    assert machine.readers("fixed-batch") == MINE, "nothing is changed"
    with pytest.raises(InputError, match=r"^machine is"), drawn_for(wrong):
        pass
