"""Where drafts stop paying as a batch grows, against runs in the engine and against the balance of step times."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from lib.checks import InputError
from lib.four_requests import HOST_NS
from lib.scheduling import Request, continuous, walk
from lib.speculation import at_every_position, expected_outputs
from lib.speculation_by_batch import MOST_BATCH, SHORT_CONTEXT, SpeculativeDecode, context_that_always_pays
from lib.speculation_setup import Drafter, GivenAcceptance, SpeculationSetup
from lib.step_time import FIT, Fit, LaunchBound, StepTime, device

LIKELY = at_every_position(0.75, 4)
LAUNCH_BOUND = LaunchBound(HOST_NS, device())
MOST = 4096


def random_decode(draw: Random) -> SpeculativeDecode:
    model: StepTime = draw.choice([FIT, device(), LaunchBound(draw.randint(0, HOST_NS), device())])
    acceptance = tuple(draw.random() for _ in range(draw.randint(1, 9)))
    network = draw.choice([Fit(draw.randint(1, 5 * 10**6), 0, 0), replace(device(), weight_bytes=2 * 10**9)])
    drafter = draw.choice([None, Drafter(network), Drafter(network, one_by_one=True)])
    return SpeculativeDecode(draw.choice([0, 100, 2000, 8192]), acceptance, model, drafter)


@pytest.mark.parametrize("seed", range(30))
def test_a_round_takes_what_it_takes_in_the_engine(seed: int) -> None:
    draw = Random(seed)
    decode, batch = random_decode(draw), draw.randint(1, 12)
    drafted = len(decode.acceptance)
    decode = replace(decode, context=decode.context + 1)
    load = [Request(0, decode.context, drafted + 2)] * batch
    setup = SpeculationSetup(GivenAcceptance(drafted, ((drafted,),)), decode.drafter)
    with_drafts = walk(load, continuous(batch), decode.step_time, speculation=setup)
    assert [with_drafts.intervals_ns(0)[0]] == [decode.round_ns(batch)]
    assert walk(load, continuous(batch), decode.step_time).intervals_ns(0)[0] == decode.plain_ns(batch)
    expected = decode.round_ns(batch) / (decode.plain_ns(batch) * expected_outputs(decode.acceptance))
    assert decode.time_ratio(batch) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(30))
def test_up_to_the_batch_where_they_stop_drafts_pay(seed: int) -> None:
    decode = random_decode(Random(seed))
    found = decode.stops_paying_at(200)
    paying = [
        decode.round_ns(batch) < expected_outputs(decode.acceptance) * decode.plain_ns(batch) for batch in range(1, 201)
    ]
    assert paying[: (found or 201) - 1] == [True] * ((found or 201) - 1)
    assert found is None or not paying[found - 1]
    assert found is None or found > 1 or decode.time_ratio(1) >= 1


def test_at_8k_of_context_reading_kv_leaves_room_for_drafts_at_every_batch() -> None:
    long = SpeculativeDecode(8192, LIKELY, LAUNCH_BOUND)
    assert long.stops_paying_at(MOST) is None
    for batch in (1, 64, MOST):
        assert long.time_ratio(batch) == pytest.approx(1 / expected_outputs(LIKELY))


def test_at_a_short_context_or_with_a_quick_host_they_stop_paying() -> None:
    short = replace(SpeculativeDecode(8192, LIKELY, LAUNCH_BOUND), context=SHORT_CONTEXT)
    assert short.time_ratio(1) == pytest.approx(1 / expected_outputs(LIKELY))
    stops = short.stops_paying_at(MOST)
    sooner = replace(short, step_time=device()).stops_paying_at(MOST)
    unlikely = replace(short, acceptance=at_every_position(0.25, 4)).stops_paying_at(MOST)
    longer = replace(short, acceptance=at_every_position(0.25, 7)).stops_paying_at(MOST)
    assert stops is not None and sooner is not None and unlikely is not None and longer is not None
    assert longer < unlikely < sooner < stops
    assert short.time_ratio(MOST) == pytest.approx(5 / expected_outputs(LIKELY), rel=0.01)


@pytest.mark.parametrize("acceptance", [LIKELY, at_every_position(0.25, 4), at_every_position(0.25, 15), (0.9, 0.1)])
def test_from_some_context_on_reading_kv_takes_longer_than_any_verification(acceptance: tuple[float, ...]) -> None:
    found = context_that_always_pays(device(), acceptance)
    assert found is not None
    for model in (device(), LAUNCH_BOUND):
        assert SpeculativeDecode(found, acceptance, model).time_ratio(MOST_BATCH) < 1
        assert SpeculativeDecode(found, acceptance, model).stops_paying_at(MOST) is None
    assert SpeculativeDecode(found * 9 // 10, acceptance, device()).time_ratio(MOST_BATCH) > 1


def test_a_draft_that_reads_next_to_nothing_never_pays_at_every_batch() -> None:
    no_kv = replace(device(), kv_bytes_per_token=0)
    assert context_that_always_pays(no_kv, LIKELY) is None
    assert SpeculativeDecode(2**20, LIKELY, no_kv).time_ratio(MOST_BATCH) > 1


def test_a_draft_of_which_nothing_is_accepted_pays_at_no_context() -> None:
    hopeless = at_every_position(0, 4)
    assert context_that_always_pays(device(), hopeless) is None
    assert SpeculativeDecode(2**20, hopeless, device()).stops_paying_at(MOST) == 1


def test_a_draft_that_takes_longer_than_it_saves_never_pays() -> None:
    slow = SpeculativeDecode(2048, at_every_position(0.25, 4), LAUNCH_BOUND, Drafter(Fit(9 * 10**6, 0, 0)))
    assert slow.stops_paying_at(MOST) == 1
    assert replace(slow, drafter=Drafter(Fit(8 * 10**6, 0, 0))).time_ratio(1) < 1
    assert replace(slow, drafter=Drafter(Fit(3 * 10**6, 0, 0), one_by_one=True)).stops_paying_at(MOST) == 1


WRONG = (
    (lambda: SpeculativeDecode(-1, LIKELY, FIT), "context"),
    (lambda: SpeculativeDecode(2.5, LIKELY, FIT), "context"),  # type: ignore[arg-type]
    (lambda: SpeculativeDecode(8, (), FIT), "acceptance"),
    (lambda: SpeculativeDecode(8, (2.0,), FIT), "acceptance"),
    (lambda: SpeculativeDecode(8, LIKELY, 5), "step_time"),  # type: ignore[arg-type]
    (lambda: SpeculativeDecode(8, LIKELY, FIT, FIT), "drafter"),  # type: ignore[arg-type]
    (lambda: SpeculativeDecode(8, LIKELY, FIT).time_ratio(0), "batch"),
    (lambda: SpeculativeDecode(8, LIKELY, FIT).time_ratio(True), "batch"),
    (lambda: SpeculativeDecode(8, LIKELY, FIT).stops_paying_at(0), "most_batch"),
    (lambda: SpeculativeDecode(8, LIKELY, FIT).stops_paying_at(10**9), "most_batch"),
)


@pytest.mark.parametrize(("call", "parameter"), WRONG)
def test_what_makes_no_sense_is_refused_by_name(call: object, parameter: str) -> None:
    assert callable(call)
    with pytest.raises(InputError) as refused:
        call()
    assert refused.value.parameter == parameter


@pytest.mark.parametrize("wrong", [None, 3, FIT, "device"], ids=lambda value: repr(value)[:10])
def test_what_is_no_device_is_refused(wrong: Any) -> None:
    with pytest.raises(InputError, match=r"^device is "):
        context_that_always_pays(wrong, (0.5,))


def test_what_was_checked_is_kept() -> None:
    given = [0.5, 0.5]
    kept = SpeculativeDecode(128, given, FIT)  # type: ignore[arg-type]
    given[0] = 7
    assert kept.acceptance == (0.5, 0.5) and hash(kept)
