"""The explorer of drafts under load: curves, wall and circle are where `lib` has them, and what is said is true."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from figures import style
from figures.draft_loads import (
    BATCHES,
    CONTEXTS,
    MOST_BATCH,
    QUICK_HOST_S,
    Load,
    _book_load,
    _verdict_of,
    load_at,
)
from figures.exploration import book_values
from figures.explorer import explore
from figures.guard import guard, visible_texts
from figures.registry import entry
from figures.schedules import StepModel
from figures.words import LANGUAGES, words
from lib import speculation_by_batch
from lib.speculation import expected_outputs
from lib.speculation_by_batch import SHORT_CONTEXT
from lib.units import GIB

UNDER_LOAD = entry("speculation-under-load")
BOOK = book_values(UNDER_LOAD.draw, UNDER_LOAD.arguments)
QUICK = {"context": SHORT_CONTEXT, "host_s": QUICK_HOST_S}
SETTINGS: list[dict[str, Any]] = [
    {},
    {"context": SHORT_CONTEXT},
    QUICK,
    {"host_s": QUICK_HOST_S},
    {"context": 512, "draft_tokens": 15, "acceptance": 0.25, "host_s": 0.0},
    {"step_time": StepModel.FIT},
    {"acceptance": 0.0},
    {"acceptance": 1.0, "context": 256, "draft_tokens": 1},
    {"context": SHORT_CONTEXT, "pool_bytes": 48 * GIB},
    {"context": 16384, "pool_bytes": 4 * GIB},
]


def load(**settings: Any) -> Load:
    return load_at(**BOOK | settings)


def readouts(**settings: Any) -> dict[str, str]:
    return {one.label: str(one) for one in UNDER_LOAD.exploration.readouts(**BOOK | settings)}


def curves(figure: Figure) -> list[tuple[list[float], list[float]]]:
    """The batches and times of each curve: without drafts and with them, thin, and both again thick."""
    lines = [np.asarray(line.get_xydata()) for line in figure.axes[0].lines if len(np.asarray(line.get_xdata())) > 2]
    return [(each[:, 0].tolist(), each[:, 1].tolist()) for each in lines]


@pytest.mark.parametrize("settings", SETTINGS)
def test_each_curve_has_the_times_of_the_steps(settings: dict[str, Any]) -> None:
    here = load(**settings)
    by, outputs = here.decode, expected_outputs(here.decode.acceptance)
    plain, drafted = curves(UNDER_LOAD.figure(**settings))[:2]
    assert plain[0] == drafted[0] == list(BATCHES)
    assert plain[1] == pytest.approx([by.plain_ns(batch) / 1e6 for batch in BATCHES])
    assert drafted[1] == pytest.approx([by.round_ns(batch) / outputs / 1e6 for batch in BATCHES])


@pytest.mark.parametrize("settings", [each for each in SETTINGS if each.get("context") != 16384])
def test_curves_are_thick_as_far_as_the_pool_goes(settings: dict[str, Any]) -> None:
    here, (_, _, plain, drafted) = load(**settings), curves(UNDER_LOAD.figure(**settings))
    assert plain[0] == drafted[0] and plain[0][-1] == min(here.fit, MOST_BATCH)
    assert (plain[1][-1], drafted[1][-1]) == (here.plain_ms(int(plain[0][-1])), here.drafted_ms(int(plain[0][-1])))


@pytest.mark.parametrize("settings", SETTINGS)
def test_the_wall_stands_at_the_pool_and_the_circle_where_drafts_stop_paying(settings: dict[str, Any]) -> None:
    here, (axes,) = load(**settings), UNDER_LOAD.figure(**settings).axes
    walls = [np.asarray(line.get_xdata())[0] for line in axes.lines if line.get_color() == style.LIMIT]
    circles = [np.asarray(line.get_xydata())[0].tolist() for line in axes.lines if line.get_marker() == "o"]
    assert walls == ([here.fit] if here.fit <= MOST_BATCH else [])
    assert circles == ([[here.stops, here.plain_ms(here.stops)]] if here.stops else [])


@pytest.mark.parametrize("settings", SETTINGS)
def test_what_is_told_of_the_batch_at_which_they_stop(settings: dict[str, Any]) -> None:
    here, shown = load(**settings), readouts(**settings)
    pay = [here.drafted_ms(batch) < here.plain_ms(batch) for batch in range(1, MOST_BATCH + 1)]
    assert here.stops == (None if all(pay) else 1 + pay.index(False))
    assert not any(later and not earlier for earlier, later in pairwise(pay)), "they pay again"
    in_pool = pay[: here.fit]
    told = {True: "at every batch", False: f"up to batch {sum(in_pool)}"}[all(in_pool)]
    assert shown["in the pool drafts pay"] == (told if any(in_pool) else "at no batch")
    verdict = words("en", "speculation-under-load")[_verdict_of(here)].format(stops=here.stops, fit=here.fit)
    assert verdict in {text.get_text() for text in visible_texts(UNDER_LOAD.figure(**settings))}
    assert ("only" in verdict) == (here.stops is not None and here.stops > here.fit)


def test_at_the_chapters_constants_they_never_stop() -> None:
    shown = readouts()
    assert (shown["drafts stop paying from batch"], shown["requests that fit the pool"]) == ("none to 512", "10")
    assert (shown["outputs of a round"], shown["pay at any batch from context"]) == ("3.05", "641")
    assert shown["an output, one request: plain"] == "26.00 ms"
    assert shown["drafts / plain, pool full"] == f"{1 / expected_outputs((0.75,) * 4):.3f}"


def test_at_short_contexts_they_do() -> None:
    assert readouts(context=SHORT_CONTEXT)["drafts stop paying from batch"] == "327"
    assert readouts(context=SHORT_CONTEXT)["in the pool drafts pay"] == "at every batch"
    assert readouts(**QUICK)["drafts stop paying from batch"] == "206"
    assert readouts(**QUICK)["in the pool drafts pay"] == "up to batch 205"
    assert readouts(acceptance=0.0)["in the pool drafts pay"] == "at no batch"


@pytest.mark.parametrize("context", CONTEXTS)
def test_from_the_context_that_is_told_they_pay_at_any_batch(context: int) -> None:
    here = load(context=context)
    assert here.always_from == load().always_from
    assert here.always_from is not None
    assert (here.decode.time_ratio(speculation_by_batch.MOST_BATCH) < 1) == (context >= here.always_from)
    assert load(context=context, step_time=StepModel.FIT).always_from is None


def test_the_question_is_answered_by_four_loads() -> None:
    question = UNDER_LOAD.exploration.question()
    assert question.answer == "only both together"
    one_by_one = [{key: value} for key, value in question.reveals.items()]
    assert [load(**each).stops_in_pool for each in [{}, *one_by_one, dict(question.reveals)]] == [False] * 3 + [True]
    assert _book_load() == load()
    for number in (227, 327, 641, 206):
        assert f" {number}" in question.because


@pytest.mark.parametrize(("start", "name", "there", "line"), [
    ({"step_time": StepModel.FIT}, "host_s", 10.0, "The fit has a fixed part of its own and knows no host."),
    ({"host_s": 0.0}, "host_s", 1.0, "The device takes longer than the host at every batch: the host costs nothing."),
    ({"acceptance": 0.0, "context": 16384}, "draft_tokens", 5,
     "A token so late in a draft is never accepted, or hardly, and to verify it takes no longer."),
])  # fmt: skip
def test_why_nothing_moves(start: dict[str, Any], name: str, there: Any, line: str) -> None:
    explorer = explore("speculation-under-load", **start)
    explorer.widgets[name].value = there
    assert explorer.line == line


def test_what_makes_no_sense_is_one_sentence() -> None:
    assert explore("speculation-under-load", context=100).sentence.startswith("Nothing to draw: context is 100; ")
    assert "KV of one request at its end" in explore("speculation-under-load", pool_bytes=GIB // 4).sentence


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("settings", SETTINGS)
def test_no_fault_elsewhere(settings: dict[str, Any], language: str) -> None:
    guard(UNDER_LOAD.figure(language=language, **settings), UNDER_LOAD.slug, UNDER_LOAD.may_overlap)
