"""Every number that is answered comes out of `lib`, and no section counts as answered while it has a gap."""

from collections import Counter

import pytest

from tests.claims import ANSWERED, CLAIMS
from tests.claims.claim import Claim, parse


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"{'+'.join(claim.ids)} {claim.what}")
def test_claim_holds(claim: Claim) -> None:
    assert claim.holds(), f"{claim.what}: printed {claim.printed} {claim.unit}, lib gives {claim.value()!r}"


def test_no_id_is_answered_twice() -> None:
    counts = Counter(name for claim in CLAIMS for name in claim.ids if "-" in name)
    assert [name for name, count in counts.items() if count > 1] == []


@pytest.mark.parametrize(("section", "printed_numbers"), ANSWERED.items())
def test_section_is_answered_whole(section: str, printed_numbers: int) -> None:
    places = {
        int(place)
        for claim in CLAIMS
        for name in claim.ids
        for prefix, _, place in [name.rpartition("-")]
        if prefix == section
    }
    assert places == set(range(1, printed_numbers + 1))


def test_a_wrong_number_is_noticed() -> None:
    right = Claim((), "", "computed", ("15.3",), "GiB", 0.05, lambda: 15.26)
    wrong = Claim((), "", "computed", ("15.3",), "GiB", 0.05, lambda: 15.36)
    assert right.holds() and not wrong.holds()


def test_printed_forms() -> None:
    assert parse("16,381,470,720") == 16381470720
    assert parse("8K") == 8192
    assert parse("28/32") == 0.875
