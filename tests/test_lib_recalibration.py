"""A step time fitted to what a client saw: files of which the truth is known, and files that cannot tell it."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pytest

from lib import made_benchmark
from lib.benchmark_file import MADE, Benchmark, MeasuredRequest, read_benchmark
from lib.checks import InputError
from lib.fast_forward import simulate
from lib.recalibration import TERMS, fitted, non_negative, replay, steps_of
from lib.scheduling import Policy, Request, chunked, continuous
from lib.step_time import FIT, Fit, LaunchBound, StepTime, device, step_plan

MS = 10**6


def benchmark(requests: Sequence[MeasuredRequest]) -> Benchmark:
    last = max((one.sent_s or 0) + (one.latency_s or 0) for one in requests)
    return Benchmark("made.json", 0, 1, last + 0.01, tuple(requests), None, None, {})


def measured(
    load: Sequence[Request], policy: Policy, model: StepTime, late_s: float = 0.0, in_pairs: float = 0.0, seed: int = 1
) -> Benchmark:
    """A run of the simulator as a client would see it: late by up to `late_s`, now and then by twenty times as much."""
    draw, ran = Random(seed), simulate(load, policy, model)
    found = []
    for place, one in enumerate(load):
        times = ran.output_times_ns(place)
        if draw.random() < in_pairs:
            times = [times[0], *times[2::2], *([times[-1]] if len(times) % 2 == 0 else [])]
        seen: list[float] = []
        for time in times:
            late = late_s * draw.random() * (20 if draw.random() < 0.01 else 1)
            seen.append(max(time / 1e9 + late, seen[-1] if seen else 0.0))
        sent = one.arrival_ns / 1e9
        intervals = tuple(later - earlier for earlier, later in pairwise(seen))
        found.append(MeasuredRequest(one.prompt, one.output, seen[0] - sent, intervals, sent))
    return benchmark(found)


def drawn_load(draw: Random, count: int, rate: float) -> list[Request]:
    at, load = 0, []
    for _ in range(count):
        prompt = draw.choice([draw.randint(50, 1500), draw.randint(2000, 9000)])
        load.append(Request(at, prompt, draw.randint(1, 60)))
        at += round(draw.expovariate(rate) * 1e9)
    return load


def drawn_case(seed: int) -> tuple[list[Request], Policy, Fit]:
    draw = Random(seed)
    model = Fit(draw.randint(5, 30) * MS, draw.randint(10, 90) * 1000, draw.randint(0, 8))
    rows = draw.randint(2, 16)
    policy = draw.choice([continuous(rows), chunked(rows, 512, 2048), chunked(rows, 2048, 4096)])
    return drawn_load(draw, 60, draw.choice([0.5, 2, 6])), policy, model


@pytest.mark.parametrize("seed", range(12))
def test_a_fit_is_found_again_to_the_microsecond_where_nothing_is_late(seed: int) -> None:
    load, policy, model = drawn_case(seed)
    found = fitted(measured(load, policy, model), policy)
    assert found.fit.fixed_ns == pytest.approx(model.fixed_ns, abs=1000)
    assert found.fit.per_new_token_ns == pytest.approx(model.per_new_token_ns, abs=5)
    assert found.fit.per_causal_pair_ns == model.per_causal_pair_ns
    assert found.error < 1e-4


@pytest.mark.parametrize("seed", range(12, 24))
def test_late_tokens_and_chunks_of_two_hardly_matter(seed: int) -> None:
    load, policy, model = drawn_case(seed)
    found = fitted(measured(load, policy, model, late_s=0.0005, in_pairs=0.2, seed=seed), policy)
    assert found.fit.fixed_ns == pytest.approx(model.fixed_ns, rel=0.01)
    assert found.fit.per_new_token_ns == pytest.approx(model.per_new_token_ns, rel=0.05)
    assert found.fit.per_causal_pair_ns == pytest.approx(model.per_causal_pair_ns, abs=1)


@pytest.mark.parametrize("seed", range(6))
def test_an_engine_that_waits_for_its_host_is_met_on_the_whole(seed: int) -> None:
    """No three terms are max(host, device), so the replay is near the file, not equal to it."""
    draw = Random(seed)
    model, policy = LaunchBound(draw.randint(9, 26) * MS, device()), chunked(8, 2048, 2048)
    run = measured(drawn_load(draw, 80, 2), policy, model, late_s=0.0003, seed=seed)
    found = fitted(run, policy)
    assert found.fit.fixed_ns == pytest.approx(model(step_plan((1, 1000))), rel=0.06)
    came = replay(run, policy, found.fit)
    assert came.interval_error is not None and came.interval_error < 0.06
    assert came.ttft_error < 0.25


def test_the_made_file_gives_back_what_it_was_made_with() -> None:
    true = made_benchmark.FIT
    for number in range(len(made_benchmark.RATES_PER_S)):
        run = read_benchmark(MADE, number)
        found = fitted(run, made_benchmark.POLICY)
        for name, within in zip(TERMS, found.within_ns, strict=True):
            apart = abs(getattr(found.fit, name) - getattr(true, name))
            assert apart <= max(5 * within, 1) and apart <= 0.01 * getattr(true, name)
        came = replay(run, made_benchmark.POLICY, found.fit)
        assert came.ttft_error < 0.01 and came.interval_error is not None and came.interval_error < 0.01


def test_a_replay_with_the_true_step_time_is_what_was_measured() -> None:
    for seed in range(8):
        load, policy, model = drawn_case(seed)
        came = replay(measured(load, policy, model), policy, model)
        for one in came.compared:
            assert one.predicted_ttft_s == pytest.approx(one.measured_ttft_s, abs=1e-8)
            assert (one.predicted_interval_s is None) == (one.measured_interval_s is None)
            if one.measured_interval_s:
                assert one.predicted_interval_s == pytest.approx(one.measured_interval_s, abs=1e-8)
        assert came.ttft_error < 1e-6 and (came.interval_error or 0) < 1e-6


def test_a_replay_under_other_limits_is_a_run_like_any_other() -> None:
    run = read_benchmark(MADE, 2)
    came = replay(run, chunked(4, 1024, 1024), made_benchmark.FIT)
    assert [one.place for one in came.compared] == [at for at, one in enumerate(run.requests) if not one.failed]
    flags = [int(not one.failed) for one in run.requests]
    window = came.predicted.with_correctness(flags)
    assert (window.completed, came.predicted.failed) == (run.completed, run.failed)
    assert window.length_s > run.duration_s, "with half the rows it takes longer"
    assert came.measured == run


def test_a_replay_lasts_until_its_own_last_token() -> None:
    """A client that took long to stop, or a slow engine, does not lengthen it: a faster engine raises the bar."""
    load, policy, model = drawn_case(3)
    run = measured(load, policy, model)
    run = replace(run, duration_s=run.duration_s + 1000)
    came = replay(run, policy, model).predicted
    assert came.observed_s == pytest.approx(run.observed_s - 1000.01, abs=1e-6)
    faster = Fit(model.fixed_ns // 2, model.per_new_token_ns // 2, model.per_causal_pair_ns // 2)
    sooner = replay(run, policy, faster).predicted
    assert sooner.observed_s < came.observed_s
    assert sooner.completion_throughput > came.completion_throughput
    window = sooner.with_correctness([1] * len(load))
    assert window.length_s == max(one.finish_s or 0.0 for one in window.outcomes)


def test_a_replay_lasts_until_the_last_sending_at_least() -> None:
    load, policy, model = drawn_case(3)
    run = measured(load, policy, model)
    end = run.observed_s + 5
    lost = MeasuredRequest(500, 0, 0.0, (), end, "timed out")
    came = replay(replace(run, duration_s=end + 1, requests=(*run.requests, lost)), policy, model).predicted
    assert came.observed_s == end == came.with_correctness([1] * len(load) + [0]).length_s


def test_failed_requests_are_left_out_of_fit_and_replay() -> None:
    load, policy, model = drawn_case(3)
    run = measured(load, policy, model)
    lost = MeasuredRequest(500, 0, 0.0, (), 0.1, "timed out")
    with_failure = replace(run, requests=(*run.requests[:5], lost, *run.requests[5:]))
    assert fitted(with_failure, policy) == fitted(run, policy)
    assert len(replay(with_failure, policy, model).compared) == len(load)


def test_the_order_of_the_file_does_not_matter() -> None:
    load, policy, model = drawn_case(5)
    run = measured(load, policy, model)
    shuffled = list(run.requests)
    Random(5).shuffle(shuffled)
    assert fitted(replace(run, requests=tuple(shuffled)), policy).fit == fitted(run, policy).fit


def test_each_step_and_each_prompt_stands_in_one_equation() -> None:
    """Where nothing is late and whole prompts run in one step, steps and tokens add up to those of the schedule."""
    for seed in range(6):
        load = drawn_load(Random(seed), 40, 3)
        policy = continuous(4)
        ran = simulate(load, policy, FIT)
        found = steps_of(measured(load, policy, FIT), policy)
        assert not found.left_out
        assert sum(one.steps * one.seen for one in found.equations) == ran.step_count
        assert round(sum(one.new_tokens * one.seen for one in found.equations)) == ran.scheduled_tokens


ALIKE = [Request(place * 10**10, 1000, 20) for place in range(12)]
IN_TURN = [Request(place * 10**10, 1000 + 50 * place, 1) for place in range(12)]


@pytest.mark.parametrize(
    ("load", "told"),
    [
        ([Request(0, 100, 50)], "per_new_token_ns"),
        (ALIKE, "per_new_token_ns and per_causal_pair_ns"),
        ([Request(place * 10**10, 1000, 1) for place in range(12)], "fixed_ns and per_new_token_ns"),
    ],
    ids=["one request", "prompts alike", "one prompt, no decode"],
)
def test_what_the_file_cannot_tell_is_named_and_not_invented(load: list[Request], told: str) -> None:
    run = measured(load, continuous(4), FIT, late_s=0.0003)
    with pytest.raises(InputError, match=r"^made.json is 'no witness of .*; allowed: a file with more different") as no:
        fitted(run, continuous(4))
    assert set(told.split(" and ")) <= set(str(no.value.value).removeprefix("no witness of ").split(" and "))


def test_no_term_comes_out_below_nothing() -> None:
    for seed in range(20):
        draw = np.random.default_rng(seed)
        columns, target = draw.normal(size=(12, 3)), draw.normal(size=12)
        found = non_negative(columns, target)
        assert (found >= 0).all()
        slope = columns.T @ (columns @ found - target)
        assert (slope > -1e-9).all(), "no term would gain by growing"
        assert np.allclose(slope[found > 0], 0, atol=1e-9)


def test_notes_say_what_the_fit_leaves_open() -> None:
    found = fitted(read_benchmark(MADE, 0), made_benchmark.POLICY)
    assert found.notes[0].startswith("Times are a client's")
    assert found.notes[2] == (
        f"Stretches and steps left out, as the file does not tell how many steps passed: {found.steps.left_out:,}."
    )
    vague = replace(found, within_ns=(1.0, 1.0, 9.0))
    assert vague.notes[-1] == "per_causal_pair_ns is 5 ns, but the file tells it only to within 9 ns."


def test_an_engine_cannot_have_run_fewer_than_the_file_shows() -> None:
    run = read_benchmark(MADE, 2)
    with pytest.raises(InputError, match=r"^max_running is 4; allowed: at least 8: so many requests got tokens"):
        fitted(run, chunked(4, 2048, 2048))


def without_starts(run: Benchmark) -> Benchmark:
    return replace(run, requests=tuple(replace(one, sent_s=None) for one in run.requests))


def all_failed(run: Benchmark) -> Benchmark:
    return replace(run, requests=tuple(replace(one, error="lost") for one in run.requests))


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda run: fitted(without_starts(run), continuous(8)), r"^benchmark is .*without start_times"),
        (lambda run: replay(without_starts(run), continuous(8), FIT), r"^benchmark is .*without start_times"),
        (lambda run: steps_of(all_failed(run), continuous(8)), r"^benchmark is .*without an answer"),
        (lambda run: fitted("run.json", continuous(8)), r"^benchmark is 'run.json'; allowed: a Benchmark"),
        (lambda run: fitted(run, 8), r"^policy is 8; allowed: a Policy"),
        (lambda run: replay(run, None, FIT), r"^policy is None"),
        (lambda run: replay(run, made_benchmark.POLICY, None), r"^step_time is None; allowed: a StepTime"),
        (lambda run: replay(run, made_benchmark.POLICY, 9), r"^step_time is 9"),
    ],
    ids=[
        "fit, no starts",
        "replay, no starts",
        "all failed",
        "a path",
        "a number",
        "no policy",
        "no step time",
        "9 ns",
    ],
)
def test_what_makes_no_sense_is_refused(call: Callable[[Any], object], told: str) -> None:
    with pytest.raises(InputError, match=told):
        call(read_benchmark(MADE, 2))


def test_no_interval_gives_no_error_of_intervals() -> None:
    run = measured(IN_TURN, continuous(4), FIT)
    assert replay(run, continuous(4), FIT).interval_error is None
    assert math.isclose(replay(run, continuous(4), FIT).ttft_error, 0, abs_tol=1e-6)
