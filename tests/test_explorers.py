"""Every explorer, driven through its widgets as a reader would, without a browser."""

import base64
import functools
import io
import json
import math
import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from threading import Event, Thread
from typing import Any

import ipywidgets as widgets
import pytest
from PIL import Image

from figures.exploration import IN_VIEW_AT_MOST, Choice, Control, Readout, Slider, book_values, controls_of
from figures.explorer import Explorer, explore
from figures.page import SCREEN_WIDTH_PX
from figures.registry import FIGURES, Entry
from lib.checks import InputError
from lib.clocks import Clock
from lib.units import GIB

pytestmark = pytest.mark.filterwarnings("error")
each_figure = pytest.mark.parametrize("figure", FIGURES, ids=lambda known: known.slug)
EACH_CONTROL = [(figure, name) for figure in FIGURES for name in controls_of(figure.draw)]
each_control = pytest.mark.parametrize(("figure", "name"), EACH_CONTROL, ids=lambda part: getattr(part, "slug", part))
# What does not depend on the figure is tried with three of them every day, and with all in the long run.
EVERY_DAY = FIGURES[:3]
some_figures = pytest.mark.parametrize(
    "figure",
    [pytest.param(known, marks=() if known in EVERY_DAY else pytest.mark.long, id=known.slug) for known in FIGURES],
)
some_controls = pytest.mark.parametrize(
    ("figure", "name"),
    [
        pytest.param(known, name, marks=() if known in EVERY_DAY else pytest.mark.long, id=f"{known.slug}-{name}")
        for known, name in EACH_CONTROL
    ],
)

VIEW = "application/vnd.jupyter.widget-view+json"
# How many random points, and how many steps without another read-out, are drawn: of every day, and in the long run.
FEW, MANY = 8, 20
few_or_many = pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.long)])
NO_NUMBERS = (math.nan, math.inf, -math.inf, "some", "", True, None, 10**400, 1e300, [1])
NO_OPTIONS = ("no such choice", "", math.nan, None, 10**400, [1])
# Where the least value a reader might type makes no sense although no slider goes there.
OF_SCHEDULES = ("max_running", "r0_outputs", "r1_outputs", "r2_prompt", "chunk", "token_budget")
OF_ALLOTMENTS = ("max_tokens", "sharers", "slots", "a", "b", "c", "d")
ZERO_MAKES_NO_SENSE = {
    "request-timeline": ("outputs", "deadline"),
    "reads-per-output": ("batch", "context", "other_context"),
    "separate-weight-store": ("batch", "context"),
    "fixed-batch": OF_SCHEDULES,
    "continuous-batching": OF_SCHEDULES,
    "chunked-prefill": OF_SCHEDULES,
    "the-bill": ("chunk", "max_running"),
    "pairs-first-chunk": ("new_tokens",),
    "pairs-behind-context": ("new_tokens",),
    "chunk-times": ("prompt_tokens",),
    "padded-rows": ("rows",),
    "interval-to-budget": ("interval",),
    "block-table": ("block_tokens",),
    "copy-on-write": ("tail_tokens", "branches", "block_tokens"),
    "reserved-maximum": OF_ALLOTMENTS,
    "paged-allotment": OF_ALLOTMENTS,
    "shared-prefix-blocks": OF_ALLOTMENTS,
    "run-scrubber": ("step", "blocks"),
    "pool-size": ("blocks", "requests", "output", "token_budget"),
    "reference-counts": ("event", "sharers"),
    "prefix-value": ("link_bytes_s", "a_tokens", "b_tokens", "efficiency"),
    "cancel-and-release": ("step_time", "in_flight", "needs_blocks"),
    "snapshot-resume": ("spacing", "last"),
    "recovery-paths": ("new_tokens", "window"),
    "prefix-tree": ("rounds",),
    "context-edits": ("summary",),
    "agent-rounds": ("pool",),
    "offload-memory": ("every", "buffers"),
    "copy-time": ("link_bytes_s", "requests", "every", "prompt_tokens", "tokens_per_step", "buffers"),
    "copy-and-compute": ("link_bytes_s", "buffers", "every", "prompt_tokens"),
    "group-formats": ("code_bits",),
    "speculation-under-load": ("draft_tokens", "pool_bytes"),
    "greedy-check": ("draft_tokens", "differs_at"),
    "query-cost": ("draft_tokens", "plain_s"),
    "task-speedup": ("speedup",),
    "file-in-memory": ("context",),
    "requests-in-system": ("rate_per_s", "max_running", "pool_bytes"),
    "admission": ("rate_per_s", "deadline_s", "requests"),
    "completion-throughput": ("rate_per_s", "requests", "deadline_s"),
    "goodput": ("rate_per_s", "requests", "deadline_s"),
    "load-curve": ("deadline",),
    "configurations": ("memory_bytes", "deadline_s", "output_tokens", "outputs_per_round", "requests"),
}


def positions(control: Control) -> list[Any]:
    """Each place that a control can be moved to."""
    if isinstance(control, Choice):
        return list(control.options)
    places = (
        control.low + step * control.step for step in range(round((control.high - control.low) / control.step) + 1)
    )
    return [place if control.is_whole else round(place, 9) for place in places]


def value_at(control: Control, position: Any) -> Any:
    return control.to_parameter(position) if isinstance(control, Slider) else position


def ends(control: Control) -> tuple[Any, Any]:
    return positions(control)[0], positions(control)[-1]


def elsewhere(explorer: Explorer, name: str) -> Any:
    """An end of a control at which it does not stand."""
    return next(end for end in ends(explorer.controls[name]) if end != explorer.widgets[name].value)


def size_of(picture: bytes) -> tuple[int, int]:
    with Image.open(io.BytesIO(picture), formats=["PNG"]) as image:
        image.load()
        return image.size


def check(explorer: Explorer, size: tuple[int, int]) -> None:
    """A picture of this size with finite read-outs, or one sentence."""
    if explorer.sentence:
        check_sentence(explorer.sentence)
        assert explorer.png == b""
    else:
        check_picture(explorer, size)


def check_picture(explorer: Explorer, size: tuple[int, int]) -> None:
    assert explorer.sentence == ""
    assert size_of(explorer.png) == size
    assert explorer.readouts
    numbers = [readout.amount for readout in explorer.readouts if not isinstance(readout.amount, str)]
    assert all(map(math.isfinite, numbers))


def check_sentence(sentence: str) -> None:
    assert sentence[:1].isupper()
    assert sentence.endswith(".")
    assert "\n" not in sentence


def shown_by(explorer: Explorer) -> Iterator[Any]:
    """Every widget that the reader sees, from top to bottom."""

    def below(widget: Any) -> Iterator[Any]:
        yield widget
        for child in getattr(widget, "children", ()):
            yield from below(child)

    return below(explorer._view)


def button(explorer: Explorer, name: str) -> Any:
    return next(
        shown for shown in shown_by(explorer) if isinstance(shown, widgets.Button) and shown.description == name
    )


def text_of(explorer: Explorer) -> str:
    return "\n".join(shown.value for shown in shown_by(explorer) if isinstance(shown, widgets.HTML))


@some_figures
def test_the_book_values_come_first_and_are_the_figure_of_the_registry(figure: Entry) -> None:
    explorer = explore(figure.slug)
    assert explorer.png == explore(figure.number or figure.slug).png
    assert size_of(explorer.png)[0] >= SCREEN_WIDTH_PX
    assert explorer.line == ""
    check_picture(explorer, size_of(explorer.png))


@some_figures
def test_each_end_alone_and_back(figure: Entry) -> None:
    explorer = explore(figure.slug)
    book = explorer.png
    for name, control in explorer.controls.items():
        start = explorer.widgets[name].value
        for end in ends(control):
            explorer.widgets[name].value = end
            assert explorer.settings[name] == value_at(control, end)
            check(explorer, size_of(book))
        explorer.widgets[name].value = start
    assert explorer.settings == explorer.book
    assert explorer.png == book


@some_figures
@pytest.mark.parametrize("end", [0, -1], ids=["all low", "all high"])
def test_all_controls_at_the_same_end(figure: Entry, end: int) -> None:
    explorer = explore(figure.slug)
    size, stored = size_of(explorer.png), explorer._repr_mimebundle_()
    for name, control in explorer.controls.items():
        explorer.widgets[name].value = positions(control)[end]
        check(explorer, size)
    assert explorer._repr_mimebundle_() == stored, "what is stored shows where the reader began"


@some_figures
@few_or_many
def test_random_points(figure: Entry, count: int) -> None:
    explorer, draw = explore(figure.slug), random.Random(8)
    size = size_of(explorer.png)
    for _ in range(count):
        point = {name: draw.choice(positions(control)) for name, control in explorer.controls.items()}
        explorer.move(**{name: value_at(explorer.controls[name], position) for name, position in point.items()})
        check(explorer, size)
        assert {name: widget.value for name, widget in explorer.widgets.items()} == point


@some_controls
@few_or_many
def test_every_step_changes_something_or_says_why_not(figure: Entry, name: str, count: int) -> None:
    """Steps that change a read-out need no picture to be told apart, which leaves few to be drawn."""
    explorer = explore(figure.slug)
    control = explorer.controls[name]

    @functools.cache
    def told(value: Any) -> tuple[str, ...]:
        try:
            return tuple(map(str, figure.exploration.readouts(**explorer.book | {name: value})))
        except InputError as error:
            return (str(error),)

    steps = list(pairwise(positions(control)))
    silent = [(here, there) for here, there in steps if told(value_at(control, here)) == told(value_at(control, there))]
    for here, there in silent[:: math.ceil(len(silent) / count) or 1]:
        explorer.widgets[name].value = here
        before = explorer.png, explorer.sentence
        explorer.widgets[name].value = there
        assert (explorer.png, explorer.sentence) != before or explorer.line, f"{name}: {here} to {there}"
        assert explorer.line in text_of(explorer)


@some_figures
def test_what_is_in_view_and_what_is_under_more(figure: Entry) -> None:
    explorer = explore(figure.slug)
    in_view, controls = figure.exploration.in_view, controls_of(figure.draw)
    assert 1 <= len(in_view) <= IN_VIEW_AT_MOST
    assert len(set(in_view)) == len(in_view)
    assert set(in_view) <= controls.keys()
    under_more = [
        kept for shown in shown_by(explorer) if isinstance(shown, widgets.Accordion) for kept in hidden_in(shown)
    ]
    seen = list(shown_by(explorer))
    for name, widget in explorer.widgets.items():
        assert seen.count(widget) == 1
        assert (widget in under_more) == (name not in in_view)
        assert widget.description.startswith(controls[name].label)


def hidden_in(accordion: Any) -> list[Any]:
    assert accordion.titles == ("more",)
    assert accordion.selected_index is None
    return [child for grid in accordion.children for child in grid.children]


@each_figure
def test_the_book_values_are_within_reach_of_the_controls(figure: Entry) -> None:
    explorer = explore(figure.slug)
    for name, control in explorer.controls.items():
        assert explorer.widgets[name].value in positions(control)
        assert value_at(control, explorer.widgets[name].value) == explorer.book[name]


@some_figures
def test_named_settings(figure: Entry) -> None:
    explorer, named = explore(figure.slug), figure.exploration.settings
    book = explorer.png
    pictures = {book}
    assert 2 <= len(named) <= 3
    for name, settings in named.items():
        assert settings.keys() <= explorer.controls.keys()
        for control, value in settings.items():
            assert value in [value_at(explorer.controls[control], at) for at in positions(explorer.controls[control])]
        button(explorer, name).click()
        assert explorer.settings == explorer.book | dict(settings)
        assert explorer.png not in pictures, "it draws no picture of its own"
        pictures.add(explorer.png)
        check_picture(explorer, size_of(book))
        button(explorer, "the book's values").click()
        assert explorer.settings == explorer.book
        assert explorer.png == book


@each_figure
def test_the_question_is_asked_before_and_judged_after(figure: Entry) -> None:
    question = figure.exploration.question()
    assert 3 <= len(question.choices) <= 4
    assert len(set(question.choices)) == len(question.choices)
    assert question.answer in question.choices
    wrong = next(choice for choice in question.choices if choice != question.answer)
    assert question.verdict(question.answer) != question.verdict(wrong)
    assert question.answer in question.verdict(wrong)
    assert wrong in question.verdict(wrong)
    assert all(question.because in question.verdict(choice) for choice in question.choices)
    explorer = explore(figure.slug)
    assert question.because not in text_of(explorer)
    for choice in question.choices if figure in EVERY_DAY else (question.answer,):  # all of them in the browser
        button(explorer, choice).click()
        assert explorer.settings == explorer.book | dict(question.reveals)
        assert explorer.sentence == ""
        assert explorer.predict(choice) == question.verdict(choice)


@some_figures
def test_a_prediction_is_not_stored(figure: Entry) -> None:
    explorer = explore(figure.slug)
    before = explorer._repr_mimebundle_()
    verdict = explorer.predict(figure.exploration.question().choices[0])
    assert explorer._repr_mimebundle_() == before
    assert verdict not in json.dumps(before)


@some_figures
def test_an_answer_that_is_no_choice_is_refused(figure: Entry) -> None:
    explorer = explore(figure.slug)
    picture = explorer.png
    with pytest.raises(InputError, match=r"^choice is 'perhaps'; allowed: one of "):
        explorer.predict("perhaps")
    assert explorer.png == picture


@some_figures
def test_what_is_stored_are_the_readouts_and_the_picture_at_the_book_values(figure: Entry) -> None:
    explorer = explore(figure.slug)
    data, metadata = explorer._repr_mimebundle_()
    assert data.keys() == {"text/plain", "image/png", VIEW}
    title, *lines = data["text/plain"].splitlines()
    assert title.startswith(f"{figure.title} at the book's values")
    for readout, line in zip(figure.exploration.readouts(**explorer.book), lines, strict=True):
        label, shown, clock = str(readout.label), str(readout), readout.clock
        assert line.split() == [*label.split(), *shown.split(), *clock.split()]
    stored = base64.b64decode(data["image/png"])
    with Image.open(io.BytesIO(stored), formats=["PNG"]) as image:
        assert image.mode == "P"
        assert image.info.keys() <= {"transparency"}
    assert size_of(stored) == size_of(explorer.png)
    assert metadata.keys() == {"image/png"}
    assert metadata["image/png"]["alt"].strip()
    model = data[VIEW]["model_id"]
    assert model not in data["text/plain"] + data["image/png"] + json.dumps(metadata)


@some_figures
def test_other_settings_to_begin_with_are_stored_as_such(figure: Entry) -> None:
    settings = next(iter(figure.exploration.settings.values()))
    explorer = explore(figure.slug, **settings)
    assert explorer.settings == explorer.book | dict(settings)
    text = explorer._repr_mimebundle_()[0]["text/plain"]
    assert "book" not in text
    assert text != explore(figure.slug)._repr_mimebundle_()[0]["text/plain"]
    for name, control in explorer.controls.items():
        assert value_at(control, explorer.widgets[name].value) == explorer.settings[name]


def wrong_values(figure: Entry, name: str) -> list[Any]:
    control = controls_of(figure.draw)[name]
    if isinstance(control, Choice):
        return list(NO_OPTIONS)
    below = [-1] if control.low >= 0 else []
    zero = [0] if name in ZERO_MAKES_NO_SENSE.get(figure.slug, ()) else []
    fraction = [2.5] if control.is_whole else []
    return [*NO_NUMBERS, *below, *zero, *fraction]


def check_refusal(explorer: Explorer, name: str, value: Any) -> None:
    check_sentence(explorer.sentence)
    assert f"{name} is {repr(value)[:20]}" in explorer.sentence
    assert "; allowed: " in explorer.sentence
    assert len(explorer.sentence) < 400
    assert explorer.png == b""


@some_controls
def test_a_wrong_value_gives_one_sentence_until_the_control_is_moved(figure: Entry, name: str) -> None:
    for value in wrong_values(figure, name)[:: len(NO_OPTIONS)]:
        explorer = explore(figure.slug, **{name: value})
        check_refusal(explorer, name, value)
        stored, _ = explorer._repr_mimebundle_()
        assert stored.keys() == {"text/plain", VIEW}
        assert stored["text/plain"] == explorer.sentence
    explorer.widgets[name].value = elsewhere(explorer, name)
    assert explorer.line == ""
    assert explorer.sentence != stored["text/plain"]
    check(explorer, size_of(explore(figure.slug).png))


@some_controls
def test_moving_to_a_wrong_value_gives_the_same_sentence(figure: Entry, name: str) -> None:
    explorer = explore(figure.slug)
    picture = explorer.png
    for value in wrong_values(figure, name):
        explorer.move(**{name: value})
        check_refusal(explorer, name, value)
    explorer.move(**explorer.book)
    assert explorer.png == picture
    assert explorer.sentence == explorer.line == ""


@some_figures
def test_an_unknown_setting_is_refused_by_name_and_nothing_moves(figure: Entry) -> None:
    with pytest.raises(InputError, match=r"^setting is 'colour'; allowed: one of "):
        explore(figure.slug, colour="red")
    explorer = explore(figure.slug)
    name = next(iter(explorer.controls))
    with pytest.raises(InputError, match=r"^setting is 'colour'; allowed: one of "):
        explorer.move(**{name: value_at(explorer.controls[name], elsewhere(explorer, name)), "colour": "red"})
    assert explorer.settings == explorer.book


@pytest.mark.parametrize("name", ["no-such-figure", "8-99", "", 8.2, None], ids=repr)
def test_an_unknown_figure_is_refused_and_the_figures_are_listed(name: Any) -> None:
    with pytest.raises(
        InputError, match=rf"^figure is .*; allowed: one of .*{FIGURES[0].slug} \({FIGURES[0].number}\)"
    ):
        explore(name)


def failing(figure: Entry, fails: list[bool]) -> Entry:
    """The same figure, whose function divides by zero as soon as it is told to."""

    @functools.wraps(figure.draw)
    def draw(**settings: Any) -> Any:
        if fails:
            _ = 1 / 0
        return figure.draw(**settings)

    return replace(figure, draw=draw)


@some_figures
def test_a_fault_in_a_figure_is_raised_and_not_told_as_a_wrong_setting(figure: Entry) -> None:
    with pytest.raises(ZeroDivisionError):
        Explorer(failing(figure, [True]), {})
    fails: list[bool] = []
    explorer = Explorer(failing(figure, fails), {})
    fails.append(True)
    raised = 0
    for name in explorer.widgets:
        explorer.settings |= explorer.book
        try:
            explorer.widgets[name].value = elsewhere(explorer, name)
        except ZeroDivisionError:
            raised += 1
            assert "fault in the figure" in explorer.sentence
        else:
            assert explorer.sentence.startswith("Nothing to draw: ")
        check_sentence(explorer.sentence)
        assert explorer.png == b""
    assert raised
    with pytest.raises(ZeroDivisionError):
        explorer.predict(explorer.question.answer)
    fails.clear()
    explorer.move(**explorer.book)
    assert explorer.sentence == ""
    assert explorer.png == explore(figure.slug).png


@some_figures
def test_the_table_shows_now_book_and_change(figure: Entry) -> None:
    explorer = explore(figure.slug)
    book = explorer.readouts
    button(explorer, next(iter(figure.exploration.settings))).click()
    table = text_of(explorer)
    for now, then in zip(explorer.readouts, book, strict=True):
        for told in (now.label, str(now), str(then), now.change_from(then), now.clock):
            assert told in table


@each_figure
def test_every_time_carries_its_clock(figure: Entry) -> None:
    for readout in explore(figure.slug).readouts:
        assert bool(readout.clocks) == (readout.unit in ("s", "ms", "us", "ns"))
        assert set(readout.clocks) <= set(Clock)


def test_a_readout_tells_its_change() -> None:
    book = Readout("total", 6.95, "s", 2, (Clock.CLIENT,))
    assert replace(book, amount=7.05).change_from(book) == "+0.10 s"
    assert replace(book, amount=6.85).change_from(book) == "−0.10 s"
    assert replace(book, amount=6.951).change_from(book) == "–"
    assert Readout("bits", 9).change_from(Readout("bits", 8.5, digits=1)) == "+0.5"
    assert replace(book, clocks=(Clock.CLIENT, Clock.FIT)).clock == "client + fit"


def test_a_slider_moves_in_its_unit_and_gives_base_units() -> None:
    time = Slider("interval", 10.0, 60.0, 0.5, "ms")
    assert time.ends == (0.01, 0.06)
    assert time.to_parameter(26.5) == 0.0265
    assert time.to_position(0.0265) == 26.5
    pool = Slider("pool", 4, 48, 1, "GiB")
    assert pool.ends == (4 * GIB, 48 * GIB)
    assert type(pool.to_parameter(12)) is int
    assert pool.to_position(12 * GIB) == 12
    assert type(pool.to_position(12 * GIB)) is int
    whole = Slider("interval", 10, 60, 1, "ms")
    assert whole.ends == (0.01, 0.06)
    assert whole.to_position(0.026) == 26


def test_controls_are_what_a_function_annotates() -> None:
    for figure in FIGURES:
        controls = controls_of(figure.draw)
        assert controls
        assert "language" not in controls
        labels = [control.label for control in controls.values()]
        assert len(set(labels)) == len(labels)


def test_a_place_given_back_a_little_off_is_no_move() -> None:
    explorer = explore("cancel-and-release")
    slider = explorer.widgets["step_time"]
    slider.value -= 1e-14
    assert explorer.line == "" and explorer.settings == explorer.book
    slider.value -= slider.step
    assert explorer.settings != explorer.book


def pausing(figure: Entry, paused: Event, go_on: Event) -> Entry:
    """The same figure, whose function waits between the two events when it first draws other than the book's values."""
    book = book_values(figure.draw, figure.arguments)

    @functools.wraps(figure.draw)
    def draw(**settings: Any) -> Any:
        if not paused.is_set() and settings != book:
            paused.set()
            go_on.wait()
        return figure.draw(**settings)

    return replace(figure, draw=draw)


def test_a_button_pressed_while_a_move_is_drawn_in_another_thread_waits_for_its_turn() -> None:
    paused, go_on = Event(), Event()
    explorer = Explorer(pausing(FIGURES[0], paused, go_on), {})
    first, name = text_of(explorer), next(iter(explorer.widgets))
    mover = Thread(target=setattr, args=(explorer.widgets[name], "value", elsewhere(explorer, name)))
    mover.start()
    assert paused.wait(10)
    presser = Thread(target=button(explorer, "the book's values").click)
    presser.start()
    presser.join(0.2)
    go_on.set()
    for thread in (mover, presser):
        thread.join()
    assert (text_of(explorer), explorer.png) == (first, explore(FIGURES[0].slug).png)
    assert explorer.settings == explorer.book


def test_a_move_that_waited_in_another_thread_while_a_button_put_the_control_back_is_none() -> None:
    explorer = explore(FIGURES[0].slug)
    name = next(iter(explorer.widgets))
    mover = Thread(target=setattr, args=(explorer.widgets[name], "value", elsewhere(explorer, name)))
    with explorer._turn:
        mover.start()
        mover.join(0.2)
        button(explorer, "the book's values").click()
    mover.join()
    assert explorer.settings == explorer.book
    assert explorer.png == explore(FIGURES[0].slug).png
