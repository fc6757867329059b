"""The table of claims is fine enough: no constant that it uses can drift unnoticed."""

from ast import literal_eval
from collections import Counter

import pytest

from tests import perturb


def test_near_each_constant_is_another_number() -> None:
    assert [
        str(constant) for constant in perturb.constants() if literal_eval(constant.text) == literal_eval(constant.near)
    ] == []


def test_a_sample_has_all_of_a_module_and_some_of_each_column() -> None:
    found = perturb.constants()
    drawn = perturb.sample(found, 5)
    assert set(drawn) <= set(found) and len(set(drawn)) == len(drawn)
    of_columns, drawn_of = (Counter((each.file, each.column) for each in some) for some in (found, drawn))
    for (file, column), count in of_columns.items():
        least, most = (min(3, count), 5) if file.startswith("records/") else (count, count)
        assert least <= drawn_of[file, column] <= most


# A record has up to 336 rows of one kind, whose cells the same claims read: `make claims` changes every one of them.
OF_COLUMN = 8


@pytest.mark.long
def test_no_constant_drifts_unnoticed() -> None:
    words = perturb.judge(perturb.sample(perturb.constants(), OF_COLUMN))
    assert [str(constant) for constant, word in words.items() if word == "survives"] == []
    assert "noticed" in words.values()


@pytest.mark.long
def test_a_change_is_undone_before_the_next_file_is_changed() -> None:
    """Else what the first change broke would be laid at the door of the second, which no claim uses."""
    first, second = "whole_task.py", "exercise_8_8.py"
    used = [each for each in perturb.constants() if each.file == first][:2]
    unused = [each for each in perturb.constants() if each.file == second and each.text == "0.005"]
    assert len(used) == len(unused) == 2, "one of each for both processes"
    words = perturb.judge([*used, *unused])
    assert [words[each] for each in used] == ["noticed"] * 2
    assert [words[each] for each in unused] == ["unused"] * 2
