"""Attempts to break runs in a pool: storms of preemption, equal prompts, users who go away at every moment.

What a run says is counted once more from its steps alone, by who computed which tokens; no code of `lib` helps.
"""

from collections import Counter
from random import Random
from typing import Any

import pytest

from lib.bill import bill
from lib.checks import InputError
from lib.fast_forward import simulate
from lib.paging import Findable, Pool
from lib.residency import Departure, Gate, PoolSetup
from lib.schedule import Schedule
from lib.scheduling import Order, Policy, Request, chunked, continuous, fixed_batch, walk
from lib.slo import Slo, trace_grid
from lib.step_time import Fit, StepPlan, StepTime

STORMS = 60


class Uneven(StepTime):
    """A model of which no stretch of steps is one closed form."""

    def __call__(self, plan: StepPlan) -> int:
        return 5 + 3 * plan.new_tokens + plan.pairs // 7 + 1000 * (plan.context_tokens > 50)


class ThreeAtOnce(StepTime):
    """A model that says no more than three steps ahead."""

    def __call__(self, plan: StepPlan) -> int:
        return 50 + plan.new_tokens

    def decode_stretch(self, decodes: int, pairs: int, most: int) -> tuple[int, int, int]:
        return min(most, 3), 50 + decodes, 0


def storm(draw: Random) -> tuple[list[Request], Policy, StepTime, PoolSetup]:
    """Many who begin alike, in a pool that hardly holds the largest, and some who go away, from 1 ns on."""
    longest, words, now = draw.choice([4, 12, 20]), draw.choice([1, 2]), 0
    common, load = [[draw.randrange(words) for _ in range(longest)] for _ in range(2)], []
    for _ in range(draw.choice([2, 5, 9, 16])):
        now += draw.choice([0, 0, draw.randrange(3000)])
        prompt, output = draw.randint(1, longest), draw.choice([1, draw.randint(1, 5 * longest), 3 * longest])
        told = draw.choice([prompt, prompt + output])
        ids = draw.choice([None, (draw.choice(common) + [draw.randrange(words) for _ in range(told)])[:told]])
        gone = draw.choice([None, None, None, now + 1, now + 1 + draw.randrange(10 ** draw.randint(1, 5))])
        load.append(Request(now, prompt, output, output + draw.choice([0, 3]), ids=ids, cancel_ns=gone))
    block, rows = draw.choice([1, 2, 3, 7]), draw.choice([2, 3, 8])
    largest = max(-(-request.most_tokens // block) for request in load)
    gate, blocks = (
        draw.choice([*Gate, Gate.FIRST_CHUNK, Gate.WHOLE_SEQUENCE]),
        largest + draw.choice([0, 0, 1, largest]),
    )
    reserve = draw.randint(0, min(blocks - 1, 3)) if gate == Gate.RESERVE else 0
    policies = (
        fixed_batch(rows, draw.choice([0, 400])),
        continuous(rows),
        *(chunked(rows, draw.choice([1, 3, 16]), rows + draw.choice([0, 1, 30]), order) for order in Order),
    )
    model = draw.choice([Uneven(), ThreeAtOnce(), Fit(0, 3, 0), Fit(7, 0, 0), Fit(100, 10, 1)])
    return load, draw.choice(policies), model, PoolSetup(blocks, block, gate, reserve, draw.choice(list(Findable)))


def text_of(place: int, request: Request) -> tuple[object, ...]:
    """What a request is made of: behind the ids that are given, tokens that nobody else has."""
    given = () if request.ids is None else tuple(request.ids)
    return (*given, *((place, at) for at in range(len(given), request.prompt + request.output)))


def check_from_its_steps(run: Schedule, policy: Policy, setup: PoolSetup) -> None:
    """Each part goes on where KV ends, what is found was computed before, and no step has more than it may."""
    texts = [text_of(place, request) for place, request in enumerate(run.requests)]
    gone, held, outputs = {one.place for one in run.cancellations}, dict[int, int](), Counter[int]()
    computed, peak_blocks = set[tuple[object, ...]](), 0
    for number, step in enumerate(run.steps()):
        for one in (*run.preemptions, *run.cancellations):
            if one.step == number:
                assert (held.pop(one.place, 0), outputs[one.place]) == (one.lost_tokens, one.outputs)
        assert 0 < len(step.parts) == len({part.place for part in step.parts}) <= policy.max_running
        assert sum(part.new_tokens for part in step.parts) <= policy.most_per_step
        full = set[tuple[object, ...]]()
        for place, new, context in step.parts:
            ends = range(setup.block_tokens, context + new + 1, setup.block_tokens)
            full.update(texts[place][:end] for end in ends if end > context)
            if setup.findable == Findable.ON_ADMISSION:
                computed |= full
        for place, new, context in step.parts:
            if place not in held:
                ends = range(setup.block_tokens, context + 1, setup.block_tokens)
                assert context % setup.block_tokens == 0 and computed.issuperset(texts[place][:end] for end in ends)
                assert not context or setup.findable != Findable.NEVER
            assert held.get(place, context) == context
            held[place] = context + new
            outputs[place] += held[place] == run.requests[place].prompt + outputs[place]
        computed |= full
        peak_blocks = max(peak_blocks, sum(map(setup.blocks_for, held.values())))
        for place in [place for place in held if outputs[place] == run.requests[place].output]:
            del held[place]
    assert {place for place in held} <= gone
    assert run.peak_blocks is not None and run.peak_blocks <= min(peak_blocks, setup.blocks)
    assert setup.findable != Findable.NEVER or run.peak_blocks == peak_blocks
    for place, request in enumerate(run.requests):
        assert place in gone or outputs[place] == request.output
        assert not outputs[place] or len(run.output_times_ns(place)) == outputs[place]
    assert setup.gate != Gate.FINAL_SIZE or not run.preemptions


def test_a_gate_that_opens_as_what_would_be_found_is_taken_opens_in_the_fast_run_too() -> None:
    load = [
        Request(0, 5, 1, ids=[0, 0, 0, 0, 9]),
        Request(0, 11, 7, ids=[0] * 11),
        Request(0, 5, 13),
        Request(0, 10, 4, ids=[0] * 9 + [9]),
    ]
    setup = PoolSetup(14, 3, Gate.FIRST_CHUNK, findable=Findable.ONCE_DONE)
    for run in (loop(load, chunked(3, 1, 3), Fit(10, 1, 0), setup) for loop in (walk, simulate)):
        assert run.preemptions == [Departure(14, 3, 3, 12, int(run.start_of([14])[0]))]
        assert run.stays()[3] == [range(5, 14), range(16, 20)]  # two others still run, in decode


class Free(StepTime):
    """A model in which steps take no time, however many."""

    def __call__(self, plan: StepPlan) -> int:
        return 0

    def decode_stretch(self, decodes: int, pairs: int, most: int) -> tuple[int, int, int]:
        return most, 0, 0


@pytest.mark.parametrize("findable", [Findable.ON_ADMISSION, Findable.ONCE_DONE])
def test_a_gate_that_opens_as_a_found_block_is_taken_whose_twin_is_held_opens_in_the_fast_run_too(
    findable: Findable,
) -> None:
    zeros = ((4, 1), (4, 47), (10, 1))
    load = [Request(0, 6, 2), *(Request(0, prompt, output, ids=[0] * prompt) for prompt, output in zeros)]
    setup = PoolSetup(56, 1, Gate.FINAL_SIZE, findable=findable)
    for run in (loop(load, continuous(2), Fit(10, 1, 1), setup) for loop in (walk, simulate)):
        assert run.started_step == [0, 0, 2, 48] and run.last_output_step[2] == 48


def test_steps_that_take_no_time_are_counted_all_the_same() -> None:
    load = [Request(0, 3, 50), Request(5, 3, 9), Request(10**6, 4, 4, cancel_ns=10**6 + 1)]
    plain, fast = (loop(load, continuous(2), Free(), PoolSetup(20, 4)) for loop in (walk, simulate))
    assert fast.total_ns == plain.total_ns == 10**6
    assert list(fast.steps()) == list(plain.steps())


def test_who_went_away_without_an_output_has_no_bill_and_no_share_in_a_promise() -> None:
    load = [Request(0, 200, 5), Request(0, 10, 5, cancel_ns=1), Request(0, 10, 5, cancel_ns=10**9)]
    run = simulate(load, chunked(2, 16, 16), Fit(100, 10, 1), PoolSetup(40))
    assert (run.last_output_step[1], run.output_times_ns(1)) == (-1, [])
    assert bill(run, 2).total_ns == run.finish_ns[2]
    with pytest.raises(InputError, match="place is 1"):
        bill(run, 1)
    with pytest.raises(InputError, match="cancel_ns is 1;"):
        trace_grid(load, [16], [16], 2, Slo(1, 1))


@pytest.mark.parametrize("block", range(3))
def test_storms_end_with_all_blocks_free_and_the_fast_run_is_the_plain_one(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pools, departures = list[Pool](), Counter[str]()

    def remembered(*values: Any) -> Pool:
        pools.append(Pool(*values))
        return pools[-1]

    monkeypatch.setattr("lib.residency.Pool", remembered)
    for seed in range(block * STORMS, (block + 1) * STORMS):
        load, policy, model, setup = storm(Random(seed))
        pools.clear()
        plain, fast = (loop(load, policy, model, setup) for loop in (walk, simulate))
        assert list(fast.steps()) == list(plain.steps())
        for name in ("preemptions", "cancellations", "skipped", "peak_blocks", "started_step", "last_output_step"):
            assert getattr(fast, name) == getattr(plain, name), (seed, name)
        check_from_its_steps(plain, policy, setup)
        assert pools and all(pool.free == setup.blocks for pool in pools)
        if len(pools) == 2:  # where nobody can find what another left, the fast run counts and has no pool
            mine, its = pools
            assert (mine._empty, list(mine._idle)) == (its._empty, list(its._idle)), seed
        departures.update(preemptions=len(plain.preemptions), cancellations=len(plain.cancellations))
    assert min(departures.values()) > STORMS
