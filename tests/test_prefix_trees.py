"""The prefix-tree explorer: what it says of a move that changes nothing is true of these settings."""

from typing import Any

import pytest

from figures.explorer import explore


@pytest.mark.parametrize(
    ("settings", "control", "position", "line"),
    [
        ({"timestamp": 0}, "block_tokens", 64, "No input begins like an earlier one: nothing is found"),
        ({"rounds": 1}, "block_tokens", 64, "There is one input only: nothing is found"),
        ({"rounds": 1}, "timestamp", 3000, "The only input is not that long"),
        ({}, "timestamp", 3132, "None of the 4 inputs is that long"),
    ],
)
def test_why_a_move_changes_nothing(settings: dict[str, Any], control: str, position: int, line: str) -> None:
    explorer = explore("prefix-tree", **settings)
    explorer.widgets[control].value = position
    assert explorer.line.startswith(line)
