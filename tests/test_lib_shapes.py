"""Rows padded to captured graphs, and what one more graph costs."""

import pytest

from lib.checks import InputError
from lib.shapes import CAPTURED, FURTHER, FurtherGraph, padded_rows


def test_rows_run_in_the_smallest_graph_that_holds_them() -> None:
    assert [padded_rows(rows, CAPTURED) for rows in (1, 16, 17, 18, 32, 33)] == [16, 16, 32, 32, 32, 33]
    assert padded_rows(17, (*CAPTURED, FURTHER)) == 17
    assert padded_rows(5, ()) == 5
    assert padded_rows(5, (32, 8, 16)) == 8


def test_a_graph_is_repaid_after_whole_steps() -> None:
    assert FurtherGraph(2.1, 0, 0.3).steps_to_repay == 7
    assert FurtherGraph(2.2, 0, 0.3).steps_to_repay == 8
    assert FurtherGraph(0, 0, 0.3).steps_to_repay == 0
    assert FurtherGraph(1e9, 0, 1e-320).steps_to_repay > 10**300


def test_its_buffers_are_blocks_that_the_pool_lacks() -> None:
    graph = FurtherGraph(1, 33, 1)
    assert graph.blocks_lost(16) == 3
    assert FurtherGraph(1, 32, 1).blocks_lost(16) == 2
    with pytest.raises(InputError, match=r"^block_bytes is 0"):
        graph.blocks_lost(0)


@pytest.mark.parametrize(
    ("values", "parameter"),
    [((-1, 0, 1), "capture_s"), ((1, -1, 1), "held_bytes"), ((1, 0, 0), "saved_s_per_step")],
)
def test_a_graph_that_makes_no_sense_is_refused(values: tuple[float, int, float], parameter: str) -> None:
    with pytest.raises(InputError) as refused:
        FurtherGraph(*values)  # type: ignore[arg-type]
    assert refused.value.parameter == parameter
