"""What the figures of section 8.2 compute beside what `lib` gives them, and where they put their labels."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from figures import chunks, curves, lines, steps, style
from figures.chunks import HOST_S, RECORDED_CHUNK, RECORDED_PROMPT, chunks_of, free_tokens
from figures.exploration import Slider
from figures.explorer import explore
from figures.guard import guard
from figures.registry import entry
from figures.steps import CAPTURED_AS, Shapes, interval_of, rows_of
from figures.words import LANGUAGES
from lib import model, step_time
from lib.checks import InputError
from lib.shapes import padded_rows
from lib.step_time import FIT, NS, StepTime, step_plan
from lib.units import GIB, MIB


@pytest.mark.parametrize("value", [0.0199, 0.02, 0.3, 1, 1.01, 14.38, 99, 100, 7500])
def test_round_ends_lie_around_a_value_and_near_it(value: float) -> None:
    assert value / 2.5 < lines.round_below(value) <= value * 1.0001
    assert value * 0.9999 <= lines.round_above(value, lines.FINER) <= lines.round_above(value) < value * 2.5


def test_labels_are_raised_no_further_than_needed() -> None:
    assert lines.spread([10, 50, 90], 13) == [10, 50, 90]
    assert lines.spread([50, 50, 40], 13) == [53, 66, 40]
    placed = lines.spread([3, 1, 2, 2], 5)
    assert all(higher - lower >= 5 for lower, higher in pairwise(sorted(placed)))


def test_crossings_and_walls_of_the_book() -> None:
    short, long = curves.two_kinds(16, 2048, 8192, 12 * GIB, "BF16", "Qwen3-8B")
    assert (short.crossing, long.crossing) == (51, 13)
    assert (short.fit, long.fit) == (37, 10)
    assert short.compute_bound is long.compute_bound is None
    brief, _ = curves.two_kinds(16, 128, 8192, 12 * GIB, "BF16", "Qwen3-8B")
    assert brief.compute_bound == 430


def test_a_smaller_format_of_kv_moves_crossing_and_wall_alike() -> None:
    full, _ = curves.two_kinds(16, 2048, 8192, 12 * GIB, "BF16", "Qwen3-8B")
    small, _ = curves.two_kinds(16, 2048, 8192, 12 * GIB, "q4_0", "Qwen3-8B")
    assert small.kv_gib == full.kv_gib * 18 / 64
    assert small.crossing > 3 * full.crossing
    assert small.fit > 3 * full.fit


def test_the_models_offered_are_those_that_the_device_model_takes() -> None:
    for name in model.PRESETS:
        if name in curves.MODELS:
            assert step_time.device(model.preset(name)).weight_bytes
        else:
            with pytest.raises(InputError):
                step_time.device(model.preset(name))


def test_chunks_cover_the_prompt() -> None:
    cut = chunks_of(2048, 7168, HOST_S)
    assert cut.segments == ((2048, 0), (2048, 2048), (2048, 4096), (1024, 6144))
    assert cut.edges == [0, 2048, 4096, 6144, 7168]


def test_a_record_stands_beside_its_own_cut_only() -> None:
    recorded = chunks_of(RECORDED_CHUNK, RECORDED_PROMPT, HOST_S)
    assert (RECORDED_CHUNK, RECORDED_PROMPT) == (512, 8192)
    assert sum(recorded.recorded_s) == pytest.approx(0.481, abs=5e-4)
    assert [round(1e3 * sum(recorded.times_s(each))) for each in recorded.models.values()] == [769, 426, 437]
    assert not chunks_of(512, 7168, HOST_S).recorded_s
    assert not chunks_of(256, 8192, HOST_S).recorded_s


def test_bars_of_flop_are_the_whole_flop_of_the_record() -> None:
    cut = chunks_of(RECORDED_CHUNK, RECORDED_PROMPT, HOST_S)
    per_pair = chunks.DEVICE.flop_per_pair
    assert cut.flop == [
        lower + per_pair * pairs for lower, pairs in zip(cut.flop_without_attention, cut.pairs, strict=True)
    ]


def test_what_the_device_has_time_for_while_the_host_submits() -> None:
    assert free_tokens(0) == free_tokens(1_000_000) == 0
    taken = free_tokens(round(HOST_S * NS))
    assert chunks.DEVICE(step_plan((1, 2048), (taken, 0))) <= 26_000_000
    assert chunks.DEVICE(step_plan((1, 2048), (taken + 1, 0))) > 26_000_000


@pytest.mark.parametrize("shapes", Shapes)
@pytest.mark.parametrize("residents", [0, 1, 5, 64])
@pytest.mark.parametrize("context", [0, 7680])
def test_one_token_more_would_break_the_interval(shapes: Shapes, residents: int, context: int) -> None:
    allowed = interval_of(0.05, residents, context, shapes, 2048, HOST_S)
    captured = CAPTURED_AS[shapes]

    def takes_ns(by: StepTime, tokens: int) -> int:
        plan = step_plan(*[(1, 2048)] * residents, (tokens, context))
        return by(plan._replace(new_tokens=padded_rows(plan.new_tokens, captured)))

    for by in (FIT, allowed.launch_bound):
        tokens = allowed.tokens(by, context)
        assert takes_ns(by, tokens) == round((allowed.step_s(by, context) or 0) * NS) <= 50_000_000
        assert takes_ns(by, tokens + 1) > 50_000_000


BUDGET_MOVES = {
    "interval": (0.02, 0.025, 0.03, 0.05, 0.055),
    "residents": (0, 1, 4, 5, 6),
    "shapes": tuple(Shapes),
    "resident_context": (0, 512, 2048),
    "host_s": (0.0, 0.019, 0.02, 0.021, 0.026, 0.027),
}


def takes_at_most(allowed: steps.Interval, by: StepTime) -> list[int]:
    """Rows executed in the step with as many tokens as fit, at each context drawn; 0 where none fits."""
    tokens = [allowed.tokens(by, context) for context in steps.CONTEXTS]
    return [padded_rows(each + allowed.residents.new_tokens, allowed.captured) if each else 0 for each in tokens]


def what_is_shown(**settings: Any) -> list[object]:
    """The read-outs of the budget and the tokens on its curves."""
    allowed = interval_of(**settings)
    tokens = [allowed.tokens(by, context) for by in (FIT, allowed.launch_bound) for context in steps.CONTEXTS]
    return [*map(str, entry("interval-to-budget").exploration.readouts(**settings)), *tokens]


@pytest.mark.parametrize("moved", BUDGET_MOVES)
@pytest.mark.parametrize("shapes", Shapes)
@pytest.mark.parametrize(
    ("interval", "residents", "resident_context"),
    [(0.02, 1, 2048), (0.025, 5, 2048), (0.05, 1, 2048), (0.05, 0, 0), (0.03, 64, 16384), (0.2, 1, 2048)],
)
def test_what_is_said_where_a_move_costs_no_token(
    interval: float, residents: int, resident_context: int, shapes: Shapes, moved: str
) -> None:
    at = {
        "interval": interval, "residents": residents, "context": 0, "shapes": shapes,
        "resident_context": resident_context, "host_s": HOST_S,
    }  # fmt: skip
    for value in BUDGET_MOVES[moved]:
        now = at | {moved: value}
        if value == at[moved] or what_is_shown(**now) != what_is_shown(**at):
            continue
        line = entry("interval-to-budget").exploration.why_still(moved, now)
        for settings in (at, now):
            allowed = interval_of(**settings)
            by_fit, by_both = (takes_at_most(allowed, by) for by in (FIT, allowed.launch_bound))
            if "The host alone" in line:
                assert allowed.launch_bound.host_ns > allowed.allowed_ns or not any(by_both)
            elif "The device alone" in line:
                assert not any(takes_at_most(allowed, chunks.DEVICE))
            elif "The host is done" in line:
                assert takes_at_most(allowed, chunks.DEVICE) == by_both != [0] * len(by_both)
            elif "Not one" in line:
                assert not any(by_fit + by_both)
            elif "captured in neither case" in line:
                assert min(by_fit + by_both) > 1024
            elif "same shape" in line:
                before = interval_of(**at)
                assert [by_fit, by_both] == [takes_at_most(before, by) for by in (FIT, before.launch_bound)]
                assert any(by_fit + by_both)


@pytest.mark.parametrize(
    ("start", "moved", "word"),
    [
        ({"interval": 0.02}, {"host_s": 0.027}, "The host alone takes longer"),
        ({"interval": 0.03, "residents": 64, "resident_context": 16384}, {"host_s": 0.027}, "The device alone"),
        ({}, {"host_s": 0.027}, "The host is done within the interval"),
        ({"interval": 0.02, "shapes": Shapes.POWERS}, {"residents": 5}, "Not one new token"),
        ({"interval": 0.02}, {"shapes": Shapes.POWERS}, "Not one new token"),
        ({"interval": 0.2}, {"shapes": Shapes.THREE}, "captured in neither case"),
        ({"interval": 0.085, "shapes": Shapes.POWERS}, {"resident_context": 2560}, "in the same shape as before"),
        ({"residents": 0}, {"resident_context": 512}, "No request is in decode"),
    ],
)
def test_a_move_that_costs_no_token_says_why(start: dict[str, Any], moved: dict[str, Any], word: str) -> None:
    explorer = explore("interval-to-budget", **start)
    before = explorer.png
    ((name, value),) = moved.items()
    control = explorer.controls[name]
    explorer.widgets[name].value = control.to_position(value) if isinstance(control, Slider) else value
    assert explorer.png == before
    assert word in explorer.line


@pytest.mark.parametrize("interval", [0.02, 0.05, 0.1, 0.4])
@pytest.mark.parametrize("shapes", Shapes)
def test_the_curves_of_an_interval_claim_no_more_than_fits(shapes: Shapes, interval: float) -> None:
    allowed = interval_of(interval, 1, 0, shapes, 2048, HOST_S)
    axes = entry("interval-to-budget").figure(interval=interval, shapes=shapes).axes[0]
    curves_drawn = [line for line in axes.lines if len(line.get_xdata()) >= len(steps.CONTEXTS)]
    for by, line in zip((FIT, allowed.launch_bound), curves_drawn, strict=True):
        for context in range(0, steps.CONTEXTS[-1] + 1, 190):
            drawn = np.interp(context, line.get_xdata(), line.get_ydata())
            assert drawn == pytest.approx(allowed.tokens(by, context), rel=0.02, abs=1)


def test_a_prompt_takes_as_many_steps_as_its_chunks() -> None:
    allowed = interval_of(0.05, 1, 0, Shapes.ANY, 2048, HOST_S)
    done = count = 0
    while done < steps.PROMPT:
        done, count = done + allowed.tokens(FIT, done), count + 1
    assert allowed.steps_of_prompt(FIT) == count == 15
    assert interval_of(0.02, 1, 0, Shapes.ANY, 2048, HOST_S).steps_of_prompt(FIT) is None


def test_the_price_of_a_further_graph() -> None:
    with_it = rows_of(17, 17, 0.5, 32 * MIB)
    assert with_it.executed == 17
    assert rows_of(17, 0, 0.5, 32 * MIB).executed == 32
    assert with_it.graph
    assert with_it.graph.saved_s_per_step == pytest.approx(15 * 30.4e-6)
    assert with_it.graph.steps_to_repay == 1097
    assert rows_of(17, 0, 0.5, 32 * MIB).graph is rows_of(17, 16, 0.5, 32 * MIB).graph is None


@pytest.mark.parametrize(
    ("slug", "name", "value", "allowed"),
    [
        ("chunk-times", "host_s", 3601, "a time from 0 s to 3600 s"),
        ("interval-to-budget", "host_s", 1e9, "a time from 0 s to 3600 s"),
        ("interval-to-budget", "interval", 1.01, "a time from above 0 s to 1 s"),
        ("interval-to-budget", "interval", 0, "a time from above 0 s to 1 s"),
        ("interval-to-budget", "context", 16385, "a whole number from 0 to 16,384"),
        ("padded-rows", "rows", 41, "a whole number from 1 to 40"),
        ("padded-rows", "further_rows", 41, "a whole number from 0 to 40"),
        ("pairs-first-chunk", "new_tokens", 33, "a whole number from 1 to 32"),
        ("pairs-behind-context", "context", 65, "a whole number from 0 to 64"),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_its_bound(slug: str, name: str, value: Any, allowed: str) -> None:
    with pytest.raises(InputError) as refused:
        entry(slug).figure(**{name: value})
    assert str(refused.value) == f"{name} is {value}; allowed: {allowed}"


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("slug", "settings"),
    [
        ("interval-to-budget", {"interval": 1, "context": 16384}),
        ("padded-rows", {"rows": 40, "further_rows": 40}),
        ("pairs-first-chunk", {"new_tokens": 32}),
        ("pairs-behind-context", {"new_tokens": 32, "context": 64}),
    ],
)
def test_what_is_just_allowed_can_be_printed(slug: str, settings: dict[str, Any], language: str) -> None:
    guard(entry(slug).figure(**settings, language=language), slug)


@pytest.mark.parametrize("pool_bytes", [4 * GIB, 12 * GIB, 48 * GIB])
@pytest.mark.parametrize("context", [512, 2048, 32768])
def test_the_key_names_the_marks_that_are_drawn(context: int, pool_bytes: int) -> None:
    figure = entry("reads-per-output").figure(context=context, other_context=context, pool_bytes=pool_bytes)
    both = curves.two_kinds(16, context, context, pool_bytes, "BF16", "Qwen3-8B")
    keys = [text.get_text() for text in figure.texts if "pool full" in text.get_text()]
    for mark, word, place in (("o", "(circle)", both[0].crossing), ("|", "(bar)", both[0].fit)):
        hollow = [line for line in figure.axes[0].lines if line.get_marker() == mark and line.get_color() != style.INK]
        assert [line.get_xdata()[0] for line in hollow] == [place] * sum(word in key for key in keys)
        assert len(hollow) == 2 * (1 <= place < 128)


@pytest.mark.parametrize("slug", ["reads-per-output", "separate-weight-store"])
def test_the_name_of_batch_1_stands_right_of_the_axis(slug: str) -> None:
    figure = entry(slug).figure(batch=1)
    (name,) = [text for text in figure.axes[0].texts if text.get_text() == "batch 1"]
    figure.canvas.draw()
    assert name.get_window_extent().x0 >= figure.axes[0].get_window_extent().x0
