"""Each link and picture of the project's documents leads to a file that is part of the project."""

import re
from pathlib import Path
from urllib.parse import unquote

import pytest

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
