"""What fits on a card."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.checks import InputError
from lib.design_problem import INSTANCE
from lib.memory import left_for_activations
from lib.model import weight_bytes
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
