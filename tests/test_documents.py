"""Each link and picture of the project's documents leads to a file that is part of the project."""

import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from figures.registry import FIGURES
from tools.notebooks import ROOT, tracked

LINK = re.compile(r"!?\[[^\]]*\]\(\s*<?([^)\s>]+)|^\[[^\]]+\]:\s*(\S+)|(?:src|href)=[\"']([^\"']+)", re.MULTILINE)
ELSEWHERE = re.compile(r"[a-z][a-z+.-]*:|//|#", re.IGNORECASE)
FILES = set(tracked())
FOLDERS = (ROOT, ROOT / "exercises", ROOT / "solutions")
DOCUMENTS = [path for path in sorted(FILES) if path.suffix == ".md" and path.parent in FOLDERS]


def links(text: str) -> list[str]:
    """What a page's links and pictures lead to inside the project."""
    found = ["".join(groups) for groups in LINK.findall(text)]
    return [unquote(target.split("#")[0]) for target in found if not ELSEWHERE.match(target)]


def lost(page: Path, text: str, files: set[Path]) -> list[str]:
    """The links that lead to no file, nor to a folder with one."""
    reached = files | {folder for path in files for folder in path.parents}
    return [link for link in links(text) if (page.parent / link).resolve() not in reached]


def test_the_documents_are_found() -> None:
    names = {path.relative_to(ROOT).as_posix() for path in DOCUMENTS}
    assert {"README.md", "CONTRIBUTING.md", "TROUBLESHOOTING.md", "exercises/README.md", "solutions/README.md"} <= names


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_each_link_leads_somewhere(page: Path) -> None:
    assert lost(page, page.read_text(encoding="utf-8"), FILES) == []


def test_the_readme_has_links() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert {"README.png", "TROUBLESHOOTING.md", "CONTRIBUTING.md"} <= set(links(text))


def test_the_readme_lists_every_section_figure_and_exercise() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    listed = {line[3:6]: line.split(" | ") for line in text.splitlines() if line.startswith("| [8.")}
    notebooks = {path for path in FILES if path.suffix == ".ipynb" and path.parent.name in ("chapters", "exercises")}
    assert notebooks == {(ROOT / link).resolve() for link in links(text) if link.endswith(".ipynb")}
    for section, (_, numbers, slugs, _) in listed.items():
        known = [figure for figure in FIGURES if figure.section.startswith(section)]
        numbered = [figure.number for figure in known if figure.number]
        spelled = ", ".join(numbered) if len(numbered) < 3 else f"{numbered[0]} to {numbered[-1]}"
        assert numbers == (spelled or "–")
        assert slugs == (", ".join(figure.slug for figure in known if not figure.number) or "–")


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("[a](there.md#part) [b](sub) [c](https://x.org/y) [d](#part) [e](mailto:a@b.c)", []),
        ("[a](gone.md)", ["gone.md"]),
        ('![a](gone.png "title")', ["gone.png"]),
        ("[![a](gone.png)](there.md)", ["gone.png"]),
        ("[a](<gone.md>)", ["gone.md"]),
        ("[a]: gone.md", ["gone.md"]),
        ('<img src="gone.png">', ["gone.png"]),
        ("[a](sub/a%20b.md) [b](../there.md)", ["../there.md"]),
    ],
)
def test_a_lost_link_is_noticed(tmp_path: Path, text: str, missing: list[str]) -> None:
    files = {tmp_path.resolve() / name for name in ("there.md", "sub/a b.md")}
    assert lost(tmp_path / "page.md", text, files) == missing
