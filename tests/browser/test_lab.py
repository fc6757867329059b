"""JupyterLab as `make lab` starts it: offline, at the first section, without pop-ups; and how it looks in the dark."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.browser.lab import Lab
from tests.browser.notebook_page import POP_UPS, ExplorerOnPage, NotebookPage, opened

pytestmark = pytest.mark.browser
FIRST = "chapters/8_0_design_problem.ipynb"


@pytest.fixture(scope="module")
def first(browser: Browser, lab: Lab) -> Iterator[NotebookPage]:
    """The page that JupyterLab opens by itself."""
    with opened(browser, lab) as page:
        yield page


def test_opens_at_the_first_section_and_asks_nobody(first: NotebookPage) -> None:
    assert first.notebook == FIRST
    assert first.page.locator(POP_UPS).all_inner_texts() == []
    assert first.outside == []
    assert len(first.requests) > 10
    assert first.complaints == []


def test_lists_the_notebooks_and_not_their_scripts(first: NotebookPage) -> None:
    folder = first.lab.root / "chapters"
    assert list(folder.glob("*.py"))
    listed = first.page.locator(".jp-DirListing-itemText")
    first.until(
        lambda: listed.all_inner_texts() == sorted(path.name for path in folder.glob("*.ipynb")),
        "the list of notebooks",
    )


@pytest.mark.long
def test_can_be_looked_at_in_the_dark(first: NotebookPage) -> None:
    try:
        first.choose("Settings", "Theme", "JupyterLab Dark")
        first.page.locator("body[data-jp-theme-light=false]").wait_for(state="attached")
        first.page.locator("#jupyterlab-splash").wait_for(state="detached")
        first.photograph("dark not yet run")
        first.run_all()
        explorer = first.explorers["request-timeline"]
        explorer.open_more()
        explorer.predictions[0].click()
        explorer.until(lambda now: now.picture != explorer.first.picture, "what was asked about is drawn")
        explorer.photograph("dark explorer")
    finally:
        first.choose("Settings", "Theme", "JupyterLab Light")
        first.page.locator("body[data-jp-theme-light=true]").wait_for(state="attached")


@pytest.fixture
def one_interval(browser: Browser, lab: Lab) -> Iterator[ExplorerOnPage]:
    """An explorer of a request with a single interval, in a notebook that git ignores."""
    source = 'from figures.explorer import explore\nexplore("request-timeline", outputs=2)'
    notebook = lab.write_notebook("one_interval", source)
    with opened(browser, lab, notebook) as page:
        page.run_all()
        yield page.explorers["request-timeline"]


@pytest.mark.long
def test_a_sentence_takes_the_place_of_a_picture_that_makes_no_sense(one_interval: ExplorerOnPage) -> None:
    foreign = one_interval.root.locator(".widget-slider", has_text="foreign prefills").locator(".noUi-handle")
    foreign.press("ArrowRight")
    one_interval.until(lambda now: "+96.0 ms" in now.table, "one prefill in the one interval")
    before, tall = one_interval.shown(), one_interval.height
    foreign.press("ArrowRight")
    one_interval.until(lambda now: "one in each interval" in now.sentence, "a sentence about two prefills")
    one_interval.until(lambda now: now.picture == "" and "+96.0 ms" not in now.table, "no picture, no numbers")
    assert one_interval.height == tall
    one_interval.photograph("sentence")
    foreign.press("ArrowLeft")
    one_interval.until(lambda now: now == before, "the picture is back")
    assert one_interval.height == tall
    assert one_interval.notebook.complaints == []
