"""The pictures of four requests show what the schedule is, and the lines beside them are true."""

from collections.abc import Iterator
from itertools import pairwise, permutations, product
from typing import Any

import pytest
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from figures import schedules, style
from figures.exploration import book_values
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
from lib.schedule import Part, Schedule, Step
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
    return schedule_at(**book_of(slug) | settings)


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
    assert said["continuous-batching"][4] == "r0 (r2)"
    assert said["chunked-prefill"][:2] == ["844 ms", "624 ms"]
    assert said["chunked-prefill"][6] == "11"


@pytest.mark.parametrize(
    ("slug", "start", "moved", "word"),
    [
        ("fixed-batch", {}, {"chunk": 1024}, "Only chunked prefill"),
        ("continuous-batching", {}, {"token_budget": 1024}, "Only chunked prefill"),
        ("fixed-batch", {}, {"wait_to_fill": 0.1}, "all rows filled"),
        ("continuous-batching", {}, {"wait_to_fill": 0.1}, "Only a fixed batch"),
        ("fixed-batch", {}, {"host_time": 0.01}, "in its fixed term"),
        ("fixed-batch", {"step_time": StepModel.LAUNCH_BOUND}, {"fixed_term": 0.0}, "no fixed term"),
        ("fixed-batch", {"step_time": StepModel.LAUNCH_BOUND, "host_time": 0.002}, {"host_time": 0.0}, "In no step"),
        ("chunked-prefill", {}, {"token_budget": 4224}, "limit it first"),
        ("chunked-prefill", {"token_budget": 256}, {"chunk": 1024}, "before the chunk does"),
        ("chunked-prefill", {}, {"order": Order.PROMPTS_FIRST}, "compete for the budget"),
        ("chunked-prefill", {"token_budget": 512}, {"order": Order.BY_ADMISSION}, "budget cuts"),
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


def still(moved: str, moves: Any, slug: str, **settings: Any) -> Iterator[tuple[str, Schedule]]:
    """What is said of those moves of a control, from one value to another, that leave the schedule as it is."""
    for before, after in moves:
        was, now = (shown_at(slug, **settings, **{moved: value}) for value in (before, after))
        if was.stretches == now.stretches:
            here = book_of(slug) | settings | {moved: after}
            yield entry(slug).exploration.why_still(moved, here), now


def book_of(slug: str) -> dict[str, Any]:
    return book_values(entry(slug).draw, entry(slug).arguments)


def both_ways(*values: Any) -> list[tuple[Any, Any]]:
    return [pair for one in pairwise(values) for pair in (one, one[::-1])]


@pytest.mark.parametrize("r2_arrival", [0.0, 0.02, 0.1, 0.2])
@pytest.mark.parametrize("max_running", [1, 2, 3, 4])
def test_what_is_said_of_a_wait_that_is_not_used(max_running: int, r2_arrival: float) -> None:
    waits = both_ways(0.0, 0.01, 0.02, 0.04, 0.1, 0.2)
    for r3_arrival in (0.0, 0.03, 0.1, 0.4):
        settings = {"max_running": max_running, "r2_arrival": r2_arrival, "r3_arrival": r3_arrival}
        for line, run in still("wait_to_fill", waits, "fixed-batch", **settings):
            assert ("all rows filled" in line) == all(len(group) == max_running for group in groups_of(run))
            for group in groups_of(run):
                if len(group) < max_running:
                    assert " with ".join(run.requests[place].name for place in group) in line
                    ended = [time for place, time in enumerate(run.finish_ns) if place < group[0]]
                    assert run.started_ns[group[0]] == max(ended)


def groups_of(schedule: Schedule) -> list[list[int]]:
    """The requests, by their places, that started together."""
    return [
        [place for place, start in enumerate(schedule.started_step) if start == step]
        for step in sorted(set(schedule.started_step))
    ]


FOUR_LOADS = ({}, {"r2_prompt": 16384}, {"r0_outputs": 1, "r3_arrival": 0.0}, {"r1_outputs": 9, "r2_arrival": 0.0})
each_limit = pytest.mark.parametrize(
    ("chunk", "token_budget"), list(product((128, 1024, 2048, 8192), (256, 1152, 2048, 3072, 8192)))
)


def budget_cuts(step: Step, schedule: Schedule, chunk: int, token_budget: int) -> list[Part]:
    """The parts of prompts that the budget alone made shorter."""
    if sum(part.new_tokens for part in step.parts) < token_budget:
        return []
    prompts = [(part, schedule.requests[part.place].prompt - part.context) for part in step.prompts]
    return [part for part, left in prompts if part.new_tokens < min(chunk, left)]


@each_limit
def test_what_is_said_of_an_order_that_makes_no_difference(chunk: int, token_budget: int) -> None:
    for load, max_running in product(FOUR_LOADS, (1, 3)):
        settings = {"chunk": chunk, "token_budget": token_budget, "max_running": max_running, **load}
        for line, run in still("order", permutations(Order, 2), "chunked-prefill", **settings):
            steps = list(run.steps())
            cut = [(step, part) for step in steps for part in budget_cuts(step, run, chunk, token_budget)]
            if "compete" in line:
                assert not [step for step, _ in cut if step.decodes]
            else:
                assert "In order of admission gives the same schedule as decodes first" in line
                assert all(decode.place < part.place for step, part in cut for decode in step.decodes)
                orders = {order: shown_at("chunked-prefill", **settings, order=order).stretches for order in Order}
                assert orders[Order.BY_ADMISSION] == orders[Order.DECODES_FIRST] == run.stretches
                assert any(step.decodes for step, _ in cut)


@each_limit
def test_what_is_said_of_limits_that_do_not_bind(chunk: int, token_budget: int) -> None:
    for load, max_running in product(FOUR_LOADS, (2, 4)):
        settings = {"max_running": max_running, **load}
        budgets, chunks = both_ways(token_budget, token_budget + 128), both_ways(chunk, chunk + 128)
        for line, run in still("token_budget", budgets, "chunked-prefill", chunk=chunk, **settings):
            assert "No step has more tokens" in line
            free = shown_at("chunked-prefill", chunk=chunk, token_budget=2**17, **settings)
            assert free.stretches == run.stretches
        for line, run in still("chunk", chunks, "chunked-prefill", token_budget=token_budget, **settings):
            assert "before the chunk does" in line
            free = shown_at("chunked-prefill", chunk=2**17, token_budget=token_budget, **settings)
            assert free.stretches == run.stretches


@pytest.mark.parametrize("policy", Batching)
def test_what_is_said_of_a_row_that_stays_idle(policy: Batching) -> None:
    for chunk in (128, 256, 2048):
        for fewer, more in pairwise((1, 2, 3, 4)):
            one, other = (simulate(four_requests(), policy_of(policy, rows, 0, chunk)) for rows in (fewer, more))
            if one.stretches == other.stretches:
                line = entry("the-bill").exploration.why_still(
                    "max_running", {"policy": policy, "request": "r0", "chunk": chunk, "max_running": more}
                )
                at_once = max(len(step.parts) for step in other.steps())
                assert f"Never more than {at_once} of" in line
                assert at_once <= fewer


@pytest.mark.parametrize("name", ["r2_arrival", "r3_arrival", "wait_to_fill", "fixed_term", "host_time"])
@pytest.mark.parametrize("value", [-1, 3601, int(1e9), int(9e18)])
def test_a_time_of_less_than_nothing_or_more_than_an_hour_is_refused(name: str, value: int) -> None:
    with pytest.raises(InputError, match=rf"^{name} is {value}; allowed: a time from 0 s to 3600 s$"):
        entry("fixed-batch").figure(**{name: value})


@pytest.mark.parametrize("slug", [*FAMILY, "the-bill"])
def test_more_rows_than_requests_are_refused(slug: str) -> None:
    with pytest.raises(InputError, match=r"^max_running is 1000000000; allowed: a whole number from 1 to 4$"):
        entry(slug).figure(max_running=10**9)


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
    # none of the four has a draft or waits for a tool
    absent = {Account.DRAFTS, Account.TOOL}
    items = [*(account.value for account in Account if account not in absent), "prompts of others"]
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


def test_a_short_interval_is_drawn_as_it_is_read_out() -> None:
    explorer = explore("fixed-batch", fixed_term=0.0)
    drawn = [text.get_text() for text in entry("fixed-batch").figure(fixed_term=0.0).axes[0].texts]
    (longest,) = [str(one) for one in explorer.readouts if one.label == "longest interval"]
    assert float(longest.removesuffix(" ms")) < 10
    assert f"longest interval {longest}" in drawn
