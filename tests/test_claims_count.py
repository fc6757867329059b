"""What `make claims` counts, and which constants it looks at."""

from collections import Counter
from pathlib import Path

import pytest

from lib.checks import InputError
from tests import perturb
from tests.claims import ANSWERED, CLAIMS
from tests.claims.__main__ import KINDS, constants_of, counts, lines
from tests.claims.claim import Claim


def claim(*ids: str, kind: str = "input") -> Claim:
    return Claim(ids, "", kind, ("1",), "", 0, lambda: 1)  # type: ignore[arg-type]


def test_a_quantity_counts_once_and_its_numbers_each() -> None:
    table = [claim("8.1.1-01", "8.1.1-02", "fn01-01"), claim("8.1.1-03", "8.1.1", kind="measured"), claim("8.1.1")]
    first, note, everything = counts(table)
    assert (first.section, first.answered) == ("8.1.1", {"input": 2, "measured": 1, "computed": 0})
    assert (first.total, first.quantities, first.added) == (3, 2, 1)
    assert (note.section, note.total, note.quantities, note.added) == ("fn01", 1, 1, 0)
    assert (everything.total, everything.quantities, everything.added) == (4, 2, 1)


def test_every_number_answered_is_counted() -> None:
    ids = Counter(name.partition("-")[0] for claim in CLAIMS for name in claim.ids if "-" in name)
    *apart, everything = counts()
    assert {count.section: count.total for count in apart if count.total} == dict(ids)
    assert everything.total == ids.total()
    assert {count.section: count.printed for count in apart if count.printed} == ANSWERED
    assert all(count.total == count.printed for count in apart if count.printed)


def test_the_table_has_a_line_for_each_section_and_a_head() -> None:
    shown = lines(counts())
    assert shown[0].split() == ["section", *KINDS, "answered", "printed", "quantities", "added"]
    assert [line.split()[0] for line in shown[1:]] == [count.section for count in counts()]
    assert len({len(line) for line in shown}) == 1


def test_a_section_with_gaps_says_so() -> None:
    (line,) = [line for line in lines(counts([claim("9.9.9-01")])) if line.startswith("9.9.9")]
    assert line.split() == ["9.9.9", "1", "0", "0", "1", "?", "1", "0"]


def test_files_are_picked_by_name() -> None:
    found = constants_of(["step_time.py", "records/hardware.csv"])
    assert {constant.file for constant in found} == {"step_time.py", "records/hardware.csv"}
    assert constants_of([]) == perturb.constants()
    with pytest.raises(InputError, match=r"file is 'nothing\.py'.*allowed: a file of lib with constants"):
        constants_of(["nothing.py"])


def test_the_makefile_offers_it() -> None:
    makefile = (Path(__file__).parents[1] / "Makefile").read_text(encoding="utf-8")
    assert "$(RUN) -m tests.claims $(ARGS)" in makefile
