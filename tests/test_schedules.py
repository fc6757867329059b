"""The pictures of four requests show what the schedule is, and the lines beside them are true."""

from itertools import pairwise
from typing import Any

import pytest
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from figures import schedules, style
from figures.explorer import explore
from figures.guard import guard
from figures.registry import entry
from figures.schedules import MOST_BANDS, StepModel, in_ms, place_of, schedule_at
from figures.words import LANGUAGES
from lib import four_requests as example
from lib.bill import Account, bill
from lib.checks import InputError
from lib.fast_forward import simulate
from lib.four_requests import Batching, four_requests, policy_of
from lib.schedule import Schedule
from lib.scheduling import Order
from lib.units import shown

FAMILY = {
    "fixed-batch": Batching.FIXED,
    "continuous-batching": Batching.CONTINUOUS,
    "chunked-prefill": Batching.CHUNKED,
}
ELSEWHERE = (
    {},
    {"max_running": 3, "wait_to_fill": 0.02},
    {"chunk": 640, "token_budget": 768, "order": Order.PROMPTS_FIRST},
    {"r2_arrival": 0.2, "r3_arrival": 0.1, "r2_prompt": 512},
    {"step_time": StepModel.LAUNCH_BOUND, "host_time": 0.03},
    {"chunk": 128, "token_budget": 256, "r2_prompt": 16384},
)
Bands = list[tuple[float, float]]  # start and end, ms


def shown_at(slug: str, **settings: Any) -> Schedule:
    return schedule_at(**explore(slug).book | settings)


def bands(figure: Figure, colour: str) -> dict[float, Bands]:
    """Start and end of the patches of a colour, by the height at which they begin."""
    found: dict[float, Bands] = {}
    for patches in figure.axes[0].collections:
        if isinstance(patches, PolyCollection) and to_hex(patches.get_facecolor()[0]) == colour:
            for path in patches.get_paths():
                (left, bottom), (right, _) = path.vertices.min(axis=0), path.vertices.max(axis=0)
                found.setdefault(float(bottom), []).append((to_the_ns(left), to_the_ns(right)))
    return found


def to_the_ns(time_ms: float) -> float:
    return round(float(time_ms), 6)


def joined(spans: Bands) -> Bands:
    found: Bands = []
    for start, end in sorted(spans):
        if found and found[-1][1] == start:
            start = found.pop()[0]
        found.append((start, end))
    return found


@pytest.mark.parametrize("settings", ELSEWHERE, ids=repr)
@pytest.mark.parametrize("slug", FAMILY)
def test_each_band_is_a_step_in_which_the_request_was_computed(slug: str, settings: dict[str, Any]) -> None:
    schedule = shown_at(slug, **settings)
    figure = entry(slug).figure(**settings)
    steps = list(schedule.steps())
    for role in ("prefill", "decode"):
        drawn = bands(figure, style.FILL[role])
        # r0 is the highest lane
        for name, (_, spans) in zip(example.NAMES, sorted(drawn.items(), reverse=True), strict=True):
            place = place_of(schedule, name)
            parts = [step for step in steps if any(part.place == place for part in getattr(step, of_role(role)))]
            expected = [(in_ms(step.start_ns), in_ms(step.end_ns)) for step in parts]
            if schedule.step_count <= MOST_BANDS:
                assert sorted(spans) == expected
            assert joined(spans) == joined(expected)


def of_role(role: str) -> str:
    return {"prefill": "prompts", "decode": "decodes"}[role]


@pytest.mark.parametrize("slug", FAMILY)
def test_idle_rows_are_drawn_under_the_steps_that_leave_them(slug: str) -> None:
    schedule = shown_at(slug)
    drawn = [span for spans in bands(entry(slug).figure(), style.PAPER).values() for span in spans]
    expected = [
        (in_ms(step.start_ns), in_ms(step.end_ns)) for step in schedule.steps() if len(step.parts) < schedule.rows
    ]
    assert sorted(drawn) == expected
    assert len(drawn) == schedule.idle_rows, "one idle row in each, in the book's runs"


@pytest.mark.parametrize("settings", ELSEWHERE, ids=repr)
@pytest.mark.parametrize("slug", FAMILY)
def test_the_bracket_spans_the_longest_interval(slug: str, settings: dict[str, Any]) -> None:
    schedule = shown_at(slug, **settings)
    interval = schedule.longest_interval()
    assert interval
    (bracket,) = [line for line in entry(slug).figure(**settings).axes[0].lines if len(line.get_xdata()) == 4]
    outputs = schedule.output_times_ns(interval.place)
    earlier, later = outputs[interval.output - 1], outputs[interval.output]
    assert list(bracket.get_xdata()) == [in_ms(earlier)] * 2 + [in_ms(later)] * 2
    assert later - earlier == max(b - a for at in range(4) for a, b in pairwise(schedule.output_times_ns(at)))


def test_the_three_have_the_same_axis_of_time() -> None:
    assert {entry(slug).figure().axes[0].get_xlim() for slug in FAMILY} == {(0, 900)}
    for settings in ELSEWHERE:
        assert entry("chunked-prefill").figure(**settings).axes[0].get_xlim()[1] >= in_ms(
            shown_at("chunked-prefill", **settings).total_ns
        )


def test_a_reader_can_go_from_one_policy_to_another() -> None:
    explorer = explore("fixed-batch")
    for slug, policy in FAMILY.items():
        explorer.move(policy=policy)
        there = explore(slug).readouts[: len(explorer.readouts)]
        assert list(map(str, explorer.readouts)) == list(map(str, there))


def test_the_readouts_are_those_of_the_chapter() -> None:
    said = {slug: list(map(str, explore(slug).readouts)) for slug in FAMILY}
    assert said["fixed-batch"][:2] == ["870 ms", "772 ms"]
    assert said["fixed-batch"][5] == "8 of 24"
    assert said["continuous-batching"][:2] == ["766 ms", "546 ms"]
    assert said["continuous-batching"][4] == "r0, because of r2"
    assert said["chunked-prefill"][:2] == ["844 ms", "624 ms"]
    assert said["chunked-prefill"][6] == "11"


@pytest.mark.parametrize(
    ("slug", "start", "moved", "word"),
    [
        ("fixed-batch", {}, {"chunk": 1024}, "Only chunked prefill"),
        ("continuous-batching", {}, {"token_budget": 1024}, "Only chunked prefill"),
        ("fixed-batch", {}, {"wait_to_fill": 0.1}, "as soon as the rows are full"),
        ("continuous-batching", {}, {"wait_to_fill": 0.1}, "Only a fixed batch"),
        ("fixed-batch", {}, {"host_time": 0.01}, "in its fixed term"),
        ("fixed-batch", {"step_time": StepModel.LAUNCH_BOUND}, {"fixed_term": 0.0}, "no fixed term"),
        ("fixed-batch", {"step_time": StepModel.LAUNCH_BOUND, "host_time": 0.002}, {"host_time": 0.0}, "In no step"),
        ("chunked-prefill", {}, {"token_budget": 4224}, "limit it first"),
        ("chunked-prefill", {"token_budget": 256}, {"chunk": 1024}, "before the chunk does"),
        ("chunked-prefill", {}, {"order": Order.PROMPTS_FIRST}, "compete for the budget"),
        ("chunked-prefill", {"token_budget": 512}, {"order": Order.BY_ADMISSION}, "cut only where"),
        ("the-bill", {}, {"chunk": 1024}, "Only chunked prefill"),
        ("the-bill", {"policy": Batching.CHUNKED, "chunk": 8064}, {"chunk": 8192}, "cut differently"),
    ],
)
def test_a_move_that_changes_nothing_says_why(
    slug: str, start: dict[str, Any], moved: dict[str, Any], word: str
) -> None:
    explorer = explore(slug, **start)
    before = explorer.png
    ((name, value),) = moved.items()
    control = explorer.controls[name]
    explorer.widgets[name].value = control.to_position(value) if hasattr(control, "to_position") else value
    assert explorer.png == before
    assert word in explorer.line


@pytest.mark.parametrize("max_running", [1, 2, 3, 4])
@pytest.mark.parametrize("token_budget", [256, 512, 2048])
@pytest.mark.parametrize("chunk", [128, 1024, 8192])
def test_in_order_of_admission_is_decodes_first(max_running: int, token_budget: int, chunk: int) -> None:
    first, admitted = (
        simulate(four_requests(), policy_of(Batching.CHUNKED, max_running, 0, chunk, token_budget, order))
        for order in (Order.DECODES_FIRST, Order.BY_ADMISSION)
    )
    assert list(first.steps()) == list(admitted.steps())


@pytest.mark.parametrize("name", ["r2_arrival", "r3_arrival", "wait_to_fill", "fixed_term", "host_time"])
def test_a_time_of_more_than_an_hour_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=rf"^{name} is 3601; allowed: a time from 0 s to 3600 s$"):
        entry("fixed-batch").figure(**{name: 3601})


def test_a_budget_below_the_rows_is_told_with_its_control() -> None:
    explorer = explore("chunked-prefill", token_budget=1)
    assert explorer.sentence.startswith("Nothing to draw: token_budget is 1; allowed: at least max_running, 2")
    assert explorer.sentence.endswith('(the control "token budget").')


def test_many_steps_are_drawn_as_few_bands() -> None:
    figure = entry("chunked-prefill").figure(chunk=4, token_budget=8)
    assert shown_at("chunked-prefill", chunk=4, token_budget=8).step_count > 1000
    for role in ("prefill", "decode"):
        assert sum(map(len, bands(figure, style.FILL[role]).values())) < 20


@pytest.mark.parametrize("max_running", [1, 2, 4])
@pytest.mark.parametrize("policy", Batching)
def test_the_parts_of_each_bar_are_the_bill(policy: Batching, max_running: int) -> None:
    schedule = simulate(four_requests(), policy_of(policy, max_running))
    figure = entry("the-bill").figure(policy=policy, max_running=max_running)
    patches = [patch for patch in figure.axes[0].collections if isinstance(patch, PolyCollection)]
    for line, name in enumerate(example.NAMES):
        paid = bill(schedule, place_of(schedule, name))
        centre = (line + 0.5) * 24
        spans = [path.vertices for patch in patches for path in patch.get_paths() if spans_over(path, centre)]
        lengths = [float(span[:, 0].max() - span[:, 0].min()) for span in spans]
        assert sorted(lengths) == pytest.approx(sorted(in_ms(ns) for ns in paid.booked_ns.values() if ns))
        assert max(float(span[:, 0].max()) for span in spans) == pytest.approx(in_ms(paid.total_ns))


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("chunk", [128, 256, 384, 512, 768])
def test_the_length_of_the_longest_bar_has_room(chunk: int, language: str) -> None:
    drawn = entry("the-bill").figure(policy=Batching.CHUNKED, chunk=chunk, max_running=4, language=language)
    guard(drawn, f"the-bill, chunk {chunk}")


def spans_over(path: Any, height: float) -> bool:
    heights = path.vertices[:, 1]
    return bool(heights.min() < height < heights.max())


@pytest.mark.parametrize("request_name", example.NAMES)
@pytest.mark.parametrize("policy", Batching)
def test_the_items_of_a_bill_are_read_out_and_sum_to_the_time(policy: Batching, request_name: str) -> None:
    schedule = simulate(four_requests(), policy_of(policy))
    place = place_of(schedule, request_name)
    readouts = {one.label: one for one in explore("the-bill", policy=policy, request=request_name).readouts}
    items = [*(account.value for account in Account), "prompts of others"]
    time = int(schedule.finish_ns[place] - schedule.arrival_ns[place])
    assert sum(round(readouts[item].amount * 1e9) for item in items) == time
    assert str(readouts["sum, to the nanosecond"]) == f"{time:,} ns"


def test_the_prompt_of_r2_costs_r0_350_ms_of_766() -> None:
    explorer = explore("the-bill")
    assert "it is 350 ms" in explorer.predict("376 ms")
    explorer.move(**explorer.book)
    said = {one.label: str(one) for one in explorer.readouts}
    assert said["the dearest of these"] == "349.7 ms"
    assert said["which is that of"] == "r2"
    assert said["sum, to the nanosecond"] == "765,590,636 ns"


def test_clocks_follow_the_model_of_step_times() -> None:
    by_fit, by_device = explore("fixed-batch"), explore("fixed-batch", step_time=StepModel.LAUNCH_BOUND)
    assert by_fit.readouts[0].clock == "fit"
    assert by_device.readouts[0].clock == "FLOP rule + assumed"
    assert shown(schedules.schedule_at(**by_device.settings).total_ns / 1e9, "ms") == str(by_device.readouts[0])
