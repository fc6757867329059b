"""The configurations in the simulator against the chapter's arithmetic, chance against draws, and what is refused."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from lib import dflash
from lib.checks import InputError
from lib.paging import Findable
from lib.quantization import BF16
from lib.serving import (
    CONFIGURATIONS,
    DFLASH,
    LIMITS,
    WORKLOAD,
    Configuration,
    Draft,
    Workload,
    memory_needed,
    needs,
    pool_of,
)
from lib.serving_run import (
    Conditions,
    acceptance_for,
    growing_rounds,
    memory_by_shape,
    memory_with_slots,
    pass_of_draft_s,
    recorded_request_s,
    round_by_reads,
    rounds_of_slowest,
    run,
    slowest_total_s,
    step_time_of,
    variations,
)
from lib.speculation import at_every_position, expected_outputs
from lib.step_time import decode_plan, equal_requests, step_plan, verifying
from lib.units import GIB, MIB

A, B, C, D = CONFIGURATIONS
FEW = Workload(requests=3, input_tokens=512, prefix_tokens=256, output_tokens=20)


@pytest.mark.parametrize("place", range(4), ids="ABCD")
def test_a_run_needs_the_memory_and_the_rounds_of_the_arithmetic_and_hardly_other_time(place: int) -> None:
    one = CONFIGURATIONS[place]
    found, there = run(one), needs(one)
    assert found.peak_bytes == there.memory_bytes
    assert found.rounds == there.rounds
    assert found.prefill_s == pytest.approx(there.prefill_s, rel=0.001)
    assert there.total_s < found.total_s < 1.003 * there.total_s
    assert max(found.finish_s) == found.total_s and len(found.finish_s) == WORKLOAD.requests


@pytest.mark.parametrize("one", [B, D], ids="BD")
def test_what_a_run_takes_more_is_the_growth_of_the_context(one: Configuration) -> None:
    found = run(one)
    assert found.total_s - found.prefill_s == pytest.approx(growing_rounds(one), abs=2e-4)


def test_a_step_is_the_longer_of_record_and_flop() -> None:
    by = step_time_of(B)
    assert by(decode_plan(16, 8192)) == 27_350_000
    verified = equal_requests(16, verifying(step_plan((8, 8192)), 7))
    assert by(verified) == 27_350_000 > by.device.compute_ns(verified)
    prefill = equal_requests(16, step_plan((2048, 6144)))
    assert by(prefill) == by.device.compute_ns(prefill)
    assert step_time_of(D)(prefill) == round(by(prefill) * DFLASH.prefill_factor)
    assert step_time_of(C)(decode_plan(16, 8192)) == 28_261_250


def test_a_prefix_below_a_page_is_no_common_one_for_a_run_either() -> None:
    page = pool_of(BF16).page_tokens
    for prefix in (0, page - 1):
        own = Workload(requests=3, input_tokens=512, prefix_tokens=prefix, output_tokens=20)
        assert not own.common_tokens(B)
        assert step_time_of(B, own) == step_time_of(A, own) == step_time_of(A)
        assert run(B, own).total_s == run(A, own).total_s
        assert growing_rounds(B, own) == growing_rounds(A, own)
        assert needs(B, own).round_s == needs(A, own).round_s
    assert step_time_of(B, replace(FEW, prefix_tokens=page)) == step_time_of(B) != step_time_of(A)


def test_what_adds_to_rounds_without_drafts_is_refused_in_a_run_and_not_dropped() -> None:
    none = Draft("no draft", 1, 1)
    assert run(replace(B, draft=none), FEW).total_s == run(B, FEW).total_s
    with pytest.raises(InputError, match=r"^round_s is 0\.001; allowed: 0 in a run of 1 position"):
        run(replace(B, draft=replace(none, round_s=0.001)), FEW)


@pytest.mark.parametrize("outputs", [1.0, 1.25, 1.5, 2.0, 2.4, 3.0])
def test_a_run_takes_the_rounds_of_any_mean(outputs: float) -> None:
    one = replace(D, draft=replace(DFLASH, outputs_per_round=outputs))
    assert run(one, FEW).rounds == needs(one, FEW).rounds


def test_drafts_that_cannot_end_cleanly_take_a_block_more_each() -> None:
    assert run(D, conditions=Conditions(slots=True)).peak_bytes == memory_with_slots(D)
    assert memory_with_slots(D) - memory_needed(D) == 36 * MIB
    assert memory_with_slots(B) == memory_needed(B)


def test_a_pass_and_a_query_are_charged_once_a_round() -> None:
    plain, charged = run(D), run(D, conditions=Conditions(pass_s=0.00357))
    assert charged.total_s - plain.total_s == pytest.approx(85 * 0.00357)
    asking = replace(D, draft=replace(DFLASH, round_s=0.0001))
    assert run(asking).total_s - plain.total_s == pytest.approx(85 * 0.0001)


def test_a_cold_prefix_is_computed_once_only_if_it_can_be_found() -> None:
    cold = replace(WORKLOAD, is_cached=False)
    found, lost, chunked = (
        run(B, cold, Conditions(findable=Findable.ON_ADMISSION)),
        run(B, cold, Conditions(findable=Findable.ONCE_DONE)),
        run(B, cold, Conditions(findable=Findable.ONCE_DONE, token_budget=4096)),
    )
    assert found.prefill_s == pytest.approx(needs(B, cold).prefill_s, rel=0.02)
    assert found.peak_bytes == chunked.peak_bytes == memory_needed(B)
    assert lost.peak_bytes == memory_needed(A) and lost.prefill_s == pytest.approx(needs(A).prefill_s)
    assert chunked.total_s == pytest.approx(found.total_s, rel=0.001)


def test_within_the_limit_some_of_a_run_and_the_others_wait() -> None:
    ends = sorted(run(A, conditions=Conditions(memory_bytes=LIMITS.memory_bytes)).finish_s)
    assert len(set(ends[:10])) == len(set(ends[10:])) == 1
    assert ends[10] > 1.7 * ends[0]
    assert run(D, conditions=Conditions(memory_bytes=LIMITS.memory_bytes)).total_s == run(D).total_s


@pytest.mark.parametrize("outputs", [1.0, 1.5, 3.0, 6.1, 8.0])
def test_the_acceptance_for_a_mean_has_that_mean(outputs: float) -> None:
    assert expected_outputs(at_every_position(acceptance_for(outputs, 8), 7)) == pytest.approx(outputs)


def plain_rounds(draw: Random, draft: Draft, outputs: int) -> int:
    """Rounds of one request, each draft token accepted by a throw of its own."""
    each, left, rounds = acceptance_for(draft.outputs_per_round, draft.positions), outputs - 1, 0
    while left > 0:
        given = 1
        while given < draft.positions and draw.random() < each:
            given += 1
        left, rounds = left - given, rounds + 1
    return rounds


@pytest.mark.parametrize(("outputs", "requests"), [(256, 16), (40, 4), (2, 7)])
def test_the_slowest_by_chance_is_that_of_many_throws(outputs: int, requests: int) -> None:
    draw = Random(8)
    throws = [[plain_rounds(draw, DFLASH, outputs) for _ in range(requests)] for _ in range(400)]
    one, slowest = rounds_of_slowest(DFLASH, outputs, requests)
    assert sum(map(sum, throws)) / (400 * requests) == pytest.approx(one, rel=0.01)
    assert sum(map(max, throws)) / 400 == pytest.approx(slowest, rel=0.01)
    assert rounds_of_slowest(DFLASH, outputs, 1)[1] == pytest.approx(one)


def test_by_chance_the_engine_waits_for_its_slowest_too() -> None:
    found = [run(D, conditions=Conditions(seed=seed)) for seed in range(4)]
    for one in found:
        # A last step in which one output is wanted has no draft, and so is no round of drafts.
        assert 0 <= one.rounds - max(len(rounds) for rounds in one.schedule.rounds.values()) <= 1
    mean = sum(one.rounds for one in found) / len(found)
    assert mean == pytest.approx(rounds_of_slowest(DFLASH, 256, 16)[1], rel=0.05)
    assert all(one.total_s < LIMITS.deadline_s for one in found)


def test_each_row_says_what_it_changes_and_no_verdict_turns() -> None:
    rows = variations()
    assert len({(row.configuration.name, row.what) for row in rows}) == len(rows)
    for row in rows:
        assert row.chapter_s == needs(row.configuration).total_s
        assert row.difference_s == row.total_s - row.chapter_s
        assert not row.turns_verdict
    by = {(row.configuration.name, row.what): row.total_s for row in rows}
    charged = by["D", "the draft's pass is charged"]
    assert charged == pytest.approx(needs(D).total_s + 85 * pass_of_draft_s())
    assert slowest_total_s(pass_of_draft_s()) > max(slowest_total_s(), charged)


def test_one_read_of_the_prefix_is_what_fits_the_record_better() -> None:
    measured_s = needs(B).round_s
    assert measured_s < round_by_reads(once=True) < round_by_reads(once=False) == needs(A).round_s
    assert recorded_request_s() == pytest.approx(needs(B).total_s, rel=0.001)


def test_memory_by_the_inferred_shape_by_hand() -> None:
    tokens = {False: 16 * 8448, True: 6144 + 16 * 2304}
    for is_shared, count in tokens.items():
        assert memory_by_shape(is_shared) == 6048 * MIB + dflash.weight_bytes() + 20_480 * count
        assert memory_by_shape(is_shared) < LIMITS.memory_bytes


WRONG: list[Any] = [
    lambda: run("B"),  # type: ignore[arg-type]
    lambda: run(B, LIMITS),  # type: ignore[arg-type]
    lambda: run(B, conditions=4096),  # type: ignore[arg-type]
    lambda: run(B, Workload(requests=65)),
    lambda: run(B, Workload(output_tokens=1025)),
    lambda: run(B, Workload(host_removed_s=0.001)),
    lambda: run(D, conditions=Conditions(memory_bytes=3 * GIB)),
    lambda: run(B, conditions=Conditions(token_budget=8)),
    lambda: Conditions(token_budget=0),
    lambda: Conditions(seed=-1),
    lambda: Conditions(pass_s=-1),
    lambda: Conditions(slots=1),  # type: ignore[arg-type]
    lambda: Conditions(findable="always"),  # type: ignore[arg-type]
    lambda: Conditions(memory_bytes=0),
    lambda: acceptance_for(0.5, 8),
    lambda: acceptance_for(9, 8),
    lambda: rounds_of_slowest(None, 256, 16),  # type: ignore[arg-type]
    lambda: rounds_of_slowest(DFLASH, 256, 65),
    lambda: memory_by_shape(1),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("place", range(len(WRONG)))
def test_what_makes_no_sense_is_refused(place: int) -> None:
    with pytest.raises(InputError, match="allowed: "):
        WRONG[place]()
