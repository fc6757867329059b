"""The offload explorers: bars are the bytes and times they stand for, lanes are the steady step, answers are true."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from figures.exploration import book_values
from figures.explorer import explore
from figures.guard import guard
from figures.offloads import COMPLETE_BYTES, INPUT_BYTES, PREFILL_EXAMPLE, memory_rows, step_at
from figures.prefetches import Placed, curve_of, placed, uses_in_sight, waits_of
from figures.prefetches import step_at as lanes_at
from figures.registry import Entry, entry
from figures.words import LANGUAGES, words
from lib.offload import NVLINK, PCIE, Part
from lib.prefetch import StepKind, hiding_link, is_recorded, prefetch
from lib.records import record
from lib.units import GB, MIB

MEMORY, TIME, LANES = entry("offload-memory"), entry("copy-time"), entry("copy-and-compute")
MEMORY_SETTINGS: list[dict[str, Any]] = [
    {}, {"buffers": 3, "every": 2}, {"part": Part.LAYER, "every": 12}, {"every": 7, "buffers": 2, "part": Part.LAYER},
]  # fmt: skip
TIME_SETTINGS: list[dict[str, Any]] = [
    {}, {"buffers": 1}, {"kind": StepKind.PREFILL}, {"link_bytes_s": 16 * GB, "every": 2, "requests": 35},
    {"kind": StepKind.PREFILL, "prompt_tokens": 8192, "link_bytes_s": 900 * GB, "every": 12, "buffers": 2},
]  # fmt: skip
LANES_SETTINGS: list[dict[str, Any]] = [
    {}, {"buffers": 1}, {"buffers": 3, "link_bytes_s": 104 * GB}, {"link_bytes_s": 450 * GB, "every": 2, "buffers": 1},
    {"kind": StepKind.PREFILL, "where": Placed.IN_A_ROW}, {"where": Placed.IN_A_ROW, "every": 2, "buffers": 3},
    {"kind": StepKind.PREFILL, "prompt_tokens": 8192, "every": 12, "where": Placed.IN_A_ROW, "buffers": 1},
]  # fmt: skip


def at(figure: Entry, **settings: Any) -> dict[str, Any]:
    return book_values(figure.draw, figure.arguments) | settings


def readouts(figure: Entry, **settings: Any) -> dict[str, str]:
    return {one.label: str(one) for one in figure.exploration.readouts(**at(figure, **settings))}


def bars(page: Figure) -> list[tuple[float, float, float]]:
    """Lower edge, left and right end of each bar in the first box, the highest first."""
    axes = page.axes[0]
    paths = [path for found in axes.collections if isinstance(found, PolyCollection) for path in found.get_paths()]
    paths += [patch.get_path() for patch in axes.patches]
    corners = [polygon for path in paths for polygon in path.to_polygons()]
    ends = [(*np.min(each, axis=0), np.max(each, axis=0)[0]) for each in corners]
    found = [(float(low), float(left), float(right)) for left, low, right in ends]
    return sorted(found, key=lambda bar: (-bar[0], bar[1]))


@pytest.mark.parametrize("settings", MEMORY_SETTINGS)
def test_what_is_gained_ends_where_the_buffers_begin_and_blocks_lie_in_it(settings: dict[str, Any]) -> None:
    rows = memory_rows(**at(MEMORY, **settings))
    drawn = bars(MEMORY.figure(**settings))
    lows = sorted({low for low, _, _ in drawn}, reverse=True)
    assert len(lows) == 3 * len(rows)
    for place, of in enumerate(rows):
        bar, inputs, complete = (
            [each[1:] for each in drawn if each[0] == low] for low in lows[3 * place : 3 * place + 3]
        )
        net, released = of.net_bytes / MIB, of.released_bytes / MIB
        assert bar == [pytest.approx((0, net)), pytest.approx((net, released))]
        for blocks, size in ((inputs, INPUT_BYTES), (complete, COMPLETE_BYTES)):
            inside = [right for _, right in blocks if right <= net + 1e-6]
            assert len(inside) == of.extra_requests(size)
            assert inside == pytest.approx([(each + 1) * size / MIB for each in range(len(inside))])


def test_memory_of_the_book() -> None:
    one, two = readouts(MEMORY), readouts(MEMORY, buffers=2)
    assert (one["released"], one["net"], two["net"]) == ("2,592 MiB", "2,304 MiB", "2,016 MiB")
    assert (one["more 8K inputs"], two["more 8K inputs"]) == ("2", "1")
    assert one["more complete requests"] == two["more complete requests"] == "1"
    question = MEMORY.exploration.question()
    assert question.answer == "one input, no complete one"
    assert [of.buffers for of in memory_rows(12, 1, Part.FFN)] == [1, 2]
    assert [of.buffers for of in memory_rows(18, 1, Part.FFN)] == [1]


@pytest.mark.parametrize("settings", TIME_SETTINGS)
def test_bars_of_time_are_copies_compute_and_waits(settings: dict[str, Any]) -> None:
    drawn = bars(TIME.figure(**settings))
    expected: list[tuple[float, float]] = []
    for link in (at(TIME, **settings)["link_bytes_s"], NVLINK.bandwidth_bytes_s):
        one = step_at(**at(TIME, **settings) | {"link_bytes_s": link})
        expected += [(0, one.copies_ns / 1e6), (0, one.compute_ns / 1e6)]
        expected += [(one.compute_ns / 1e6, one.pass_ns / 1e6)] if one.exposed_ns else []
    assert [each[1:] for each in drawn] == [pytest.approx(each) for each in expected]


def test_times_of_the_book() -> None:
    shown = readouts(TIME)
    assert (shown["copies of a step"], shown["step without offload"]) == ("42.5 ms", "26.26 ms")
    assert (shown["step with prefetch"], shown["who waits"]) == ("42.5 ms", "compute")
    assert shown["copies for 256 outputs"] == "10.83 s"
    assert shown["all hidden from a link of"] == "103.5 GB/s"
    assert readouts(TIME, requests=4)["outputs a second at most"] == "94.2 token/s"
    fast = readouts(TIME, link_bytes_s=NVLINK.bandwidth_bytes_s)
    assert (fast["copies of a step"], fast["copies for 256 outputs"], fast["who waits"]) == (
        "6.0 ms",
        "1.54 s",
        "the link",
    )
    assert readouts(TIME, buffers=1)["who waits"] == "compute and the link"


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_time_between_recorded_batches_is_not_called_recorded(language: str) -> None:
    text = words(language, "copy-time")
    recorded = {row["batch_requests"] for row in record("step_efficiency").where(input_kind="2k_independent")}
    for requests in (1, 2, 4, 15, 16, 35):
        name = "decode_step" if requests in recorded else "decode_between"
        page = TIME.draw(**at(TIME, requests=requests), language=language)
        assert text[name].format(requests=requests) in page.texts[0].get_text()
        assert is_recorded(requests) == (requests in recorded)


def test_twice_the_batch_copies_the_same() -> None:
    question = TIME.exploration.question()
    assert question.answer == "42.5 ms" and "188 token/s instead of 94 token/s" in question.because
    assert readouts(TIME, **question.reveals)["copies of a step"] == readouts(TIME)["copies of a step"]
    assert readouts(TIME, requests=8)["copied for each token"] == "324.0 MiB"
    assert readouts(TIME, tokens_per_step=4)["copied for each token"] == "648.0 MiB"


def test_a_prefill_of_the_named_setting_is_hidden() -> None:
    shown = readouts(TIME, kind=StepKind.PREFILL)
    assert shown["compute waits"] == "0.0 ms" and shown["who waits"] == "the link"
    assert shown["all hidden from a prompt of"] == "522 token"
    assert readouts(TIME, kind=StepKind.PREFILL, prompt_tokens=521)["who waits"] == "compute"


def test_a_prefill_has_no_read_outs_of_decode() -> None:
    for requests in (1, 4):
        shown = readouts(TIME, kind=StepKind.PREFILL, requests=requests)
        assert shown["outputs a second at most"] == shown["copies for 256 outputs"] == "–"
        assert shown["copied for each token"] == "2.5 MiB"
    at_both = [[one.label for one in TIME.exploration.readouts(**at(TIME, kind=kind))] for kind in StepKind]
    assert at_both[0] == at_both[1]


@pytest.mark.parametrize("figure", [TIME, LANES], ids=lambda known: known.slug)
def test_any_prompt_hides_what_its_shortest_does(figure: Entry) -> None:
    for link, prompt in ((102 * GB, "15 token"), (106 * GB, "any length")):
        assert readouts(figure, link_bytes_s=link)["all hidden from a prompt of"] == prompt


@pytest.mark.parametrize("figure", [TIME, LANES], ids=lambda known: known.slug)
def test_all_is_just_hidden_at_the_setting_of_that_name(figure: Entry) -> None:
    here = dict(figure.exploration.settings["all just hidden"])
    slower = {"link_bytes_s": here["link_bytes_s"] - 2 * GB}
    assert [readouts(figure, **each)["compute waits"] != "0.0 ms" for each in (here, slower)] == [False, True]
    assert readouts(figure, **here)["all hidden from a link of"] == "103.5 GB/s"


@pytest.mark.parametrize("settings", LANES_SETTINGS)
def test_lanes_fill_the_step_and_no_buffer_is_used_twice_at_once(settings: dict[str, Any]) -> None:
    one = lanes_at(**at(LANES, **settings))
    uses = list(uses_in_sight(one))
    for buffer in range(one.offload.buffers):
        spans = sorted((use.copied.start, use.computed.end) for use in uses if use.buffer == buffer)
        assert spans
        assert all(before[1] <= after[0] for before, after in pairwise(spans))
    copied = [max(0, min(use.copied.end, one.pass_ns) - max(use.copied.start, 0)) for use in uses]
    assert sum(copied) == one.copies_ns
    assert sum(end - start for start, end in waits_of(one)) == one.exposed_ns


@pytest.mark.parametrize("settings", LANES_SETTINGS)
def test_each_lane_is_drawn_where_it_happens(settings: dict[str, Any]) -> None:
    one = lanes_at(**at(LANES, **settings))
    drawn = bars(LANES.figure(**settings))
    lanes = [[each[1:] for each in drawn if each[0] == low] for low in sorted({low for low, _, _ in drawn})]
    assert len(lanes) == 2 + one.offload.buffers
    link, layers = lanes[-1], lanes[-2]
    assert sum(right - left for left, right in link) == pytest.approx(one.copies_ns / 1e6)
    spans = sorted([*one.steady.layers, *waits_of(one)])
    assert layers == [pytest.approx((start / 1e6, end / 1e6)) for start, end in spans]


def test_the_curve_falls_and_turns_level_at_the_mark() -> None:
    for settings in LANES_SETTINGS:
        one = lanes_at(**at(LANES, **settings))
        times = [time for _, time in curve_of(one)]
        assert times == sorted(times, reverse=True)
        knee = hiding_link(one.offload, one.compute_ns)
        for link, time in curve_of(one):
            assert (time == one.compute_ns) == (knee is not None and link >= knee)


def test_one_buffer_waits_for_the_own_layer_only() -> None:
    question = LANES.exploration.question()
    assert question.choices == ("42.5 ms", "49.0 ms", "68.7 ms") and question.answer == "49.0 ms"
    assert readouts(LANES, **question.reveals)["step with prefetch"] == question.answer


def test_layers_in_a_row_are_as_many() -> None:
    apart, together = placed(4, 2, Placed.EVENLY), placed(4, 2, Placed.IN_A_ROW)
    assert apart.released_bytes == together.released_bytes
    assert together.offloaded == tuple(range(27, 36))
    prefill = {"kind": StepKind.PREFILL, "prompt_tokens": PREFILL_EXAMPLE}
    assert readouts(LANES, **prefill)["compute waits"] == "0.0 ms"
    assert readouts(LANES, **prefill, where=Placed.IN_A_ROW)["step with prefetch"] == "80.5 ms"
    assert readouts(LANES, where=Placed.IN_A_ROW, buffers=1)["all hidden from a link of"] == "never"
    assert prefetch(together, 26_260_000, PCIE.bandwidth_bytes_s).exposed_ns > 0


def test_a_third_buffer_is_told_to_bring_nothing() -> None:
    explorer = explore("copy-time")
    explorer.widgets["buffers"].value = 3
    assert explorer.line.endswith("a further buffer cannot shorten it.")
    explorer.widgets["buffers"].value = 1
    assert explorer.line == ""


@pytest.mark.parametrize(
    ("slug", "settings", "said"),
    [
        ("offload-memory", {"every": 12, "buffers": 3}, "buffers is 3; "),
        ("copy-time", {"requests": 0}, "requests is 0; "),
        ("copy-and-compute", {"where": "at the top"}, "where is 'at the top'; "),
    ],
)
def test_what_makes_no_sense_is_one_sentence(slug: str, settings: dict[str, Any], said: str) -> None:
    assert explore(slug, **settings).sentence.startswith(f"Nothing to draw: {said}allowed: ")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("figure", "settings"),
    [(figure, each) for figure, all_settings in (
        (MEMORY, [*MEMORY_SETTINGS, {"every": 2, "part": Part.LAYER}]), (TIME, TIME_SETTINGS), (LANES, LANES_SETTINGS),
    ) for each in all_settings],
)  # fmt: skip
def test_no_fault_elsewhere(figure: Entry, settings: dict[str, Any], language: str) -> None:
    guard(figure.figure(language=language, **settings), figure.slug, figure.may_overlap)
