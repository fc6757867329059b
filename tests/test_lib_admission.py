"""Admission: the rule, the forecast, and the gateway against a plain one that tries each moment."""

import math
from dataclasses import replace
from math import ceil, nan
from random import Random
from typing import Any

import pytest

from lib.admission import Answer, Engine, ServiceForecast, Verdict, decide, time_used, verdict
from lib.arrivals import even, load_of, poisson
from lib.checks import InputError
from lib.design_problem import SHORT_CHAT, timed_request
from lib.fast_forward import simulate
from lib.memory import RequestShape
from lib.residency import Gate, PoolSetup
from lib.scheduling import Policy, Request, ToolWait, continuous, fixed_batch
from lib.speculation import expected_outputs
from lib.speculation_setup import DrawnAcceptance, SpeculationSetup
from lib.step_time import FIT, NS, Fit, decode_plan, step_plan, verifying

SECOND_LONG = Fit(NS, 0, 0)  # each step takes a second, whatever is in it


def test_the_rule_lets_the_chapters_request_in_and_not_if_it_waits_longer() -> None:
    used = time_used(100_000_000, 96_000_000, 256, 26_500_000)
    assert used == 6_953_500_000 == round(timed_request().total_s * NS)
    assert verdict(used, 7 * NS, 144, 144, 5461) == Verdict.LET_IN
    assert verdict(used + NS // 10, 7 * NS, 144, 144, 5461) == Verdict.TOO_LATE


def test_the_rule_asks_for_room_first_and_lets_in_what_just_fits() -> None:
    assert verdict(5, 5, 3, 3, 3) == Verdict.LET_IN
    assert verdict(6, 5, 3, 3, 3) == Verdict.TOO_LATE
    assert verdict(6, 5, 3, 2, 3) == Verdict.NO_ROOM
    assert verdict(6, 5, 4, 2, 3) == Verdict.NEVER_FITS
    assert verdict(5, 5, 0, 0, 0) == Verdict.LET_IN


def test_a_single_output_has_no_interval() -> None:
    assert time_used(3, 4, 1, 100) == 7


def test_alone_the_forecast_is_what_the_engine_needs() -> None:
    # By the fit a longer context costs a whole number of ns a step, so the middle stands for all.
    for outputs in (1, 2, 3, 256):
        request = Request(0, 2048, outputs)
        done = simulate([request], continuous(1)).total_ns
        assert abs(ServiceForecast(FIT)(request) - done) <= 3 * outputs


def test_the_forecast_of_full_rows_is_a_plain_sum() -> None:
    request, rows = Request(0, 100, 11), 4
    step, with_prompt = FIT(decode_plan(rows, 105)), FIT(step_plan((100, 0), *[(1, 105)] * 3))
    assert ServiceForecast(FIT, rows)(request) == with_prompt + 10 * step + 3 * (with_prompt - step)
    # Two outputs have one interval, and no more than one prompt comes between them.
    assert ServiceForecast(FIT, rows)(replace(request, output=2)) == pytest.approx(2 * with_prompt, abs=100)


def test_the_forecast_counts_what_is_declared_and_not_what_is_cached() -> None:
    forecast = ServiceForecast(FIT)
    assert forecast(Request(0, 100, 3, max_output=11)) == forecast(Request(0, 100, 11))
    cached = Request(0, 100, 1, cached_prefix=90)
    assert forecast(cached) == FIT(step_plan((10, 90)))


def test_the_forecast_of_drafts_counts_fewer_steps_with_more_rows() -> None:
    forecast = ServiceForecast(FIT, 1, 2.5, 3)
    step = FIT(verifying(step_plan((4, 105)), 3))
    assert forecast(Request(0, 100, 11)) == FIT(step_plan((100, 0))) + 4 * step


def test_the_forecast_counts_what_a_request_waits_for_tools() -> None:
    plain, waits = Request(0, 2048, 20), (ToolWait(3, NS), ToolWait(11, 2 * NS + 1))
    calling = replace(plain, tool_waits=waits)
    for forecast in (ServiceForecast(FIT), ServiceForecast(FIT, 4, 2.5, 3)):
        assert forecast(calling) == forecast(plain) + 3 * NS + 1
    done = simulate([calling], continuous(1)).total_ns
    assert abs(ServiceForecast(FIT)(calling) - done) <= 3 * 20


def test_a_tool_that_takes_too_long_makes_a_request_late() -> None:
    plain = Request(0, 8, 4)
    calling = replace(plain, tool_waits=(ToolWait(2, 5 * NS),))
    engine = Engine(continuous(1), SECOND_LONG, ServiceForecast(SECOND_LONG))
    assert decide([plain], [engine], 4)[0][0] == Answer(Verdict.LET_IN, 0, 4 * NS)
    assert decide([calling], [engine], 9)[0][0] == Answer(Verdict.LET_IN, 0, 9 * NS)
    assert decide([calling], [engine], 8.9)[0][0].verdict == Verdict.TOO_LATE
    assert simulate([calling], continuous(1), SECOND_LONG).total_ns == 9 * NS


def test_an_engine_that_answers_more_briefly_makes_only_the_calls_before_its_last_output() -> None:
    engine = replace(engine_of(1, None, 5), most_output=4)
    waits = tuple(ToolWait(output, 7) for output in (1, 3, 4, 6))
    served = engine.serves(Request(0, 8, 9, tool_waits=waits))
    assert (served.output, served.tool_waits) == (4, waits[:2])
    # One that declares more than it gives keeps its calls, all before its own last output.
    brief = engine.serves(Request(0, 8, 3, max_output=9, tool_waits=waits[:1]))
    assert (brief.output, brief.max_output, brief.tool_waits) == (3, 4, waits[:1])
    longer = Request(0, 8, 4, tool_waits=waits[:2])
    assert engine.serves(longer) is longer


@pytest.mark.parametrize("wrong", [5, None, [Request(0, 8, 2)]], ids=str)
def test_there_is_no_forecast_for_what_is_no_request(wrong: Any) -> None:
    with pytest.raises(InputError, match=r"^request is "):
        ServiceForecast(FIT)(wrong)


def plain_decide(
    requests: list[Request], rows: int, pool: PoolSetup | None, service: int, due: int
) -> list[tuple[int, int] | None]:
    """Forecast start and end of each, None if refused: each moment from its arrival on is tried."""
    booked: list[tuple[int, int, int]] = []
    found: list[tuple[int, int] | None] = []
    for request in requests:
        blocks = ceil((request.prompt + request.declared_output - 1) / pool.block_tokens) if pool else 0
        for start in range(request.arrival_ns, request.arrival_ns + due - service + 1):
            if any(start < other for other, _, _ in booked):
                continue  # nobody overtakes
            there = [(end, held) for begin, end, held in booked if begin <= start < end]
            if len(there) < rows and (not pool or sum(held for _, held in there) + blocks <= pool.blocks):
                booked.append((start, start + service, blocks))
                found.append((start, start + service))
                break
        else:
            found.append(None)
    return found


def random_case(draw: Random) -> tuple[list[Request], int, PoolSetup | None, int, int]:
    arrivals = sorted(draw.randint(0, 40) for _ in range(draw.randint(1, 25)))
    requests = []
    for at in arrivals:
        output = draw.randint(1, 6)
        requests.append(Request(at, draw.randint(1, 30), output, max_output=output + draw.randint(0, 4)))
    pool = PoolSetup(draw.randint(2, 12), draw.choice([1, 4, 8])) if draw.random() < 0.7 else None
    service = draw.randint(1, 12)
    return requests, draw.randint(1, 5), pool, service, draw.randint(1, 30)


def engine_of(rows: int, pool: PoolSetup | None, service: int) -> Engine:
    return Engine(continuous(rows), FIT, lambda request: service, pool)


@pytest.mark.parametrize("seed", range(8))
def test_the_gateway_decides_as_a_plain_one_does(seed: int) -> None:
    draw = Random(seed)
    for _ in range(60):
        requests, rows, pool, service, due = random_case(draw)
        answers = decide(requests, [engine_of(rows, pool, service)], due / NS)
        found = [
            (one.start_ns, one.end_ns) if one.verdict == Verdict.LET_IN else None
            for (one,) in answers
        ]  # fmt: skip
        assert found == plain_decide(requests, rows, pool, service, due)


@pytest.mark.parametrize("seed", range(4))
def test_no_row_is_used_twice_no_pool_overfull_and_nobody_expected_late(seed: int) -> None:
    draw = Random(100 + seed)
    for _ in range(60):
        requests, rows, pool, service, due = random_case(draw)
        answers = [asked[0] for asked in decide(requests, [engine_of(rows, pool, service)], due / NS)]
        inside = [(one, at) for one, at in zip(requests, answers, strict=True) if at.verdict == Verdict.LET_IN]
        for moment in range(80):
            there = [one for one, at in inside if at.start_ns <= moment < at.end_ns]
            assert len(there) <= rows
            assert not pool or sum(pool.blocks_for(one.most_tokens) for one in there) <= pool.blocks
        for one, at in inside:
            assert one.arrival_ns <= at.start_ns and at.end_ns <= one.arrival_ns + due
        for one, answer in zip(requests, answers, strict=True):
            never = bool(pool) and pool is not None and not pool.can_ever_hold(one)
            assert (answer.verdict == Verdict.NEVER_FITS) == never
            assert answer.verdict == Verdict.LET_IN or answer == Answer(answer.verdict)


def test_what_is_refused_leaves_the_books_as_they_were() -> None:
    """Without the refused requests the others get the same answers."""
    draw = Random(7)
    for _ in range(60):
        requests, rows, pool, service, due = random_case(draw)
        engine = engine_of(rows, pool, service)
        answers = [asked[0] for asked in decide(requests, [engine], due / NS)]
        kept = [one for one, at in zip(requests, answers, strict=True) if at.verdict == Verdict.LET_IN]
        if kept:
            again = [asked[0] for asked in decide(kept, [engine], due / NS)]
            assert again == [at for at in answers if at.verdict == Verdict.LET_IN]


def test_with_one_row_and_steps_of_one_length_the_forecast_is_the_truth() -> None:
    draw = Random(5)
    for _ in range(40):
        arrivals = sorted(draw.randint(0, 60) * NS for _ in range(12))
        requests = [Request(at, draw.randint(1, 9), draw.randint(1, 8)) for at in arrivals]
        engine = Engine(continuous(1), SECOND_LONG, ServiceForecast(SECOND_LONG))
        answers = [asked[0] for asked in decide(requests, [engine], draw.randint(1, 30))]
        inside = [(one, at) for one, at in zip(requests, answers, strict=True) if at.verdict == Verdict.LET_IN]
        if not inside:
            continue
        schedule = simulate([one for one, _ in inside], engine.policy, SECOND_LONG)
        assert schedule.started_ns.tolist() == [at.start_ns for _, at in inside]
        assert schedule.finish_ns.tolist() == [at.end_ns for _, at in inside]


def test_a_reason_is_room_only_where_a_row_is_free_in_time() -> None:
    # Two rows and room for one request: the second would have a row at once, but no blocks before it is too late.
    requests = [Request(0, 16, 1), Request(1, 16, 1), Request(1, 40, 1), Request(12, 16, 1)]
    pool = PoolSetup(1, 16)
    answers = [asked[0] for asked in decide(requests, [engine_of(2, pool, 10)], 12 / NS)]
    assert [one.verdict for one in answers] == [
        Verdict.LET_IN, Verdict.NO_ROOM, Verdict.NEVER_FITS, Verdict.LET_IN,
    ]  # fmt: skip
    assert answers[3].start_ns == 12
    late = [asked[0].verdict for asked in decide(requests[:2], [engine_of(1, None, 10)], 12 / NS)]
    assert late == [Verdict.LET_IN, Verdict.TOO_LATE]


def test_what_one_engine_refuses_is_offered_to_the_next() -> None:
    requests, one = [Request(0, 8, 2)] * 5, engine_of(1, None, 5)
    asked = decide(requests, [one, one], 10 / NS)
    assert [len(answers) for answers in asked] == [1, 1, 2, 2, 2]
    verdicts = [answers[-1].verdict for answers in asked]
    assert verdicts == [Verdict.LET_IN] * 4 + [Verdict.TOO_LATE]
    # The second has books of its own.
    assert [answers[-1].start_ns for answers in asked] == [0, 5, 0, 5, -1]


def test_a_faster_configuration_lets_in_what_would_be_late() -> None:
    load = load_of(even(2, 8), [SHORT_CHAT.shape_alone])
    slow = Engine(continuous(1), FIT, ServiceForecast(FIT))
    accept = DrawnAcceptance((0.9,) * 4)
    drafts = ServiceForecast(FIT, 1, expected_outputs(accept.probabilities), 4)
    quick = Engine(continuous(1), FIT, drafts, speculation=SpeculationSetup(accept))
    brief = Engine(continuous(1), FIT, ServiceForecast(FIT), most_output=16)
    only, with_drafts, with_brief = (
        sum(asked[-1].verdict == Verdict.LET_IN for asked in decide(load, engines, 7))
        for engines in ([slow], [slow, quick], [slow, brief])
    )
    assert only < with_drafts < with_brief == len(load)


def test_a_shorter_answer_is_the_same_request_with_fewer_outputs() -> None:
    engine = Engine(continuous(1), FIT, ServiceForecast(FIT), most_output=4)
    asked = Request(5, 3, 6, max_output=9, ids=list(range(9)), cancel_ns=70)
    brief = engine.serves(asked)
    assert (brief.output, brief.max_output, list(brief.ids or ())) == (4, 4, list(range(7)))
    assert (brief.arrival_ns, brief.prompt, brief.cancel_ns) == (5, 3, 70)
    for short in (Request(0, 3, 2), Request(0, 3, 2, max_output=4)):
        assert engine.serves(short) is short
    early = engine.serves(Request(0, 3, 2, max_output=9))
    assert (early.output, early.max_output) == (2, 4)


def test_a_gate_at_final_size_never_makes_wait_whom_exact_books_let_in() -> None:
    """Requests that end as forecast find the row and the blocks that the books say."""
    pool = PoolSetup(6, 4, Gate.FINAL_SIZE)
    engine = Engine(continuous(3), SECOND_LONG, ServiceForecast(SECOND_LONG, 3), pool)
    arrivals = [round(at / NS) * NS for at in poisson(1, 40, 3)]
    requests = load_of(arrivals, [RequestShape(5, 4), RequestShape(9, 3)])
    answers = [asked[0] for asked in decide(requests, [engine], 9)]
    inside = [one for one, at in zip(requests, answers, strict=True) if at.verdict == Verdict.LET_IN]
    schedule = simulate(inside, engine.policy, SECOND_LONG, pool)
    assert schedule.finish_ns.tolist() == [at.end_ns for at in answers if at.verdict == Verdict.LET_IN]
    assert 0 < len(inside) < len(requests)


@pytest.mark.parametrize("deadline", [0, -1, nan, math.inf, True, "7", None, 1e10])
def test_a_deadline_that_makes_no_sense_is_refused(deadline: float) -> None:
    with pytest.raises(InputError, match="deadline_s"):
        decide([Request(0, 8, 2)], [engine_of(1, None, 5)], deadline)


def test_engines_and_loads_that_make_no_sense_are_refused() -> None:
    one, request = engine_of(1, None, 5), Request(0, 8, 2)
    for engines in ((), None, one, [one, None]):
        with pytest.raises(InputError, match="engines"):
            decide([request], engines, 7)  # type: ignore[arg-type]
    for load in ((), None, [request, 5]):
        with pytest.raises(InputError, match="requests"):
            decide(load, [one], 7)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="arrival_ns"):
        decide([Request(5, 8, 2), request], [one], 7)
    wrong: list[Any] = [0, -1, 1.5, nan, None]
    for forecast in wrong:
        with pytest.raises(InputError, match="forecast"):
            decide([request], [engine_of(1, None, forecast)], 7)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("policy", None), ("policy", fixed_batch(2)), ("step_time", 5), ("forecast", 5), ("pool", 16),
        ("speculation", None), ("most_output", 0), ("most_output", 1.5), ("most_output", True),
    ],
)  # fmt: skip
def test_an_engine_that_makes_no_sense_is_refused(field: str, value: Any) -> None:
    with pytest.raises(InputError, match=field):
        replace(engine_of(1, None, 5), **{field: value})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("step_time", None), ("rows", 0), ("rows", 1.5), ("rows", True), ("draft_tokens", -1),
        ("outputs_per_step", 0.9), ("outputs_per_step", 1.1), ("outputs_per_step", nan),
    ],
)  # fmt: skip
def test_a_forecast_that_makes_no_sense_is_refused(field: str, value: Any) -> None:
    with pytest.raises(InputError, match=field):
        replace(ServiceForecast(FIT), **{field: value})


def test_a_policy_with_a_budget_has_a_gateway_too() -> None:
    engine = replace(engine_of(1, None, 5), policy=Policy(2, chunk=8, token_budget=16))
    assert decide([Request(0, 8, 2)], [engine], 5 / NS)[0][0] == Answer(Verdict.LET_IN, 0, 5)
