"""Speculation inside the scheduler: rounds worked by hand, what holds for any run, and a plain run beside it."""

from dataclasses import replace
from itertools import product
from math import ceil, prod
from random import Random
from statistics import mean
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib import dflash
from lib.bill import Account, bill
from lib.checks import InputError
from lib.fast_forward import simulate
from lib.model import QWEN3_8B, kv_bytes_per_token
from lib.paging import Findable
from lib.records import record
from lib.replay import replay
from lib.residency import PoolSetup
from lib.schedule import Part, Round, Schedule
from lib.scheduling import Order, Policy, Request, chunked, continuous, walk
from lib.speculation import Speculation, expected_rounds, output_distribution
from lib.speculation_setup import (
    PLAIN,
    Acceptance,
    Drafter,
    DrawnAcceptance,
    GivenAcceptance,
    SpeculationSetup,
    blocks_beside_draft,
)
from lib.step_time import FIT, Fit, device, step_plan, verifying
from lib.units import GIB
from tests.loads import MODELS, random_policy, random_pool, random_pooled_load
from tests.plain_speculation import plain_run

SEEDS = st.integers(0, 10**6)
STEP = Fit(10, 0, 0)
MS = 10**6
TASK = "short_math"


def drafts(length: int, *accepted: int) -> SpeculationSetup:
    """Drafts of one length that take no time, of which every request has so many accepted, round after round."""
    return SpeculationSetup(GivenAcceptance(length, (accepted,)))


def random_setup(draw: Random) -> SpeculationSetup:
    length = draw.choice([1, 2, 4, 7])
    given_rows = tuple(tuple(draw.randint(0, length) for _ in range(draw.randint(1, 5))) for _ in range(3))
    drawn = DrawnAcceptance(tuple(draw.choice([0, 0.3, 0.9, 1]) for _ in range(length)), draw.randint(0, 2**32))
    acceptance = draw.choice([GivenAcceptance(length, given_rows), drawn])
    drafter = draw.choice([None, Drafter(Fit(100, 3, 1)), Drafter(Fit(100, 3, 1), one_by_one=True), Drafter(device())])
    return SpeculationSetup(acceptance, drafter)


# By hand


def test_two_of_four_drafted_tokens_give_three_outputs() -> None:
    """Figure 8-29 in a pool: the third differs. In blocks of two the draft takes two more, of which one goes back."""
    load, pool = [Request(0, 8, 6)], PoolSetup(8, 2)
    run = walk(load, continuous(1), STEP, pool, drafts(4, 2))
    assert run.rounds == {0: [Round(1, 4, 3), Round(2, 1, 2)]}
    assert [step.parts for step in run.steps()] == [(Part(0, 8, 0),), (Part(0, 5, 8),), (Part(0, 2, 11),)]
    assert run.output_steps(0) == [0, 1, 1, 1, 2, 2]
    assert run.output_times_ns(0) == [10, 20, 20, 20, 30, 30]
    assert run.intervals_ns(0) == [10, 0, 0, 10, 0]
    assert [each.thrown_away for each in run.rounds[0]] == [2, 0] and run.thrown_away_tokens == 2
    assert run.scheduled_tokens == 8 + 5 + 2 and run.peak_kv_tokens == 13
    assert [len(state.tables.get(0, ())) for state in replay(run, pool)] == [4, 7, 7, 0]
    assert run.peak_blocks == 7


def test_no_draft_reaches_beyond_the_last_declared_output_and_none_is_kept_beyond_the_last_given() -> None:
    exact = walk([Request(0, 5, 4)], continuous(1), STEP, speculation=drafts(7, 7))
    assert exact.rounds == {0: [Round(1, 2, 3)]} and exact.thrown_away_tokens == 0
    declared = walk([Request(0, 5, 4, max_output=6)], continuous(1), STEP, speculation=drafts(7, 7))
    assert declared.rounds == {0: [Round(1, 4, 3)]} and declared.thrown_away_tokens == 2
    assert walk([Request(0, 5, 1)], continuous(1), STEP, speculation=drafts(7, 7)).rounds == {}


@pytest.mark.parametrize("run", [walk, simulate], ids=["walk", "simulate"])
def test_drafts_of_no_token_change_nothing(run: Any) -> None:
    load = [Request(0, 2048, 8), Request(20 * MS, 900, 5), Request(30 * MS, 70, 30)]
    plain, none = (
        run(load, chunked(2, 512, 1024), FIT, PoolSetup(300), speculation=speculation)
        for speculation in (PLAIN, drafts(0, 0))
    )
    assert plain.rounds == none.rounds == {}
    assert list(plain.steps()) == list(none.steps()) and plain.total_ns == none.total_ns


def test_a_draft_costs_what_the_step_time_says_of_its_tokens_and_pairs() -> None:
    model = Fit(1000, 10, 1)
    run = walk([Request(0, 8, 6)], continuous(1), model, speculation=drafts(4, 2))
    assert [step.end_ns - step.start_ns for step in run.steps()] == [
        1000 + 80 + 36,
        1000 + 50 + (9 + 10 + 11 + 12 + 13),
        1000 + 20 + (12 + 13),
    ]


def test_each_verified_token_has_its_logits() -> None:
    card = device()
    run = walk([Request(0, 2048, 20)], continuous(1), card, speculation=drafts(4, 2))
    round_ns = run.intervals_ns(0)[0]
    assert round_ns == card(verifying(step_plan((5, 2048)), 4))
    more = card.flop(verifying(step_plan((5, 2048)), 4)) - card.flop(step_plan((5, 2048)))
    assert more == 4 * card.flop_per_request


def test_drafts_share_a_pass_or_have_one_a_token_and_the_longest_decides() -> None:
    load = [Request(0, 8, 9), Request(0, 8, 4)]
    acceptance, one_pass = GivenAcceptance(4, ((0,),)), Fit(3, 0, 0)
    for one_by_one, expected in ((False, [3, 3, 3, 3, 3, 3, 3, 0]), (True, [12, 12, 12, 12, 9, 6, 3, 0])):
        setup = SpeculationSetup(acceptance, Drafter(one_pass, one_by_one))
        run = walk(load, continuous(2), STEP, speculation=setup)
        assert [step.end_ns - step.start_ns - 10 for step in run.steps()] == [0, *expected]
        assert [run.drafting_ns(step) for step in run.steps()] == [0, *expected]


def test_the_passes_of_a_draft_network_see_tokens_and_context() -> None:
    network = Fit(0, 100, 1)
    each_of_two = [(4, 10), (2, 20)]  # three and one drafted tokens
    assert Drafter(network).time_ns(each_of_two) == 100 * 6 + (11 + 12 + 13 + 14) + (21 + 22)
    assert Drafter(network, one_by_one=True).time_ns(each_of_two) == 100 * 4 + (11 + 21) + 12 + 13
    assert Drafter(network).time_ns([]) == Drafter(network, one_by_one=True).time_ns([]) == 0


def test_a_token_budget_cuts_drafts_but_leaves_a_token_for_each_in_decode() -> None:
    load = [Request(0, 1, 9)] * 3
    run = walk(load, chunked(3, 4, 7), STEP, speculation=drafts(7, 0))
    second = list(run.steps())[1]
    assert second.decodes == (Part(0, 4, 1), Part(1, 2, 1), Part(2, 1, 1))


@pytest.mark.parametrize(("order", "new"), [(Order.DECODES_FIRST, [5, 11]), (Order.PROMPTS_FIRST, [1, 15])])
def test_drafts_have_the_turn_of_their_request(order: Order, new: list[int]) -> None:
    load = [Request(0, 4, 20), Request(5, 40, 2)]
    run = walk(load, chunked(2, 15, 16, order), STEP, speculation=drafts(4, 4))
    second = list(run.steps())[1]
    assert [second.decodes[0].new_tokens, second.prompts[0].new_tokens] == new


def test_a_draft_may_cost_another_request_its_kv() -> None:
    load, pool = [Request(0, 8, 8), Request(0, 8, 8)], PoolSetup(16, 2)
    plain, speculative = (walk(load, continuous(2), STEP, pool, speculation) for speculation in (PLAIN, drafts(7, 0)))
    assert plain.peak_blocks == 16 and not plain.preemptions
    small = PoolSetup(15, 2)
    without = walk(load, continuous(2), STEP, small)
    early = walk(load, continuous(2), STEP, small, drafts(7, 0))
    assert speculative.preemptions == []
    assert without.preemptions[0].step == 7 and early.preemptions[0].step == 1
    assert early.preemptions[0].lost_tokens == 8


def test_a_batch_ends_with_its_slowest() -> None:
    setup = SpeculationSetup(GivenAcceptance(4, ((4,), (1,), (0,))))
    run = walk([Request(0, 8, 31)] * 3, continuous(3), STEP, speculation=setup)
    assert [int(time) for time in run.finish_ns] == [10 + 10 * rounds for rounds in (6, 15, 30)]
    assert run.total_ns == 310
    assert [len(run.rounds[place]) for place in range(3)] == [6, 15, 29], "the last step has no room for a draft"


def test_only_confirmed_tokens_are_found() -> None:
    """The second prompt goes on as the first request does: it finds what had been confirmed, not what was drafted."""
    text = list(range(100, 140))
    load = [Request(0, 16, 20, ids=text[:36]), Request(15, 40, 1, ids=text)]
    found = {
        accepted: next(
            step.prompts[0].context
            for step in walk(
                load, continuous(2), STEP, PoolSetup(50, 4, findable=Findable.ON_ADMISSION), drafts(7, accepted)
            ).steps()
            if step.prompts and step.prompts[0].place == 1
        )
        for accepted in (0, 3, 7)
    }
    assert found == {0: 16, 3: 20, 7: 24}  # of 17, 20 and 24 tokens in KV
    once_done = walk(load, continuous(2), STEP, PoolSetup(50, 4, findable=Findable.ONCE_DONE), drafts(7, 7))
    assert list(once_done.steps())[2].prompts[0].context == 24


def test_who_goes_away_leaves_with_what_was_confirmed() -> None:
    load = [Request(0, 8, 30, cancel_ns=25)]
    run = walk([*load, Request(0, 8, 30)], continuous(2), STEP, PoolSetup(40, 2), drafts(4, 2))
    (gone,) = run.cancellations
    assert (gone.step, gone.place, gone.outputs, gone.lost_tokens) == (3, 0, 7, 14)
    assert len(run.output_times_ns(0)) == 7


def test_making_drafts_is_an_account_of_its_own() -> None:
    load = [Request(0, 8, 6), Request(0, 8, 1)]
    setup = SpeculationSetup(GivenAcceptance(4, ((2,),)), Drafter(Fit(3, 0, 0), one_by_one=True))
    run = walk(load, continuous(2), STEP, speculation=setup)
    assert bill(run, 0).booked_ns[Account.DRAFTS] == 12 + 3
    assert bill(run, 0).booked_ns[Account.OWN_DECODE] == 20
    assert Account.DRAFTS not in bill(run, 1).booked_ns


# What holds for any run


def check_from_its_steps(run: Schedule, policy: Policy, pool: PoolSetup) -> None:
    """Each part goes on behind what is confirmed, only that is found, and no block is held beyond it between steps."""
    texts = [
        ((request.ids or ()), [(place, at) for at in range(request.prompt + request.output)])
        for place, request in enumerate(run.requests)
    ]

    def full(place: int, length: int) -> set[tuple[object, ...]]:
        given_ids, own = texts[place]
        text = (*given_ids, *own[len(given_ids) :])
        return {text[:end] for end in range(pool.block_tokens, length + 1, pool.block_tokens)}

    computed = set[tuple[object, ...]]()
    held, outputs, peak = dict[int, int](), [0] * len(run.requests), 0
    given_in = {(each.step, place): each for place, rounds in run.rounds.items() for each in rounds}
    peak_tokens = 0
    for number, step in enumerate(run.steps()):
        for one in (*run.preemptions, *run.cancellations):
            if one.step == number:
                assert (held.pop(one.place, 0), outputs[one.place]) == (one.lost_tokens, one.outputs)
        assert sum(part.new_tokens for part in step.parts) <= policy.most_per_step
        if pool.findable == Findable.ON_ADMISSION:
            known = [(part.place, part.context + part.new_tokens) for part in step.prompts]
            computed.update(
                *(full(*each) for each in known + [(part.place, part.context + 1) for part in step.decodes])
            )
        for place, _, context in step.parts:
            if place not in held:
                assert context % pool.block_tokens == 0 and full(place, context) <= computed
                assert not context or pool.findable != Findable.NEVER
        during = dict(held)
        for place, new, context in step.parts:
            assert held.get(place, context) == context and new <= policy.most_per_request
            during[place] = context + new
            assert during[place] <= run.requests[place].most_tokens
        peak = max(peak, sum(map(pool.blocks_for, during.values())))
        peak_tokens = max(peak_tokens, sum(during.values()))
        for part in step.prompts:
            outputs[part.place] += during[part.place] == run.requests[part.place].prompt + outputs[part.place]
            held[part.place] = during[part.place]
        for place, new, context in step.decodes:
            came = given_in[number, place].outputs if new > 1 else 1
            assert 1 <= came <= new and (new == 1 or given_in[number, place].drafted == new - 1)
            outputs[place] += came
            held[place] = context + came
            assert held[place] == run.requests[place].prompt + outputs[place] - 1
        computed.update(*(full(place, held[place]) for place in held))
        for place in [place for place in held if outputs[place] == run.requests[place].output]:
            del held[place]
    gone = {one.place for one in run.cancellations}
    for place, request in enumerate(run.requests):
        assert place in gone or outputs[place] == request.output
        assert len(run.output_times_ns(place)) == outputs[place]
        assert run.longest_interval_ns[place] == max(run.intervals_ns(place), default=0)
    assert run.peak_kv_tokens == peak_tokens
    assert pool.findable != Findable.NEVER or run.peak_blocks == peak


def random_run(seed: int) -> tuple[Schedule, Policy, PoolSetup, SpeculationSetup]:
    draw = Random(seed)
    load = random_pooled_load(draw)
    pool, policy, model = random_pool(draw, load), random_policy(draw, load), draw.choice(MODELS)
    setup = random_setup(draw)
    return walk(load, policy, model, pool, setup), policy, pool, setup


def test_runs_with_drafts_keep_their_limits() -> None:
    preempted = cancelled = thrown_away = 0
    for seed in range(200):
        run, policy, pool, _ = random_run(seed)
        check_from_its_steps(run, policy, pool)
        preempted += len(run.preemptions)
        cancelled += len(run.cancellations)
        thrown_away += run.thrown_away_tokens
        *_, at_the_end = replay(run, pool)
        assert not at_the_end.tables
    assert min(preempted, cancelled, thrown_away) > 30


@given(SEEDS)
def test_each_token_is_computed_once_but_for_what_was_lost_or_thrown_away(seed: int) -> None:
    draw = Random(seed)
    load = [replace(request, cancel_ns=None) for request in random_pooled_load(draw)]
    pool, policy = replace(random_pool(draw, load), findable=Findable.NEVER), random_policy(draw, load)
    run = walk(load, policy, draw.choice(MODELS), pool, random_setup(draw))
    needed = sum(request.prompt + request.output - 1 for request in run.requests)
    lost = sum(one.lost_tokens for one in run.preemptions)
    assert run.scheduled_tokens == needed + lost + run.thrown_away_tokens
    for place, request in enumerate(run.requests):
        assert bill(run, place).total_ns == run.finish_ns[place] - request.arrival_ns


@given(SEEDS)
def test_where_nothing_is_accepted_each_step_gives_an_output_as_without_drafts(seed: int) -> None:
    draw = Random(seed)
    load = random_pooled_load(draw)
    policy = continuous(draw.randint(1, 5))
    plain = walk(load, policy, STEP)
    refused = walk(load, policy, STEP, speculation=drafts(draw.randint(1, 9), 0))
    for place in range(len(load)):
        assert plain.output_times_ns(place) == refused.output_times_ns(place)


@given(SEEDS)
def test_a_run_equals_the_plain_one(seed: int) -> None:
    draw = Random(seed)
    rows, size, length = draw.randint(1, 5), draw.choice([1, 2, 4, 16]), draw.choice([0, 1, 3, 7])
    now, load = 0, []
    for _ in range(draw.randint(1, 8)):
        now += draw.choice([0, 0, draw.randint(0, 3000)])
        output = draw.randint(1, 30)
        load.append(Request(now, draw.randint(1, 40), output, output + draw.choice([0, 4])))
    largest = max(-(-request.most_tokens // size) for request in load)
    blocks = largest + draw.choice([0, 1, largest, 1000])
    chunk = draw.randint(1, 40)
    policy = chunked(rows, chunk, rows + draw.choice([0, 2, 40]))
    model, drafting = draw.choice([Fit(100, 10, 1), FIT, device()]), Fit(7, 1, 0)
    rounds = tuple(tuple(draw.randint(0, length) for _ in range(draw.randint(1, 6))) for _ in load)
    setup = SpeculationSetup(GivenAcceptance(length, rounds), Drafter(drafting))
    run = walk(load, policy, model, PoolSetup(blocks, size), setup)

    def step_ns(parts: list[tuple[int, int, int]]) -> int:
        drafted = [(new + more, context) for new, more, context in parts if more]
        of_drafts = 7 + sum(tokens for tokens, _ in drafted) if drafted else 0
        segments = ((new + more, context) for new, more, context in parts)
        return of_drafts + model(verifying(step_plan(*segments), sum(more for _, more, _ in parts)))

    plain = plain_run(
        [(request.arrival_ns, request.prompt, request.output, request.declared_output) for request in load],
        rows, chunk, policy.most_per_step, size, blocks, length,
        lambda place, number: rounds[place][number % len(rounds[place])], step_ns,
    )  # fmt: skip
    assert [run.output_times_ns(place) for place in range(len(load))] == plain.output_times
    assert [(one.step, one.place) for one in run.preemptions] == plain.preempted
    assert (run.thrown_away_tokens, run.peak_blocks) == (plain.thrown_away, plain.peak_blocks)


# How many rounds it takes


def rounds_of(acceptance: Acceptance, outputs: int) -> int:
    """Steps behind the first output of a single request."""
    return walk([Request(0, 8, outputs)], continuous(1), STEP, speculation=SpeculationSetup(acceptance)).step_count - 1


@pytest.mark.parametrize("length", [1, 2, 4, 7])
def test_with_all_accepted_each_round_gives_one_more_than_its_draft(length: int) -> None:
    for outputs in (1, 2, 8, 9, 100):
        assert rounds_of(GivenAcceptance(length, ((length,),)), outputs) == ceil((outputs - 1) / (length + 1))


def test_over_all_outcomes_the_rounds_are_those_expected() -> None:
    probabilities, outputs = (0.75, 0.5), 6  # the prompt gives one output, five more come in at most five rounds
    chances = output_distribution(probabilities)
    total = sum(
        prod(chances[accepted] for accepted in counts) * rounds_of(GivenAcceptance(2, (counts,)), outputs)
        for counts in product(range(3), repeat=outputs - 1)
    )
    assert total == expected_rounds(probabilities, outputs - 1), "each probability is a binary fraction"


def test_drawn_rounds_are_near_those_expected() -> None:
    probabilities, outputs = (0.75, 0.5, 0.25), 20
    drawn = [rounds_of(DrawnAcceptance(probabilities, seed), outputs) for seed in range(2000)]
    spread = (sum((each - mean(drawn)) ** 2 for each in drawn) / len(drawn)) ** 0.5
    assert abs(mean(drawn) - expected_rounds(probabilities, outputs - 1)) < 4 * spread / len(drawn) ** 0.5
    assert spread > 0.5


@pytest.mark.parametrize("acceptance", [(0.25,) * 4, (0.75,) * 4])
def test_a_single_request_takes_its_rounds_at_the_time_of_one(acceptance: tuple[float, ...]) -> None:
    """Over a long answer its time per output is that of the closed form, where a step takes the same time always."""
    plain_ns, query_ns, outputs = 26 * MS, MS // 10, 4000
    setup = SpeculationSetup(DrawnAcceptance(acceptance, seed=1), Drafter(Fit(query_ns, 0, 0)))
    run = walk([Request(0, 8, outputs)], continuous(1), Fit(plain_ns, 0, 0), speculation=setup)
    closed = Speculation(acceptance, query_ns / 1e9, plain_ns / 1e9, plain_ns / 1e9)
    rounds = len(run.rounds[0])
    without_draft = run.step_count - rounds
    assert run.total_ns == rounds * (query_ns + plain_ns) + without_draft * plain_ns
    assert (run.total_ns - plain_ns) / 1e9 == pytest.approx(closed.time_of(outputs - 1), rel=0.03)
    assert run.total_ns / outputs / 1e9 == pytest.approx(closed.s_per_output, rel=0.03)


@pytest.mark.parametrize("length", [dflash.K7, dflash.K15])
def test_recorded_rounds_deliver_in_the_engine_what_they_delivered(length: int) -> None:
    answer = record("dflash_tasks").one(task=TASK)
    accepted = tuple(each.accepted for each in dflash.recorded_rounds(length, TASK))
    request = Request(0, answer["input_tokens"], answer["output_tokens"], max_output=512)
    run = walk([request], continuous(1), STEP, speculation=drafts(length, *accepted))
    assert tuple(each.outputs for each in run.rounds[0]) == dflash.delivered(length, TASK)
    assert run.step_count == 1 + len(accepted)


def test_draws_depend_on_request_and_round_alone() -> None:
    acceptance = DrawnAcceptance((0.5,) * 8, seed=3)
    drawn = [[acceptance.accepted(place, number) for number in range(200)] for place in range(3)]
    assert drawn == [[acceptance.accepted(place, number) for number in range(200)] for place in range(3)]
    assert drawn[0] != drawn[1] != drawn[2] and drawn[0] != [
        DrawnAcceptance((0.5,) * 8, seed=4).accepted(0, number) for number in range(200)
    ]
    for place in range(3):
        for reached in range(1, 4):
            share = sum(each >= reached for each in drawn[place]) / 200
            assert abs(share - 0.5**reached) < 4 * (0.5**reached * (1 - 0.5**reached) / 200) ** 0.5
    assert {DrawnAcceptance((1.0,) * 8).accepted(0, number) for number in range(50)} == {8}
    assert {DrawnAcceptance((0.0,) * 8).accepted(0, number) for number in range(50)} == {0}


# Memory of both models


def test_a_draft_network_takes_its_weights_and_its_kv_off_the_pool() -> None:
    assert blocks_beside_draft(1000, 0, 10, 0, 2) == 50
    assert blocks_beside_draft(1000, 100, 10, 0, 2) == 45
    assert blocks_beside_draft(1000, 100, 10, 5, 2) == 30
    assert blocks_beside_draft(1000, 1000, 10, 5, 2) == 0
    of_target = kv_bytes_per_token(QWEN3_8B)
    both = of_target, dflash.kv_bytes_of_both() - of_target
    pool_bytes = 10 * GIB
    alone, beside = (
        blocks_beside_draft(pool_bytes, weights, of_target, of_draft)
        for weights, of_draft in ((0, 0), (dflash.weight_bytes(), both[1]))
    )
    assert alone == pool_bytes // (16 * of_target)
    assert beside == (pool_bytes - dflash.weight_bytes()) // (16 * dflash.kv_bytes_of_both()) < alone


WRONG = (
    (lambda: GivenAcceptance(-1, ((0,),)), "length"),
    (lambda: GivenAcceptance(True, ((0,),)), "length"),
    (lambda: GivenAcceptance(10**9, ((0,),)), "length"),
    (lambda: GivenAcceptance(2, ()), "rounds"),
    (lambda: GivenAcceptance(2, ((),)), "rounds"),
    (lambda: GivenAcceptance(2, ((3,),)), "rounds"),
    (lambda: GivenAcceptance(2, ((0.5,),)), "rounds"),  # type: ignore[arg-type]
    (lambda: GivenAcceptance(2, (1, 2)), "rounds"),  # type: ignore[arg-type]
    (lambda: GivenAcceptance(2, "12"), "rounds"),  # type: ignore[arg-type]
    (lambda: DrawnAcceptance((1.5,)), "probabilities"),
    (lambda: DrawnAcceptance((float("nan"),)), "probabilities"),
    (lambda: DrawnAcceptance((True,)), "probabilities"),
    (lambda: DrawnAcceptance(0.5), "probabilities"),  # type: ignore[arg-type]
    (lambda: DrawnAcceptance((0.5,) * 2000), "probabilities"),
    (lambda: DrawnAcceptance((0.5,), -1), "seed"),
    (lambda: DrawnAcceptance((0.5,), 10**30), "seed"),
    (lambda: Drafter(5), "step_time"),  # type: ignore[arg-type]
    (lambda: Drafter(STEP, 1), "one_by_one"),  # type: ignore[arg-type]
    (lambda: SpeculationSetup(0.75), "acceptance"),  # type: ignore[arg-type]
    (lambda: SpeculationSetup(GivenAcceptance(1, ((1,),)), STEP), "drafter"),  # type: ignore[arg-type]
    (lambda: walk([Request(0, 8, 2)], continuous(1), speculation=4), "speculation"),  # type: ignore[arg-type]
    (lambda: simulate([Request(0, 8, 2)], continuous(1), speculation=None), "speculation"),  # type: ignore[arg-type]
    (lambda: blocks_beside_draft(100, 101, 1, 1), "draft_weight_bytes"),
    (lambda: verifying(step_plan((4, 10)), 4), "drafted"),
)


@pytest.mark.parametrize(("call", "parameter"), WRONG)
def test_what_makes_no_sense_is_refused_by_name(call: object, parameter: str) -> None:
    assert callable(call)
    with pytest.raises(InputError) as refused:
        call()
    assert refused.value.parameter == parameter


@pytest.mark.parametrize("acceptance", [GivenAcceptance(4, ((1, 2), (3,))), DrawnAcceptance((0.5,) * 4, seed=2**32)])
def test_a_place_and_a_number_of_any_type_of_whole_numbers_give_the_same(acceptance: Acceptance) -> None:
    for place, number in product(range(3), range(3)):
        assert acceptance.accepted(np.int64(place), np.int32(number)) == acceptance.accepted(place, number)
    for wrong in (-1, 0.5, True, None, "1", 10**400):
        with pytest.raises(InputError, match=r"^place is "):
            acceptance.accepted(wrong, 0)  # type: ignore[arg-type]
        with pytest.raises(InputError, match=r"^number is "):
            acceptance.accepted(0, wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [-1, 5, 0.5, True, None], ids=repr)
def test_an_acceptance_of_ones_own_is_asked_for_what_can_be(wrong: Any) -> None:
    class Own(Acceptance):
        draft_tokens = 4

        def accepted(self, place: int, number: int) -> int:
            return wrong if number else 2

    with pytest.raises(InputError, match=r"^accepted is .*; allowed: a whole number from 0 to 4$"):
        walk([Request(0, 8, 20)], continuous(1), STEP, speculation=SpeculationSetup(Own()))
