"""The table of claims is fine enough: no constant that it uses can drift unnoticed."""

from ast import literal_eval

import pytest

from tests import perturb


def test_near_each_constant_is_another_number() -> None:
    assert [
        str(constant) for constant in perturb.constants() if literal_eval(constant.text) == literal_eval(constant.near)
    ] == []


@pytest.mark.long
def test_no_constant_drifts_unnoticed() -> None:
    words = perturb.judge(perturb.constants())
    assert [str(constant) for constant, word in words.items() if word == "survives"] == []
    assert "noticed" in words.values()
