"""What becomes of a load: fates and tokens against what the expanded schedule says, the ways side by side."""

import math
from dataclasses import replace
from math import nan
from random import Random
from typing import Any

import pytest

from lib.admission import Engine, ServiceForecast, Verdict, decide
from lib.arrivals import at_once, even, load_of
from lib.bill import bill
from lib.checks import InputError
from lib.fast_forward import simulate
from lib.memory import RequestShape
from lib.overload import Fate, Served, cancel_at_deadline, computed_tokens, let_all_in, refuse_late
from lib.residency import Gate, PoolSetup
from lib.schedule import Schedule
from lib.scheduling import Request, continuous
from lib.speculation_setup import DrawnAcceptance, SpeculationSetup
from lib.step_time import FIT, NS, Fit
from tests.loads import MODELS, random_load, random_policy, random_pool, random_pooled_load

SECOND_LONG = Fit(NS, 0, 0)  # each step takes a second, whatever is in it
DRAFTS = SpeculationSetup(DrawnAcceptance((0.6, 0.6, 0.6), 3))
ONE_ROW = Engine(continuous(1), SECOND_LONG, ServiceForecast(SECOND_LONG))


def plain_tokens(schedule: Schedule) -> list[int]:
    """Tokens of each request, part by part, from every step written out."""
    tokens = [0] * len(schedule.requests)
    for step in schedule.steps():
        for part in step.parts:
            tokens[part.place] += part.new_tokens
    return tokens


@pytest.mark.parametrize("seed", range(6))
def test_computed_tokens_are_those_of_all_steps(seed: int) -> None:
    draw = Random(seed)
    for _ in range(15):
        load = random_load(draw)
        plain = simulate(load, random_policy(draw, load), draw.choice(MODELS))
        assert computed_tokens(plain).tolist() == plain_tokens(plain)
        pooled = random_pooled_load(draw)
        policy, pool = random_policy(draw, pooled), random_pool(draw, pooled)
        for speculation in (SpeculationSetup(DrawnAcceptance(())), DRAFTS):
            schedule = simulate(pooled, policy, FIT, pool, speculation)
            assert computed_tokens(schedule).tolist() == plain_tokens(schedule)


def plain_fates(requests: list[Request], served: Served, due: int) -> list[Fate]:
    """From the times of the schedule of the engine that each was let into, found by their order."""
    turn = [0] * len(served.schedules)
    fates = []
    for outcome in served.outcomes:
        if outcome.engine is None:
            fates.append(Fate.REFUSED)
            continue
        schedule, place = served.schedules[outcome.engine], turn[outcome.engine]
        assert schedule is not None
        turn[outcome.engine] += 1
        if place in {gone.place for gone in schedule.cancellations}:
            fates.append(Fate.GIVEN_UP)
        else:
            in_time = schedule.finish_ns[place] - outcome.request.arrival_ns <= due
            fates.append(Fate.IN_TIME if in_time else Fate.LATE)
    assert turn == [len(schedule.requests) if schedule else 0 for schedule in served.schedules]
    return fates


@pytest.mark.parametrize("seed", range(4))
def test_every_request_has_one_fate_and_the_counts_sum_up(seed: int) -> None:
    draw = Random(50 + seed)
    for _ in range(20):
        load = random_pooled_load(draw)
        pool = random_pool(draw, load)
        policy, due = continuous(draw.randint(1, 4)), draw.choice([10**8, 3 * 10**8, NS])
        engine = Engine(policy, FIT, ServiceForecast(FIT, policy.max_running), pool)
        other = replace(engine, speculation=DRAFTS, most_output=draw.choice([None, 3]))
        leaving = list(cancel_at_deadline(load, due / NS))
        ways = {
            "all in": (load, let_all_in(load, engine, due / NS)),
            "cancel": (leaving, let_all_in(leaving, engine, due / NS)),
            "refuse": (load, refuse_late(load, [engine], due / NS)),
            "pass on": (leaving, refuse_late(leaving, [engine, other], due / NS)),
        }
        for requests, served in ways.values():
            assert [outcome.request for outcome in served.outcomes] == requests
            assert [outcome.fate for outcome in served.outcomes] == plain_fates(requests, served, due)
            assert sum(served.count(fate) for fate in Fate) == len(requests)
            ran = [schedule for schedule in served.schedules if schedule]
            assert served.computed_tokens == sum(schedule.scheduled_tokens for schedule in ran)
            assert served.busy_ns == sum(step.end_ns - step.start_ns for one in ran for step in one.steps())
            assert 0 <= served.wasted_tokens <= served.computed_tokens
            in_time = served.count(Fate.IN_TIME)
            per_result = served.busy_ns_per_result
            assert per_result is None if not in_time else per_result == served.busy_ns / in_time
            for outcome in served.outcomes:
                refused = outcome.fate == Fate.REFUSED
                assert refused == (outcome.engine is None) == (outcome.verdict != Verdict.LET_IN)
                assert not refused or (outcome.started_ns, outcome.finish_ns, outcome.computed_tokens) == (-1, -1, 0)
                assert (outcome.finish_ns >= 0) == (outcome.fate in (Fate.IN_TIME, Fate.LATE))


def test_no_two_run_at_a_time_on_one_row_and_three_ways_differ_as_counted_by_hand() -> None:
    """A request a second, each takes two, a deadline of five: by hand."""
    load = load_of(even(1, 8), [RequestShape(8, 2)])
    all_in = let_all_in(load, ONE_ROW, 5)
    assert [outcome.finish_ns // NS for outcome in all_in.outcomes] == [2, 4, 6, 8, 10, 12, 14, 16]
    assert (all_in.count(Fate.IN_TIME), all_in.count(Fate.LATE)) == (4, 4)
    # From the fourth on each starts three seconds after its arrival: one comes just in time, the next waits in vain.
    refused = refuse_late(load, [ONE_ROW], 5)
    assert [outcome.finish_ns // NS for outcome in refused.outcomes] == [2, 4, 6, 8, -1, 10, -1, 12]
    assert (refused.count(Fate.IN_TIME), refused.count(Fate.REFUSED), refused.wasted_tokens) == (6, 2, 0)
    gone = let_all_in(cancel_at_deadline(load, 5), ONE_ROW, 5)
    # The fifth starts at 8 and its user goes away at 9; the sixth starts at 9 and its user goes away at 10; ...
    assert [outcome.started_ns // NS for outcome in gone.outcomes] == [0, 2, 4, 6, 8, 9, 10, 11]
    assert (gone.count(Fate.IN_TIME), gone.count(Fate.GIVEN_UP)) == (4, 4)
    assert gone.wasted_tokens == 4 * 8 < all_in.wasted_tokens == 4 * 9
    assert (all_in.busy_ns, gone.busy_ns, refused.busy_ns) == (16 * NS, 12 * NS, 12 * NS)
    assert refused.busy_ns_per_result == 2 * NS


def test_who_goes_away_within_a_step_is_computed_until_its_end() -> None:
    (asked,) = cancel_at_deadline([Request(0, 8, 5)], 1.5)
    served = let_all_in([asked], ONE_ROW, 1.5)
    assert served.busy_ns == 2 * NS and served.count(Fate.GIVEN_UP) == 1
    # In its last step it still ends, too late.
    (brief,) = cancel_at_deadline([Request(0, 8, 2)], 1.5)
    assert let_all_in([brief], ONE_ROW, 1.5).count(Fate.LATE) == 1
    assert let_all_in([brief], ONE_ROW, 2).count(Fate.IN_TIME) == 1


def test_users_who_go_away_sooner_still_do() -> None:
    late = Request(2**63 - 5, 8, 2)
    assert cancel_at_deadline([late], 1) == (replace(late, cancel_ns=2**63 - 1),)
    load = [Request(5, 8, 2, cancel_ns=7), Request(5, 8, 2, cancel_ns=3 * NS), Request(6, 8, 2)]
    assert [one.cancel_ns for one in cancel_at_deadline(load, 1)] == [7, 5 + NS, 6 + NS]


def test_cancelled_requests_give_their_blocks_to_others() -> None:
    pool = PoolSetup(2, 16, Gate.FINAL_SIZE)
    engine = Engine(continuous(2), SECOND_LONG, ServiceForecast(SECOND_LONG), pool)
    load = load_of(at_once(2), [RequestShape(28, 5)])
    served = let_all_in(cancel_at_deadline(load, 2.5), engine, 2.5)
    assert [outcome.started_ns for outcome in served.outcomes] == [0, -1]
    later = [*cancel_at_deadline(load[:1], 2.5), load[1]]
    assert [outcome.started_ns for outcome in let_all_in(later, engine, 2.5).outcomes] == [0, 3 * NS]


def test_what_no_pool_could_hold_is_refused_by_each_way() -> None:
    pool = PoolSetup(2, 16)
    engine = Engine(continuous(2), SECOND_LONG, ServiceForecast(SECOND_LONG), pool)
    load = [Request(0, 40, 2), Request(0, 8, 2), Request(0, 30, 9)]
    for served in (let_all_in(load, engine, 9), refuse_late(load, [engine], 9)):
        assert [outcome.verdict for outcome in served.outcomes] == [
            Verdict.NEVER_FITS, Verdict.LET_IN, Verdict.NEVER_FITS,
        ]  # fmt: skip
    with pytest.raises(InputError, match="requests"):
        let_all_in(load[:1], engine, 9)
    nobody = refuse_late(load[:1], [engine], 9)
    assert nobody.schedules == (None,) and nobody.busy_ns == nobody.computed_tokens == 0
    assert nobody.busy_ns_per_result is None


def test_a_request_is_answered_by_the_engine_that_let_it_in() -> None:
    brief = replace(ONE_ROW, most_output=1)
    load = load_of(at_once(3), [RequestShape(8, 4)])
    served = refuse_late(load, [ONE_ROW, brief], 4)
    assert [outcome.engine for outcome in served.outcomes] == [0, 1, 1]
    assert [outcome.finish_ns // NS for outcome in served.outcomes] == [4, 1, 2]
    assert [outcome.request.output for outcome in served.outcomes] == [4, 4, 4]
    assert served.count(Fate.IN_TIME) == 3


def test_a_forecast_can_be_too_hopeful_and_too_careful() -> None:
    load = load_of(at_once(4), [RequestShape(8, 2)])
    hopeful = replace(ONE_ROW, forecast=lambda request: NS)
    assert [outcome.fate for outcome in refuse_late(load, [hopeful], 4).outcomes] == [
        Fate.IN_TIME, Fate.IN_TIME, Fate.LATE, Fate.LATE,
    ]  # fmt: skip
    careful = replace(ONE_ROW, forecast=lambda request: 3 * NS)
    assert refuse_late(load, [careful], 4).count(Fate.IN_TIME) == 1
    assert refuse_late(load, [ONE_ROW], 4).count(Fate.IN_TIME) == 2


def test_the_gateway_sees_what_is_declared_and_the_engine_what_is_given() -> None:
    load = [Request(0, 8, 1, max_output=9)] * 2
    served = refuse_late(load, [ONE_ROW], 9)
    assert [outcome.fate for outcome in served.outcomes] == [Fate.IN_TIME, Fate.REFUSED]
    assert [asked[0].end_ns for asked in decide(load, [ONE_ROW], 9)] == [9 * NS, -1]
    assert served.outcomes[0].finish_ns == NS


@pytest.mark.parametrize("deadline", [0, -1, nan, math.inf, True, "7", None])
def test_a_deadline_that_makes_no_sense_is_refused(deadline: float) -> None:
    load = [Request(0, 8, 2)]
    with pytest.raises(InputError, match="deadline_s"):
        let_all_in(load, ONE_ROW, deadline)
    with pytest.raises(InputError, match="deadline_s"):
        cancel_at_deadline(load, deadline)
    with pytest.raises(InputError, match="deadline_s"):
        refuse_late(load, [ONE_ROW], deadline)


def test_loads_and_engines_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InputError, match="engine"):
        let_all_in([Request(0, 8, 2)], None, 7)  # type: ignore[arg-type]
    for load in ([], None, 5, [None]):
        with pytest.raises(InputError, match="requests"):
            let_all_in(load, ONE_ROW, 7)  # type: ignore[arg-type]
        with pytest.raises(InputError, match="requests"):
            cancel_at_deadline(load, 7)  # type: ignore[arg-type]
        with pytest.raises(InputError, match="requests"):
            refuse_late(load, [ONE_ROW], 7)  # type: ignore[arg-type]


def test_a_load_may_be_given_one_by_one() -> None:
    load = load_of(even(2, 6), [RequestShape(8, 2)])
    assert refuse_late(iter(load), [ONE_ROW], 7) == refuse_late(load, [ONE_ROW], 7)  # type: ignore[arg-type]
    assert let_all_in(iter(load), ONE_ROW, 7) == let_all_in(load, ONE_ROW, 7)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [None, 5, [Request(0, 8, 2)]], ids=str)
def test_what_is_no_schedule_has_no_tokens_and_no_bill(wrong: Any) -> None:
    with pytest.raises(InputError, match=r"^schedule is "):
        computed_tokens(wrong)
    with pytest.raises(InputError, match=r"^schedule is "):
        bill(wrong, 0)
