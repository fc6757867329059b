"""Copy and compute: the steady pass equals passes played one by one, and what is said of it in closed form is true."""

import math
import random
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Any

import pytest

from lib.checks import InputError
from lib.model import QWEN3_8B
from lib.offload import NVLINK, PCIE, Offload, bytes_of_set, every_nth
from lib.prefetch import (
    MOST_NS,
    Prefetch,
    StepKind,
    copy_time_ns,
    hiding_distance,
    hiding_link,
    hiding_prompt,
    hiding_step_ns,
    plain_step_ns,
    prefetch,
    split_evenly,
)
from lib.step_time import FIT, NS, device, step_plan
from lib.units import GB

SET_BYTES = bytes_of_set(QWEN3_8B)
DECODE_NS = plain_step_ns(StepKind.DECODE)


def book(buffers: int, every: int = 4) -> Offload:
    return Offload(36, every_nth(36, every), SET_BYTES, buffers)


def random_prefetch(draw: random.Random) -> Prefetch:
    layers = draw.randint(2, 14)
    offloaded = tuple(sorted(draw.sample(range(layers), draw.randint(2, layers))))
    longest = draw.choice((2, 9, 60))
    times = tuple(draw.choice((1, draw.randint(1, longest))) for _ in range(layers))
    buffers = draw.randint(1, min(4, len(offloaded) - 1))
    return Prefetch(Offload(layers, offloaded, 1, buffers), times, draw.randint(1, 2 * longest))


def played(of: Prefetch, passes: int) -> list[int]:
    """When each pass begins, layer after layer from an empty start: no buffer is filled, the link is free."""
    layer_ends, copy_ends, begins, now, link_free = list[int](), list[int](), list[int](), 0, 0
    for _ in range(passes):
        begins.append(now)
        for layer, ns in enumerate(of.layer_ns):
            if layer in of.offload.offloaded:
                turn = len(copy_ends)
                buffer_free = layer_ends[turn - of.offload.buffers] if turn >= of.offload.buffers else 0
                link_free = max(link_free, buffer_free) + of.copy_ns
                copy_ends.append(link_free)
                now = max(now, link_free) + ns
                layer_ends.append(now)
            else:
                now += ns
    return begins


CASES = [random_prefetch(random.Random(seed)) for seed in range(240)]


def test_the_cases_hold_all_kinds() -> None:
    by_copies = sum(case.pass_ns == case.copies_ns for case in CASES)
    by_compute = sum(case.pass_ns == case.compute_ns for case in CASES)
    assert min(by_copies, by_compute, len(CASES) - by_copies - by_compute) > 24


@pytest.mark.parametrize("case", CASES, ids=lambda case: "")
def test_passes_played_one_by_one_come_to_the_steady_pass(case: Prefetch) -> None:
    begins = played(case, passes=300)
    assert begins[-1] - begins[-2] == case.pass_ns
    assert begins[-1] - begins[-101] == 100 * case.pass_ns


@pytest.mark.parametrize("case", CASES, ids=lambda case: "")
def test_everything_in_the_steady_pass_starts_as_soon_as_it_may(case: Prefetch) -> None:
    """What it waits for, of this pass or of an earlier one, ends just when it starts."""
    steady, offloaded, sets = case.steady, case.offload.offloaded, case.offload.sets
    assert steady.layers[-1].end == case.pass_ns
    assert tuple(span.end - span.start for span in steady.layers) == case.layer_ns
    assert {span.end - span.start for span in steady.copies} == {case.copy_ns}
    for layer, span in enumerate(steady.layers):
        before = steady.layers[layer - 1].end - (case.pass_ns if layer == 0 else 0)
        copied = [steady.copies[offloaded.index(layer)].end] if layer in offloaded else []
        assert span.start == max([before, *copied])
    for turn, span in enumerate(steady.copies):
        link_free = steady.copies[turn - 1].end - (case.pass_ns if turn == 0 else 0)
        passes, place = divmod(turn - case.offload.buffers, sets)
        buffer_free = steady.layers[offloaded[place]].end + passes * case.pass_ns
        assert span.start == max(link_free, buffer_free)


@pytest.mark.parametrize("case", CASES, ids=lambda case: "")
def test_one_buffer_in_a_formula(case: Prefetch) -> None:
    """Each set in turn: its copy, while the layers since the last set compute, then its own layer."""
    alone = replace(case, offload=replace(case.offload, buffers=1))
    done = list(accumulate(case.layer_ns, initial=0))
    sets = case.offload.offloaded
    between = [done[here] - done[before + 1] for before, here in pairwise(sets)]
    between.append(done[-1] - done[sets[-1] + 1] + done[sets[0]])
    own = sum(case.layer_ns[layer] for layer in sets)
    assert alone.pass_ns == own + sum(max(case.copy_ns, each) for each in between)


@pytest.mark.parametrize("buffers", [2, 3, 4])
@pytest.mark.parametrize("every", [1, 2, 4, 5, 7])
def test_more_buffers_hide_all_they_can_where_sets_lie_evenly(every: int, buffers: int) -> None:
    for copy in range(1, 60):
        case = Prefetch(Offload(36, every_nth(36, every), 1, buffers), (6,) * 36, copy)
        assert case.pass_ns == max(case.compute_ns, case.copies_ns)


@pytest.mark.parametrize("case", CASES, ids=lambda case: "")
def test_another_buffer_never_costs_time_and_no_buffer_beats_the_bound(case: Prefetch) -> None:
    buffers = range(1, case.offload.sets)
    times = [replace(case, offload=replace(case.offload, buffers=each)).pass_ns for each in buffers]
    assert times == sorted(times, reverse=True)
    assert times[-1] >= max(case.compute_ns, case.copies_ns)
    assert case.exposed_ns == case.pass_ns - case.compute_ns >= 0
    assert case.link_idle_ns == case.pass_ns - case.copies_ns >= 0


def test_the_steady_pass_is_found_at_once_where_playing_takes_long() -> None:
    """Copies gain one ns on compute in a pass: from an empty start it takes thousands until they are ahead."""
    case = Prefetch(Offload(9, (2, 5, 8), 1, 2), (10**5,) * 9, 3 * 10**5 - 1)
    assert case.pass_ns == 9 * 10**5
    assert case.steady.copies[0].start < 0


def test_sets_in_a_row_hide_worse_than_sets_that_lie_apart() -> None:
    prefill = plain_step_ns(StepKind.PREFILL, prompt_tokens=1024)
    apart = prefetch(book(2), prefill, PCIE.bandwidth_bytes_s)
    in_a_row = prefetch(replace(book(2), offloaded=tuple(range(9))), prefill, PCIE.bandwidth_bytes_s)
    assert apart.exposed_ns == 0 < in_a_row.exposed_ns


def test_the_schedule_of_the_book() -> None:
    pcie, nvlink = (prefetch(book(2), DECODE_NS, link.bandwidth_bytes_s) for link in (PCIE, NVLINK))
    assert DECODE_NS == 26_260_000 == pcie.compute_ns
    assert {ns for ns in pcie.layer_ns} == {729_444, 729_445}
    assert pcie.offload.released_bytes == 2_717_908_992
    assert (pcie.copy_ns, nvlink.copy_ns) == (4_718_592, 671_089)
    assert (pcie.pass_ns, nvlink.pass_ns) == (42_467_328, DECODE_NS)
    assert nvlink.copies_ns == pytest.approx(6_039_797.76, abs=9)
    one = prefetch(book(1), DECODE_NS, PCIE.bandwidth_bytes_s)
    assert one.pass_ns == 9 * one.copy_ns + sum(one.layer_ns[layer] for layer in one.offload.offloaded)


@pytest.mark.parametrize("buffers", [1, 2, 3])
@pytest.mark.parametrize("every", [2, 4, 5, 12])
@pytest.mark.parametrize("time", [DECODE_NS, 10**9])
def test_the_link_the_step_and_the_prompt_that_just_hide(buffers: int, every: int, time: int) -> None:
    if buffers >= 36 // every:
        return
    offload = book(buffers, every)
    link = hiding_link(offload, time)
    assert link is not None
    assert prefetch(offload, time, link).exposed_ns == 0 < prefetch(offload, time, link * 999 // 1000).exposed_ns
    step = hiding_step_ns(offload, copy_time_ns(SET_BYTES, link))
    assert step == pytest.approx(time, abs=100 * every)
    slow = 8 * GB
    for clock in (FIT, device()):
        tokens = hiding_prompt(offload, slow, clock)
        assert tokens is not None
        around = [prefetch(offload, clock(step_plan((tokens - less, 0))), slow).exposed_ns for less in (0, 1)]
        assert around[0] == 0 < around[1]


def test_every_prompt_hides_behind_a_fast_link() -> None:
    assert hiding_prompt(book(2), NVLINK.bandwidth_bytes_s, FIT) == 1


def test_one_buffer_for_layers_in_a_row_hides_nothing_ever() -> None:
    offload = replace(book(1), offloaded=(3, 4))
    assert hiding_link(offload, DECODE_NS) is None
    assert hiding_step_ns(offload, 1) is None
    assert hiding_prompt(offload, PCIE.bandwidth_bytes_s, FIT) is None
    assert hiding_link(replace(offload, offloaded=(3, 5)), DECODE_NS) is not None


@pytest.mark.parametrize(("buffers", "link", "every"), [(1, PCIE, 8), (2, PCIE, 7), (1, NVLINK, 2), (2, NVLINK, 1)])
def test_how_far_apart_sets_must_lie(buffers: int, link: Any, every: int) -> None:
    assert hiding_distance(book(buffers), DECODE_NS, link.bandwidth_bytes_s) == every
    hidden = [prefetch(book(buffers, each), DECODE_NS, link.bandwidth_bytes_s).exposed_ns == 0 for each in range(1, 12)]
    assert hidden.index(True) + 1 == every


def test_on_a_slow_link_no_two_sets_hide() -> None:
    assert hiding_distance(book(1), DECODE_NS, 10**9) is None
    assert hiding_distance(book(2), DECODE_NS, 10**9) is None


def test_a_step_is_split_to_the_last_ns() -> None:
    parts = split_evenly(26_260_001, 36)
    assert sum(parts) == 26_260_001
    assert max(parts) - min(parts) == 1
    assert copy_time_ns(3, 2 * NS) == 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"layer_ns": (1, 2)}, {"layer_ns": (1, 2, 0)}, {"layer_ns": (1, 2, math.nan)}, {"layer_ns": [1, 2, 3]},
        {"layer_ns": (1, 2, MOST_NS + 1)}, {"copy_ns": 0}, {"copy_ns": 2.0}, {"copy_ns": True}, {"copy_ns": None},
        {"copy_ns": MOST_NS + 1}, {"copy_ns": 10**400},
    ],
    ids=repr,
)  # fmt: skip
def test_times_that_make_no_sense(wrong: dict[str, Any]) -> None:
    right: dict[str, Any] = {"layer_ns": (1, 2, 3), "copy_ns": 4}
    (name,) = wrong
    with pytest.raises(InputError, match=f"^{name} is "):
        Prefetch(Offload(3, (0, 2), 1, 1), **right | wrong)


def test_a_step_shorter_than_its_layers_is_refused() -> None:
    with pytest.raises(InputError, match=r"^step_ns is 35; allowed: a whole number from 36 to "):
        split_evenly(35, 36)
