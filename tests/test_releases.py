"""The pictures of blocks that are given back show what pool and model say, and the lines beside them are true."""

from typing import Any

import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Patch, PathPatch, StepPatch

from figures.explorer import explore
from figures.guard import guard, visible_texts
from figures.registry import Entry, entry
from figures.releases import (
    AXIS_PT,
    BLOCKS_PT,
    COUNTS_EXPLORATION,
    LANE_PT,
    LEFT_PT,
    LOOKS,
    MOST_EVENTS,
    POOL_HEIGHT_PT,
    POOL_PT,
    WAITING_PT,
    WIDTH_PT,
    moments_of,
)
from figures.words import LANGUAGES
from lib.block_reuse import SHARED_BLOCK, Ending, Kind, Moment, Rule
from lib.blocks import State
from lib.cancellation import cancel, recorded
from lib.units import shown

COUNTS, CANCEL = entry("reference-counts"), entry("cancel-and-release")
BOOK = {"event": 7, "sharers": 2, "in_flight": 1, "rule": Rule.AFTER_STEP, "ending": Ending.FIRST_ADMITTED}
STORIES = [
    {},
    {"event": 9},
    {"rule": Rule.AT_ONCE, "event": 8},
    {"rule": Rule.AT_ONCE, "in_flight": 0, "event": 1},
    {"sharers": 4, "in_flight": 2, "event": MOST_EVENTS},
    {"sharers": 3, "in_flight": 2, "rule": Rule.AT_ONCE, "ending": Ending.LAST_ADMITTED, "event": 10},
]
BOOK_CANCEL = {"phase_percent": 0, "step_time": 0.03, "in_flight": 1, "needs_blocks": 100}
RUNS = [
    {},
    {"phase_percent": 50, "in_flight": 2},
    {"phase_percent": 95},
    {"needs_blocks": 30},
    {"step_time": 0.01, "phase_percent": 80, "needs_blocks": 10},
    {"step_time": 0.04, "in_flight": 2, "needs_blocks": 139},
    {"step_time": 1.0, "in_flight": 2},
]
each_story = pytest.mark.parametrize("settings", STORIES, ids=repr)
each_run = pytest.mark.parametrize("settings", RUNS, ids=repr)
Box = tuple[float, float, float, float]


def boxes(figure: Figure, look: str) -> list[Box]:
    """Left, bottom, right and top of the boxes that are drawn in a look, from the left."""
    found: list[Box] = []
    for patch in figure.axes[0].patches:
        if isinstance(patch, PathPatch) and has_look(patch, look):
            for corners in patch.get_path().to_polygons():
                (left, bottom), (right, top) = corners.min(axis=0).tolist(), corners.max(axis=0).tolist()
                found.append((left, bottom, right, top))
    return sorted(found)


def has_look(patch: Patch, look: str) -> bool:
    colour, hatch = to_rgba(LOOKS[look]["facecolor"]), LOOKS[look].get("hatch", "")
    return patch.get_facecolor() == colour and (patch.get_hatch() or "") == hatch


def columns(moments: tuple[Moment, ...], box: Box) -> range:
    """The events over which a box lies, counted from 0."""
    width = WIDTH_PT / len(moments)
    return range(*(round((edge - LEFT_PT) / width) for edge in (box[0], box[2])))


def height_of(figure: Figure, name: str) -> float:
    """The middle of the lane of this name."""
    return next(text.get_position()[1] for text in figure.axes[0].texts if text.get_text() == name)


def texts_at(figure: Figure, bottom: float, top: float) -> list[str]:
    """The texts that stand between two heights, right of the names of lanes, from the left."""
    placed = [(*text.get_position(), text.get_text()) for text in figure.axes[0].texts]
    return [text for x, y, text in sorted(placed) if bottom <= y <= top and x > LEFT_PT]


@each_story
def test_each_bar_of_a_request_or_a_step_lies_over_its_events(settings: dict[str, Any]) -> None:
    moments, figure = moments_of(**BOOK | settings), COUNTS.figure(**settings)
    bars = [(box, look) for look in ("holds", "in flight", "wrong") for box in boxes(figure, look)]
    for name in {name for moment in moments for name in moment.holders[SHARED_BLOCK]}:
        held = {place for place, moment in enumerate(moments) if name in moment.holders[SHARED_BLOCK]}
        assert drawn_in_lane(moments, bars, height_of(figure, name)) == {place: "holds" for place in held}
    for step in {step for moment in moments for step in moment.steps}:
        looks = {
            place: "wrong" if (moment.error or 0) > 0.1 else "in flight"
            for place, moment in enumerate(moments)
            if step in moment.steps
        }
        assert drawn_in_lane(moments, bars, height_of(figure, f"step {step}")) == looks


def drawn_in_lane(moments: tuple[Moment, ...], bars: list[tuple[Box, str]], height: float) -> dict[int, str]:
    return {place: look for box, look in bars if box[1] < height < box[3] for place in columns(moments, box)}


@each_story
def test_the_lowest_lane_has_count_and_state_of_a_shared_block(settings: dict[str, Any]) -> None:
    moments, figure = moments_of(**BOOK | settings), COUNTS.figure(**settings)
    height = height_of(figure, "references")
    assert texts_at(figure, height - 1, height + 1) == [str(moment.references[SHARED_BLOCK]) for moment in moments]
    cells = [(box, state.name) for state in State for box in boxes(figure, state.name)]
    expected = {place: moment.states[SHARED_BLOCK].name for place, moment in enumerate(moments)}
    assert drawn_in_lane(moments, cells, height) == expected


@each_story
def test_the_pool_and_the_lines_are_those_after_the_event_looked_at(settings: dict[str, Any]) -> None:
    moments, figure = moments_of(**BOOK | settings), COUNTS.figure(**settings)
    place = min((BOOK | settings)["event"], len(moments))
    now = moments[place - 1]
    (frame,) = (columns(moments, box) for box in boxes(figure, "looked at"))
    assert list(frame) == [place - 1]
    middle = POOL_PT + POOL_HEIGHT_PT / 2
    drawn = sorted((box[0], state) for state in State for box in boxes(figure, state.name) if box[1] < middle < box[3])
    assert [state for _, state in drawn] == list(now.states)
    assert texts_at(figure, middle - 1, middle + 1) == [" ".join(held) for held in now.holders if held]
    told = [text.get_text() for text in visible_texts(figure)]
    assert f"free: {now.free}" in told
    assert any(text.startswith(f"event {place} of {len(moments)}: ") for text in told)
    error = "no step has been in flight so far" if now.error is None else f"so far: {now.error:.2f}"
    assert any(text.endswith(error) for text in told)


def test_the_readouts_at_the_book_values() -> None:
    told = {readout.label: str(readout) for readout in explore("reference-counts").readouts}
    assert told == {
        "event": "7 of 10",
        "references to a shared block, up to here": "1-2-1-0",
        "its state": "waiting",
        "free blocks": "5",
        "blocks that wait for a step": "3",
        "largest error of attention in a step (values are about 1 in size)": "0.00",
    }


def test_the_wrong_rule_makes_the_error_jump() -> None:
    explorer = explore("reference-counts")
    answer = explorer.question.answer
    assert answer.startswith("off by ") and answer != "off by rounding only"
    explorer.predict(answer)
    assert explorer.settings == BOOK | {"rule": Rule.AT_ONCE, "event": 8}
    error = explorer.readouts[-1].amount
    assert isinstance(error, float) and answer == f"off by {error:.1f}"
    explorer.move(event=7)
    assert str(explorer.readouts[-1]) == "0.00"


def test_named_settings_show_what_they_say() -> None:
    named = {
        name: moments_of(**BOOK | settings)[settings["event"] - 1]
        for name, settings in COUNTS_EXPLORATION.settings.items()
    }
    at_once, harmless, half = (
        named[name] for name in ("give back at once", "at once, and no step in flight", "one of two steps complete")
    )
    assert at_once.event.kind == harmless.event.kind == Kind.TAKES
    assert (at_once.error or 0) > 0.1 and harmless.error is None
    assert (half.event, half.steps) == ((Kind.COMPLETE, "2"), ("3",))
    assert half.states[SHARED_BLOCK] is State.WAITING


def test_the_lines_beside_the_first_figure_are_true() -> None:
    explorer = explore("reference-counts")
    explorer.widgets["event"].value = 10
    explorer.widgets["event"].value = 11
    assert explorer.line == "The story is over after event 10."
    explorer.move(**BOOK | {"in_flight": 0})
    explorer.widgets["rule"].value = Rule.AT_ONCE
    assert explorer.line == "No step is in flight when they end, so nothing can be given back too early."
    assert moments_of(**BOOK | {"in_flight": 0}) == moments_of(**BOOK | {"in_flight": 0, "rule": Rule.AT_ONCE})
    assert not explorer.settings["in_flight"] and str(explorer.readouts[-1]) == "none in flight so far"


def test_a_submitted_step_names_those_who_are_in_it() -> None:
    for event, requests in ((3, "A, B"), (6, "B")):
        told = [text.get_text() for text in visible_texts(COUNTS.figure(event=event))]
        assert any(text.endswith(f"is submitted, and reads the blocks of {requests}") for text in told)


@each_run
def test_the_record_stays_and_the_model_is_drawn_below(settings: dict[str, Any]) -> None:
    run, figure = cancel(**BOOK_CANCEL | settings), CANCEL.figure(**settings)
    axes, seen = figure.axes[0], recorded()
    marks = [line for line in axes.lines if line.get_marker() == "o"]
    assert [list(line.get_xdata()) for line in marks] == [[0, 1e3 * seen.returned_s, 1e3 * seen.freed_s]]
    end = axes.get_xlim()[1]
    assert end >= 1.1e3 * max(run.freed_s, seen.freed_s)
    for has_cancelled, look in ((True, "in flight"), (False, "holds")):
        spans = bars_of(figure, look)
        expected = [(s.start_ns / 1e6, s.end_ns / 1e6) for s in run.steps if s.has_cancelled is has_cancelled]
        assert spans[: len(expected)] == pytest.approx(np.array(expected))
        assert has_cancelled or spans[-1][1] >= end
    (waiting,) = bars_of(figure, State.HELD.name)
    assert waiting == pytest.approx((1e3 * run.admitted_s, end))


def bars_of(figure: Figure, look: str) -> list[tuple[float, float]]:
    """Start and end of the bars of a look, in ms."""
    found = []
    for bars in figure.axes[0].collections:
        if isinstance(bars, PolyCollection) and tuple(bars.get_facecolor()[0]) == to_rgba(LOOKS[look]["facecolor"]):
            xs = [path.vertices[:, 0] for path in bars.get_paths()]
            found += [(float(x.min()), float(x.max())) for x in xs]
    return sorted(found)


@each_run
def test_blocks_are_stacked_as_the_pool_counted_them(settings: dict[str, Any]) -> None:
    run, figure = cancel(**BOOK_CANCEL | settings), CANCEL.figure(**settings)
    stairs = [patch for patch in figure.axes[0].patches if isinstance(patch, StepPatch)]
    each = BLOCKS_PT / recorded().free_after
    below = np.full(len(run.levels), AXIS_PT)
    for patch, look, counts in zip(
        stairs,
        (State.IDLE, State.WAITING, State.HELD),
        zip(*((level.free, level.waiting, level.held) for level in run.levels), strict=True),
        strict=True,
    ):
        values, edges, baseline = patch.get_data()
        assert has_look(patch, look.name)
        assert list(edges[1:-1]) == [level.start_ns / 1e6 for level in run.levels[1:]]
        assert baseline == pytest.approx(below)
        assert (values - below) / each == pytest.approx(np.array(counts))
        below = values
    told = [text.get_text() for text in visible_texts(figure)]
    assert {"35", "139", "returns after 1.55 ms", "104 blocks free after 31.41 ms"} <= set(told)
    needed = (BOOK_CANCEL | settings)["needs_blocks"]
    when = f"at {shown(run.admitted_s, 'ms', 1)}" if needed > recorded().free_before else "at once"
    assert f"gets {needed} blocks {when}" in told
    ends_early = run.steps[0].end_ns < recorded().returned_s * 1e9
    assert ("a step ends before the return, so one more has r3" in told) == ends_early


@pytest.mark.parametrize("phase", range(0, 101, 5))
@pytest.mark.parametrize("in_flight", [1, 2])
def test_one_more_step_has_the_cancelled_request_just_where_the_picture_says_so(phase: int, in_flight: int) -> None:
    settings = {"phase_percent": phase, "in_flight": in_flight}
    told = [text.get_text() for text in visible_texts(CANCEL.figure(**settings))]
    with_request = sum(step.has_cancelled for step in cancel(**BOOK_CANCEL | settings).steps)
    assert ("a step ends before the return, so one more has r3" in told) == (with_request > in_flight)


@pytest.mark.parametrize("needed", [30, 35, 36, 100])
def test_a_request_is_drawn_as_waiting_only_if_it_waits(needed: int) -> None:
    lane = WAITING_PT + LANE_PT / 2
    lines = [line for line in CANCEL.figure(needs_blocks=needed).axes[0].lines if list(line.get_ydata()) == [lane] * 2]
    assert len(lines) == (needed > 35)
    gets = CANCEL.exploration.readouts(**BOOK_CANCEL | {"needs_blocks": needed})[4]
    assert (str(gets) == "at once") == (needed <= 35)


def test_the_readouts_of_a_cancellation_tell_record_from_model() -> None:
    told = [(readout.label, str(readout), readout.clock) for readout in explore("cancel-and-release").readouts]
    assert told == [
        ("the call returns (recorded)", "1.55 ms", "client"),
        ("104 blocks free (recorded, with an observer)", "31.41 ms", "client"),
        ("the same by the model", "30.00 ms", "assumed"),
        ("free blocks before and after", "35 → 139", ""),
        ("the other request gets its blocks", "30.00 ms", "assumed"),
        ("free blocks at the end", "39", ""),
    ]


def test_the_waiting_request_waits_for_both_steps() -> None:
    explorer = explore("cancel-and-release")
    assert explorer.question.choices == (
        "1.55 ms, when the call returns", "15 ms, when this step is complete", "45 ms, when the next one is, too",
    )  # fmt: skip
    assert explorer.question.answer == explorer.question.choices[2]
    assert "1.55 ms and 31 ms" in explorer.predict(explorer.question.answer)
    assert explorer.settings == BOOK_CANCEL | {"phase_percent": 50, "in_flight": 2}
    assert str(explorer.readouts[4]) == "45.00 ms"


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("figure", "settings"),
    [*((COUNTS, s) for s in STORIES), *((CANCEL, s) for s in RUNS)],
    ids=lambda part: getattr(part, "slug", None) or repr(part),
)
def test_no_text_is_hidden_or_cut_off(figure: Entry, settings: dict[str, Any], language: str) -> None:
    guard(figure.figure(language=language, **settings), figure.slug)


@pytest.mark.parametrize("figure", [COUNTS, CANCEL], ids=lambda known: known.slug)
def test_the_frame_keeps_its_size(figure: Entry) -> None:
    settings = STORIES if figure is COUNTS else RUNS
    assert len({tuple(figure.figure(**each).get_size_inches()) for each in settings}) == 1
