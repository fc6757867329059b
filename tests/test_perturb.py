"""The table of claims is fine enough: no constant that it uses can drift unnoticed."""

import pytest

from tests import perturb


@pytest.mark.long
def test_no_constant_drifts_unnoticed() -> None:
    words = perturb.judge(perturb.constants())
    assert [str(constant) for constant, word in words.items() if word == "survives"] == []
    assert "noticed" in words.values()
