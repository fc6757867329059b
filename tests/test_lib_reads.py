"""Bytes read per step and per output, and the two kinds of crossing."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib import reads
from lib.checks import InputError
from lib.step_time import Device, decode_plan, device

COUNTS, CONTEXTS, SIZES = st.integers(1, 500), st.integers(1, 50_000), st.integers(1, 10**6)


@given(st.integers(0, 10**10), COUNTS, CONTEXTS, SIZES)
def test_an_output_bears_its_share_of_the_weights_and_its_own_kv(
    weights: int, batch: int, context: int, each: int
) -> None:
    assert reads.step_reads(weights, batch, context, each) == weights + sum(context * each for _ in range(batch))
    assert reads.reads_per_output(weights, batch, context, each) == Fraction(weights, batch) + context * each


@given(st.integers(0, 10**9), CONTEXTS, SIZES)
def test_the_crossover_is_the_first_batch_whose_kv_is_as_much(weights: int, context: int, each: int) -> None:
    batch = reads.kv_crossover(weights, context, each)
    assert batch * context * each >= weights
    assert batch == 1 or (batch - 1) * context * each < weights


def test_a_tie_counts_as_reached() -> None:
    assert reads.kv_crossover(1000, 10, 10) == 10
    assert reads.kv_crossover(1001, 10, 10) == 11


@pytest.mark.parametrize("context", [0, 100, 128, 370, 371, 372, 2048])
def test_compute_overtakes_at_the_first_batch_whose_plan_says_so(context: int) -> None:
    bound = device(mfu=1, mbu=1)
    found = reads.compute_crossover(bound, context)
    assert (found is None) == (context >= 371)
    if found:
        for batch, longer in ((found, True), (found - 1, False)):
            plan = decode_plan(batch, context)
            compute = Fraction(bound.flop(plan), bound.flop_s)
            assert (compute >= Fraction(bound.read_bytes(plan), bound.bytes_s)) == longer


def test_the_context_at_which_computing_and_kv_cross_does_not_depend_on_the_batch() -> None:
    bound = device(mfu=1, mbu=1)
    found = reads.compute_kv_context(bound)
    assert found == 371
    for batch in (1, 16, 430):
        for context, kv_longer in ((found, True), (found - 1, False)):
            plan = decode_plan(batch, context)
            kv = Fraction(plan.context_tokens * bound.kv_bytes_per_token, bound.bytes_s)
            assert (kv >= Fraction(bound.flop(plan), bound.flop_s)) == kv_longer


def test_where_kv_is_cheap_nothing_crosses() -> None:
    assert reads.compute_kv_context(Device(10, 10, 0, 0, 1, 10, 10)) is None


def test_pieces_read_the_weights_each_and_adapters_their_own_rows() -> None:
    assert reads.reads_in_pieces(288, 2) == 576
    assert reads.rows_per_adapter(["b", "a", "b"]) == {"a": 1, "b": 2}
    with pytest.raises(InputError, match=r"^adapters is \[\]"):
        reads.rows_per_adapter([])


@pytest.mark.parametrize("batch", [1, 16, 64])
def test_intensity_is_rows_over_half_the_bytes(batch: int) -> None:
    assert reads.weight_intensity(batch, 2) == batch
    assert reads.weight_intensity(batch, 1) == 2 * batch
    with pytest.raises(InputError):
        reads.weight_intensity(10**400)


def test_what_is_resident_is_all_of_it() -> None:
    assert reads.resident_bytes(1000, 3, 5, 7) == 1000 + 3 * 5 * 7
