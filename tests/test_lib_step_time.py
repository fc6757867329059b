"""The models of a step's time, what they say beside the records, and the inverse."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.attention import causal_pairs
from lib.checks import InputError
from lib.hardware import CARDS
from lib.model import QWEN3_8B, matrix_flops, preset
from lib.records import record
from lib.step_time import (
    FIT,
    MEASURED_DECODE,
    NOBODY,
    NS,
    Device,
    Fit,
    LaunchBound,
    MeasuredDecode,
    StepPlan,
    StepTime,
    decode_plan,
    device,
    step_plan,
    tokens_that_fit,
)

FEW = st.integers(0, 60)
MANY = st.integers(0, 10**9)
SEGMENTS = st.lists(st.tuples(st.integers(1, 5000), st.integers(0, 20_000)), min_size=1, max_size=6)
MODELS: tuple[StepTime, ...] = (FIT, device(), device(mfu=1, mbu=1), LaunchBound(13_000_000, device()))


@given(FEW, FEW)
def test_pairs_are_those_that_a_loop_counts(new: int, context: int) -> None:
    counted = sum(1 for query in range(context, context + new) for key in range(context + new) if key <= query)
    assert causal_pairs(new, context) == counted


@given(MANY, MANY, MANY)
def test_cutting_a_prompt_into_two_chunks_changes_no_pair(first: int, second: int, context: int) -> None:
    in_chunks = causal_pairs(first, context) + causal_pairs(second, context + first)
    assert in_chunks == causal_pairs(first + second, context)


def test_the_terms_are_those_that_the_chapter_rounds() -> None:
    assert Fit(fixed_ns=26_220_000, per_new_token_ns=30_400, per_causal_pair_ns=3) == FIT


@given(SEGMENTS)
def test_a_plan_sums_its_segments(segments: list[tuple[int, int]]) -> None:
    plan = step_plan(*segments)
    assert plan == StepPlan(
        sum(new for new, _ in segments),
        sum(causal_pairs(new, context) for new, context in segments),
        sum(context for _, context in segments),
        len(segments),
    )
    assert plan.is_decode == all(new == 1 for new, _ in segments)


@given(SEGMENTS)
def test_a_step_by_the_fit_takes_its_three_terms(segments: list[tuple[int, int]]) -> None:
    plan = step_plan(*segments)
    assert FIT(plan) == 26_220_000 + 30_400 * plan.new_tokens + 3 * plan.pairs


@given(SEGMENTS, SEGMENTS)
def test_one_step_for_two_saves_exactly_one_fixed_part(
    one: list[tuple[int, int]], other: list[tuple[int, int]]
) -> None:
    apart = FIT(step_plan(*one)) + FIT(step_plan(*other))
    assert apart - FIT(step_plan(*one, *other)) == FIT.fixed_ns


@given(st.integers(1, 3000), st.integers(0, 9000))
def test_the_device_counts_the_flop_of_the_model(new: int, context: int) -> None:
    assert device().flop(step_plan((new, context))) == matrix_flops(QWEN3_8B, new, context, logit_positions=1)


def test_the_device_reads_what_the_record_calls_nominal() -> None:
    for row in record("step_efficiency").rows:
        plan = decode_plan(row["batch_requests"], row["context_tokens"])
        assert device().read_bytes(plan) == row["nominal_read_bytes_per_step"]


def prefill_of_a_batch(model: StepTime, batch: int) -> float:
    """Seconds for the 2K prompts of a batch under the record's limit of 4096 tokens a step."""
    full_steps, rest = divmod(batch, 2)
    plans = [step_plan((2048, 0), (2048, 0))] * full_steps + [step_plan((2048, 0))] * rest
    return sum(map(model, plans)) / NS


@pytest.mark.parametrize("batch", [4, 16, 64])
def test_prefills_of_a_batch_lie_near_the_device_and_far_from_the_fit(batch: int) -> None:
    row = record("step_efficiency").one(input_kind="2k_independent", batch_requests=batch)
    measured = row["prefill_phase_median_s"]
    assert 0.01 < 1 - prefill_of_a_batch(device(), batch) / measured < 0.065
    assert 0.145 < 1 - prefill_of_a_batch(FIT, batch) / measured < 0.195


@given(SEGMENTS, st.integers(0, 40_000_000))
def test_host_and_device_work_at_the_same_time(segments: list[tuple[int, int]], host_ns: int) -> None:
    plan = step_plan(*segments)
    assert LaunchBound(host_ns, device())(plan) == max(host_ns, device()(plan))


def test_recorded_decode_steps_come_out_and_lie_in_range() -> None:
    for row in record("step_efficiency").where(input_kind="2k_independent"):
        plan = decode_plan(row["batch_requests"], 2048)
        assert MEASURED_DECODE(plan) == round(row["decode_step_median_ms"] * 1e6)
        assert MEASURED_DECODE.covers(plan)


@given(st.integers(1, 500), st.integers(0, 60_000))
def test_looked_up_steps_keep_the_floor_of_the_bandwidth(batch: int, context: int) -> None:
    plan = decode_plan(batch, context)
    assert MEASURED_DECODE(plan) >= device(mfu=1, mbu=1).read_ns(plan)
    inside = 15_438_800_896 <= device().read_bytes(plan) <= 34_464_163_840
    assert MEASURED_DECODE.covers(plan) == inside


def test_between_two_records_a_step_lies_between() -> None:
    times = [MEASURED_DECODE(decode_plan(batch, 2048)) for batch in range(1, 65)]
    assert times == sorted(times) and len(set(times)) == 64


def test_the_record_of_decode_steps_knows_no_prompts() -> None:
    with pytest.raises(InputError, match=r"plan is .*allowed: a decode step"):
        MEASURED_DECODE(step_plan((1, 2048), (2, 0)))


@given(st.sampled_from(MODELS), st.integers(10_000_000, 10**9), st.integers(0, 9000), st.lists(st.integers(0, 9000)))
def test_one_token_more_would_not_fit(model: StepTime, interval: int, context: int, decoding: list[int]) -> None:
    residents = [(1, length) for length in decoding]
    fitting = tokens_that_fit(interval, model, context, step_plan(*residents) if residents else NOBODY)
    assert model(step_plan(*residents, (fitting + 1, context))) > interval
    assert fitting == 0 or model(step_plan(*residents, (fitting, context))) <= interval


def test_longer_context_leaves_fewer_tokens_and_shapes_round_them_down() -> None:
    exact, behind = (tokens_that_fit(50_000_000, FIT, context, decode_plan(1, 2048)) for context in (0, 7680))
    assert exact > behind
    assert tokens_that_fit(50_000_000, FIT, 0, decode_plan(1, 2048), captured_rows=(256, 512, 1024)) == 511 < exact
    # The rows of a larger step than any captured one run as they are.
    assert tokens_that_fit(50_000_000, FIT, 0, decode_plan(1, 2048), captured_rows=(256, 512)) == exact


WRONG = (
    (lambda: step_plan(), "segments"),
    (lambda: step_plan((0, 5)), "new_tokens"),
    (lambda: step_plan((1, -1)), "context"),
    (lambda: step_plan((2**41, 0)), "new_tokens"),
    (lambda: Fit(-1, 0, 0), "fixed_ns"),
    (lambda: Fit(0, 0, 3), "fixed_ns"),
    (lambda: Fit(1, 2.5, 3), "per_new_token_ns"),  # type: ignore[arg-type]
    (lambda: device(mfu=0), "mfu"),
    (lambda: device(mbu=1.01), "mbu"),
    (lambda: device(mbu=float("nan")), "mbu"),
    (lambda: device(card=CARDS["Apple M2 Max (38-core GPU)"]), "card"),
    (lambda: device(preset("Gemma-3-4B")), "model"),
    (lambda: Device(0, 0, 0, 0, 0, 1, 1), "flop_per_token"),
    (lambda: step_plan((1, 2, 3)), "segments"),  # type: ignore[arg-type]
    (lambda: tokens_that_fit(10**8, FIT, captured_rows=16), "captured"),  # type: ignore[arg-type]
    (lambda: LaunchBound(-1, device()), "host_ns"),
    (lambda: MeasuredDecode(((1, 1),), device()), "points"),
    (lambda: MeasuredDecode(((2, 1), (1, 2)), device()), "points"),
    (lambda: tokens_that_fit(0, FIT), "interval_ns"),
    (lambda: tokens_that_fit(10**9, Fit(5, 0, 0)), "step_time"),
    (lambda: tokens_that_fit(10**9, FIT, captured_rows=(0,)), "captured"),
)


@pytest.mark.parametrize(("call", "parameter"), WRONG)
def test_what_makes_no_sense_is_refused_by_name(call: object, parameter: str) -> None:
    assert callable(call)
    with pytest.raises(InputError) as refused:
        call()
    assert refused.value.parameter == parameter
