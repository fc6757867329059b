"""What the notebooks say in words agrees with the claims, the registry of figures and the files that are there."""

import re
import tomllib
from pathlib import Path

import jupytext
import pytest

from figures.registry import FIGURES, entry
from tests.claims import CLAIMS
from tests.claims.claim import parse

CHAPTERS = Path(__file__).parents[1] / "chapters"
SCRIPTS = sorted(CHAPTERS.glob("8_*.py"))
SHORT_LIST = tomllib.loads((Path(__file__).parent / "claims" / "prose.toml").read_text(encoding="utf-8"))

# What is no number: the counting of lists, code, targets of links, names, numbers of sections, figures and
# chapters, references.
NOT_NUMBERS = re.compile(
    r"```.*?```|`[^`]*`|\]\([^)]*\)|\$\$.*?\$\$|\$[^$]*\$"
    r"|Qwen3-8B|RTX PRO 6000|M2 Max|BF16|FP32|FP8|q8_0|q4_0|Q2_K"
    r"|\b8\.\d(\.\d)?\b|\b(figure|experiment|exercise)s? 8-\d+"
    r"|\bchapters? \d+( and \d+)?|^\d+\. |^- [^*\n]+, \*[^*\n]+\*[^\n]*",
    flags=re.DOTALL | re.IGNORECASE | re.MULTILINE,
)
NUMERAL = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?:K\b)?")
CELL_WIDTH = 88  # characters that JupyterLab shows beside its file list on a screen of 1280 pixels
SUBSECTIONS = {1: 3, 2: 4, 3: 4, 4: 4, 5: 4, 6: 3}


def prose(script: Path) -> str:
    return "\n\n".join(cell.source for cell in jupytext.read(script).cells if cell.cell_type == "markdown")


def numerals(text: str) -> set[str]:
    """The numbers that a text states, as written."""
    return {found.rstrip(",") for found in NUMERAL.findall(NOT_NUMBERS.sub(" ", text))}


def section_of(claim_id: str) -> tuple[int, ...]:
    section = claim_id.partition("-")[0]
    return tuple(map(int, section.split("."))) if section[0].isdigit() else (9,)


def known_numbers(script: Path) -> set[float]:
    """What the claims of this notebook's section and of earlier ones print."""
    here = tuple(map(int, script.stem.split("_")[:2]))
    return {
        parse(form) for claim in CLAIMS for name in claim.ids if section_of(name)[:2] <= here for form in claim.printed
    }


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_every_number_in_prose_is_known(script: Path) -> None:
    allowed = SHORT_LIST.get(script.stem, {})
    stated = numerals(prose(script))
    known = known_numbers(script)
    unknown = {number for number in stated if parse(number) not in known and number not in allowed}
    assert unknown == set(), f"{script.name} states numbers that no claim knows: {sorted(unknown)}"
    assert set(allowed) <= stated, f"no longer needed in prose.toml: {sorted(set(allowed) - stated)}"


def test_reasons_that_name_a_claim_name_a_true_one() -> None:
    printed = {name: claim.printed for claim in CLAIMS for name in claim.ids}
    named = [
        (number, match[0])
        for numbers in SHORT_LIST.values()
        for number, reason in numbers.items()
        if (match := re.match(r"8\.[\d.]*-\d+", reason))
    ]
    assert named
    assert [pair for pair in named if pair[0] not in printed[pair[1]]] == []


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_figures_are_named_by_the_registry(script: Path) -> None:
    assert set(re.findall(r"\b[Ff]igure (8-\d+)", prose(script))) <= {known.number for known in FIGURES}
    said = ""
    for cell in jupytext.read(script).cells:
        if cell.cell_type == "markdown":
            said = cell.source
        for name in re.findall(r'explore\("([\w-]+)"', cell.source):
            number = entry(name).number
            assert not number or f"igure {number}" in said, f"the text before explore({name!r}) must name its figure"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_code_fits_into_its_cell(script: Path) -> None:
    code = [
        line for cell in jupytext.read(script).cells if cell.cell_type == "code" for line in cell.source.splitlines()
    ]
    assert [line for line in code if len(line) > CELL_WIDTH] == []


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_links_lead_somewhere(script: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)", prose(script))
    assert [target for target in targets if not (CHAPTERS / target).is_file()] == []


def test_contents_name_every_subsection_and_link_every_notebook() -> None:
    text = prose(CHAPTERS / "8_0_design_problem.py")
    missing = [
        f"8.{section}.{part}"
        for section, parts in SUBSECTIONS.items()
        for part in range(1, parts + 1)
        if f"8.{section}.{part} " not in text
    ]
    assert missing == []
    others = {path.name for path in CHAPTERS.glob("8_*.ipynb")} - {"8_0_design_problem.ipynb"}
    assert {name for name in others if f"]({name})" not in text} == set()


def test_numerals_are_found_and_names_are_not() -> None:
    assert numerals("In 8.1.2 figure 8-3 shows Qwen3-8B: 1,165 token/s, `x = 3`, 26.5 ms, 8K, chapters 6 and 7.") == {
        "1,165",
        "26.5",
        "8K",
    }
