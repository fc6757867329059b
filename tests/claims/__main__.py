"""Count the claims by section, then look for constants of `lib` that none of them notices: `python -m tests.claims`.

With names of files in `lib`, such as `step_time.py` or `records/hardware.csv`, only their constants are looked at:
all of them take many minutes. With `--counts` none are.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import get_args, get_type_hints

from lib.checks import InputError
from tests import perturb
from tests.claims import ANSWERED, CLAIMS
from tests.claims.claim import Claim

KINDS = get_args(get_type_hints(Claim)["kind"])


@dataclass(frozen=True)
class Count:
    """How many numbers of a section are answered, by kind; how many it prints, and how many quantities they are.

    `printed` is None as long as the section has gaps. `added` are quantities that only our text states.
    """

    section: str
    answered: dict[str, int]
    printed: int | None
    quantities: int
    added: int

    @property
    def total(self) -> int:
        return sum(self.answered.values())


def counts(claims: Sequence[Claim] = CLAIMS) -> list[Count]:
    """The count of each section and footnote, then of all together; a quantity of two sections is one of all."""
    sections = sorted(
        {_section(name) for claim in claims for name in claim.ids}, key=lambda name: (name[0] == "f", name)
    )
    apart = [_count(section, {section}, claims) for section in sections]
    printed = None if any(count.printed is None for count in apart) else sum(count.printed or 0 for count in apart)
    return [*apart, replace(_count("all", set(sections), claims), printed=printed)]


def _section(name: str) -> str:
    return name.partition("-")[0]


def _count(title: str, sections: set[str], claims: Sequence[Claim]) -> Count:
    ids = [[name for name in claim.ids if _section(name) in sections] for claim in claims]
    printed = [sum("-" in name for name in names) for names in ids]
    answered = {
        kind: sum(number for claim, number in zip(claims, printed, strict=True) if claim.kind == kind) for kind in KINDS
    }
    quantities = sum(number > 0 for number in printed)
    return Count(
        title, answered, ANSWERED.get(title, None if quantities else 0), quantities, sum(map(bool, ids)) - quantities
    )


def lines(found: Sequence[Count]) -> list[str]:
    """The counts as aligned text."""
    head = ("section", *KINDS, "answered", "printed", "quantities", "added")
    rows = [
        (
            count.section,
            *(count.answered[kind] for kind in KINDS),
            count.total,
            "?" if count.printed is None else count.printed,
            count.quantities,
            count.added,
        )
        for count in found
    ]
    table = [[str(cell) for cell in row] for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in table]


def constants_of(files: Sequence[str]) -> list[perturb.Constant]:
    """The constants of these files of `lib`, of all where none is named; raises InputError for an unknown file."""
    found = perturb.constants()
    known = {constant.file for constant in found}
    for file in files:
        if file not in known:
            raise InputError("file", file, "a file of lib with constants, such as step_time.py or records/hardware.csv")
    return [constant for constant in found if not files or constant.file in files]


def main() -> int:
    """Print the counts, then what survives a change; the exit code is 1 if any constant does."""
    parser = argparse.ArgumentParser(prog="python -m tests.claims", description=__doc__)
    parser.add_argument("files", nargs="*", help="files of lib whose constants are changed; all of them by default")
    parser.add_argument("--counts", action="store_true", help="only count")
    given = parser.parse_args()
    try:
        found = constants_of(given.files)
    except InputError as refused:
        parser.error(str(refused))
    print("\n".join(lines(counts())), flush=True)
    if given.counts:
        return 0
    print(f"\n{len(found):,} constants are changed, one after another …", flush=True)
    return perturb.report(found)


if __name__ == "__main__":
    sys.exit(main())
