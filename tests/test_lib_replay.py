"""A replayed pool is the one that the plain loop had: same tables, same blocks, in every step."""

from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib import scheduling
from lib.blocks import State
from lib.checks import InputError
from lib.fast_forward import simulate
from lib.five_requests import COMMON_TOKENS, POOL_BLOCKS, five_requests, policy, pool_of
from lib.paging import Findable
from lib.replay import PoolState, replay
from lib.residency import Gate, PoolSetup, Residents
from lib.scheduling import Request, continuous, walk
from tests.loads import MODELS, random_policy, random_pool, random_pooled_load

SETUPS = [pool_of(blocks, gate, findable) for blocks in (16, 28, 40) for gate in Gate for findable in Findable]


class Watched(Residents):
    """Residents that write down every table once a step has all its blocks."""

    seen: list[dict[int, tuple[int, ...]]]

    def note_peak(self) -> None:
        super().note_peak()
        self.seen.append({place: self.table(place) for place in self.residents})


def tables_of_the_loop(monkeypatch: pytest.MonkeyPatch, *run: Any) -> tuple[Any, list[dict[int, tuple[int, ...]]]]:
    Watched.seen = []
    monkeypatch.setattr(scheduling, "Residents", Watched)
    schedule = walk(*run)
    monkeypatch.undo()
    return schedule, Watched.seen


def check(states: tuple[PoolState, ...], blocks: int) -> None:
    for state in states:
        assert sum(map(state.count, State)) == len(state.blocks) == blocks
        assert {block for block, is_in in enumerate(state.blocks) if is_in == State.HELD} == {
            block for table in state.tables.values() for block in table
        }
        assert state.computing <= state.tables.keys() and state.leaving <= state.tables.keys()
    assert states[-1].tables == {} and not states[-1].computing


@pytest.mark.parametrize("seed", range(60))
def test_the_tables_are_those_of_the_plain_loop(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = Random(seed)
    load = random_pooled_load(draw)
    pool, rules, model = random_pool(draw, load), random_policy(draw, load), draw.choice(MODELS)
    schedule, seen = tables_of_the_loop(monkeypatch, load, rules, model, pool)
    states = replay(schedule, pool)
    assert [state.tables for state in states[:-1]] == seen
    check(states, pool.blocks)


@given(st.integers(0, 10**6))
def test_the_most_that_is_held_is_the_peak_and_states_make_up_the_pool(seed: int) -> None:
    draw = Random(seed)
    load = random_pooled_load(draw)
    pool = random_pool(draw, load)
    schedule = simulate(load, random_policy(draw, load), draw.choice(MODELS), pool)
    states = replay(schedule, pool)
    assert len(states) == schedule.step_count + 1
    assert max(state.count(State.HELD) for state in states) == schedule.peak_blocks
    check(states, pool.blocks)


def test_tokens_in_the_tables_are_what_the_parts_come_to() -> None:
    for pool in SETUPS:
        schedule = simulate(five_requests(), policy(), pool=pool)
        for step, state in zip(schedule.steps(), replay(schedule, pool), strict=False):
            for part in step.parts:
                assert state.tokens[part.place] == part.context + part.new_tokens
                assert len(state.tables[part.place]) == pool.blocks_for(state.tokens[part.place])
            assert state.computing == {part.place for part in step.parts}


def test_the_five_requests_do_what_they_are_there_for() -> None:
    schedule = simulate(five_requests(), policy(), pool=pool_of())
    (lost,), (gone,) = schedule.preemptions, schedule.cancellations
    names = [request.name for request in schedule.requests]
    assert (names[lost.place], names[gone.place]) == ("D", "C")
    states = replay(schedule, pool_of())
    assert states[lost.step - 1].count(State.HELD) == POOL_BLOCKS == schedule.peak_blocks
    assert schedule.stays()[3][1].start == schedule.stays()[4][0].start == gone.step
    assert schedule.arrival_ns[4] < schedule.started_ns[4]
    common = {request.ids[:COMMON_TOKENS].tobytes() for request in schedule.requests}  # type: ignore[index, union-attr]
    assert len(common) == 1


def test_a_cancelled_request_holds_its_blocks_until_the_step_is_done() -> None:
    schedule = simulate(five_requests(), policy(), pool=pool_of())
    (gone,) = schedule.cancellations
    during, after = replay(schedule, pool_of())[gone.step - 1 : gone.step + 1]
    step = next(schedule.steps(gone.step - 1))
    cancelled_ns = schedule.requests[gone.place].cancel_ns
    assert cancelled_ns is not None and step.start_ns < cancelled_ns <= step.end_ns
    assert during.leaving == {gone.place} and set(during.tables[gone.place]) <= during.touched
    assert gone.place not in after.tables and not after.leaving


def test_a_shared_block_has_several_holders_and_a_found_one_was_idle() -> None:
    pool = pool_of(findable=Findable.ONCE_DONE)
    states = replay(simulate(five_requests(), policy(), pool=pool), pool)
    assert max(len(state.holders(block)) for state in states for block in range(POOL_BLOCKS)) == 3
    assert states[0].holders(POOL_BLOCKS - 1) == ()
    assert states[-1].count(State.IDLE) > 0 and states[-1].count(State.HELD) == 0


def test_no_setting_leaves_a_gap_between_steps() -> None:
    for pool in SETUPS:
        steps = list(simulate(five_requests(), policy(), pool=pool).steps())
        assert all(here.end_ns == there.start_ns for here, there in pairwise(steps))


def test_another_pool_or_none_is_refused() -> None:
    schedule = simulate(five_requests(), policy(), pool=pool_of())
    for other in (pool_of(16), pool_of(27), PoolSetup(POOL_BLOCKS, 8), pool_of(findable=Findable.ON_ADMISSION)):
        with pytest.raises(InputError, match=r"^pool is "):
            replay(schedule, other)
    with pytest.raises(InputError, match=r"^schedule is "):
        replay(walk([Request(0, 4, 2)], continuous(1)), pool_of())
