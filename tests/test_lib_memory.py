"""What fits on a card."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib import memory
from lib.checks import InputError
from lib.design_problem import INSTANCE
from lib.memory import left_for_activations
from lib.model import QWEN3_8B, weight_bytes
from lib.units import GIB

BYTES = st.integers(1, 10**15)


@given(BYTES, BYTES, st.integers(0, 10**15))
def test_the_three_parts_are_the_capacity_or_the_pool_is_refused(left: int, weights: int, pool: int) -> None:
    assert left_for_activations(left + weights + pool, weights, pool) == left
    assert left_for_activations(weights + pool, weights, pool) == 0
    with pytest.raises(InputError, match=r"^kv_pool_bytes is "):
        left_for_activations(weights + pool, weights, pool + 1)


def test_the_design_problem_leaves_room_for_activations() -> None:
    left = left_for_activations(INSTANCE.share_bytes, weight_bytes(INSTANCE.model), INSTANCE.kv_pool_bytes)
    assert round(left / GIB, 2) == 4.74


def test_a_shared_block_is_counted_once() -> None:
    assert memory.blocks_held([[0, 1, 2], [0, 1, 3], []]) == 4
    assert memory.blocks_held([]) == 0


def test_a_request_that_can_never_fit_is_refused_and_one_that_just_fits_is_not() -> None:
    request = memory.RequestShape(input_tokens=33, output_tokens=1)
    page = memory.KvPool(QWEN3_8B, 2**30, page_tokens=16).bytes_of(16)
    memory.KvPool(QWEN3_8B, 3 * page, page_tokens=16).refuse_if_never(request)
    with pytest.raises(InputError, match=r"^KV of one request at its end is .*; allowed: at most what the pool holds"):
        memory.KvPool(QWEN3_8B, 3 * page - 1, page_tokens=16).refuse_if_never(request)
