"""Each notebook of the chapter as a reader uses it: run, moved by keyboard, saved."""

from collections.abc import Iterator
from functools import partial

import pytest
from playwright.sync_api import Browser, Locator, Page, ViewportSize

from figures.exploration import Choice, Control, Slider, controls_of
from figures.registry import entry
from tests.browser.lab import ROOT, Lab
from tests.browser.notebook_page import VIEWPORT, ExplorerOnPage, NotebookPage, Shown, explored, opened
from tools.notebooks import read_notebook

pytestmark = pytest.mark.browser
NOTEBOOKS = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "chapters").glob("*.ipynb"))
# Those that start at the book's values: what they show first is what the button must bring back.
EXPLORERS = [
    (notebook, figure)
    for notebook in NOTEBOOKS
    for cell in read_notebook((ROOT / notebook).read_text(encoding="utf-8")).cells
    for figure in explored(cell)
    if f'explore("{figure}")' in cell.source
]
ERRORS = '.jp-OutputArea-output:is([data-mime-type$=".error"], [data-mime-type$=".stderr"])'
NARROW = ViewportSize(width=1024, height=1400)


@pytest.fixture(scope="module")
def run_notebook(request: pytest.FixtureRequest, browser: Browser, lab: Lab) -> Iterator[NotebookPage]:
    """A notebook of which all cells ran."""
    with opened(browser, lab, request.param) as page:
        page.run_all()
        yield page


@pytest.fixture
def notebook(run_notebook: NotebookPage) -> Iterator[NotebookPage]:
    """The same, and whatever a test did with it, the page complained of nothing and asked nobody outside."""
    yield run_notebook
    assert run_notebook.outside == []
    assert run_notebook.complaints == []


@pytest.fixture
def explorer(notebook: NotebookPage, figure: str) -> ExplorerOnPage:
    """An explorer with all its controls in sight, at the book's values."""
    found = notebook.explorers[figure]
    found.root.scroll_into_view_if_needed()
    found.open_more()
    found.back_to_book()
    return found


each_notebook = pytest.mark.parametrize("run_notebook", NOTEBOOKS, indirect=True)
each_explorer = pytest.mark.parametrize(("run_notebook", "figure"), EXPLORERS, indirect=["run_notebook"])


@pytest.fixture
def fresh(request: pytest.FixtureRequest, browser: Browser, lab: Lab) -> Iterator[NotebookPage]:
    """A notebook as it opens, with nothing run."""
    with opened(browser, lab, request.param) as page:
        yield page


@pytest.mark.parametrize("fresh", NOTEBOOKS, indirect=True)
def test_shows_the_stored_pictures_before_it_is_run(fresh: NotebookPage) -> None:
    outputs = [output for cell in fresh.stored().cells for output in cell.get("outputs", ())]
    widths = [output.metadata["image/png"]["width"] for output in outputs if "image/png" in output.get("data", ())]
    assert len(widths) >= sum(len(explored(cell)) for cell in fresh.stored().cells)
    pictures = fresh.page.locator(".jp-RenderedImage img")
    measure = "all => all.map(image => image.naturalWidth && image.width)"
    fresh.until(lambda: pictures.evaluate_all(measure) == widths, f"pictures {widths} px wide")
    fresh.photograph("not yet run")
    assert fresh.complaints == []


@each_notebook
def test_runs_from_top_to_bottom(notebook: NotebookPage) -> None:
    assert notebook.page.locator(ERRORS).all_text_contents() == []
    for figure in (figure for name, figure in EXPLORERS if name == notebook.notebook):
        explorer = notebook.explorers[figure]
        explorer.root.scroll_into_view_if_needed()
        assert explorer.root.is_visible()
        assert explorer.shown().picture


@each_notebook
def test_saving_after_a_run_and_a_move_leaves_git_clean(notebook: NotebookPage, lab: Lab) -> None:
    for handle in notebook.page.locator(".noUi-handle").all()[:1]:
        handle.press("End")
    file = lab.root / notebook.notebook
    before = file.stat().st_mtime_ns
    notebook.save()
    assert file.stat().st_mtime_ns != before
    assert lab.changes() == ""


@each_explorer
def test_each_slider_moves_picture_and_readouts(explorer: ExplorerOnPage, figure: str) -> None:
    assert len(explorer.sliders) == number_of(Slider, figure)
    for slider in explorer.sliders:
        push_to_both_ends(explorer, slider, figure)
        explorer.back_to_book()


def push_to_both_ends(explorer: ExplorerOnPage, slider: Locator, figure: str) -> None:
    name, handle, tall = slider.locator(".widget-label").inner_text(), slider.locator(".noUi-handle"), explorer.height
    low, high, start = (float(handle.get_attribute(f"aria-value{which}") or "") for which in ("min", "max", "now"))
    for key in ("ArrowLeft" if start == high else "ArrowRight", "End", "Home"):
        before = explorer.shown()
        handle.press(key)
        if start == {"End": high, "Home": low}.get(key):
            explorer.until(lambda now: now == explorer.first, f"{name} by {key} comes back to the start")
        else:
            explorer.until(partial(has_moved, explorer.first, before), f"{name} by {key} moves picture and read-outs")
        assert explorer.height == tall, f"{name} by {key} makes the page jump"
        explorer.photograph(f"{figure} {name} {key}")


def has_moved(first: Shown, before: Shown, now: Shown) -> bool:
    """Whether picture and read-outs have left their start, or a line says why they stayed."""
    return now != before and (now.line != "" or (now.picture != first.picture and now.table != first.table))


@each_explorer
def test_each_dropdown_changes_something_or_says_why_not(explorer: ExplorerOnPage, figure: str) -> None:
    assert len(explorer.dropdowns) == number_of(Choice, figure)
    for dropdown in explorer.dropdowns:
        options = dropdown.locator("option").evaluate_all("all => all.map(option => option.value)")
        for option in (option for option in options if option != dropdown.input_value()):
            dropdown.select_option(option)
            explorer.until(lambda now: now != explorer.first, f"{option} changes something")
            explorer.photograph(f"{figure} {option}")
            explorer.back_to_book()


@each_explorer
def test_each_prediction_is_judged_and_drawn(explorer: ExplorerOnPage, figure: str) -> None:
    question, tall = entry(figure).exploration.question(), explorer.height
    assert [button.inner_text() for button in explorer.predictions] == list(question.choices)
    for button, choice in zip(explorer.predictions, question.choices, strict=True):
        button.click()
        explorer.until(lambda now: now.picture != explorer.first.picture, "what was asked about is drawn")
        assert explorer.verdict == question.verdict(choice)
        assert explorer.height == tall, "the verdict makes the page jump"
        explorer.photograph(f"{figure} predicted {choice}")
        explorer.back_to_book()


@each_explorer
def test_each_named_setting_draws_a_picture_of_its_own(explorer: ExplorerOnPage, figure: str) -> None:
    pictures = [explorer.first.picture]
    for button in explorer.settings[1:]:
        button.click()
        explorer.until(lambda now: now.picture not in pictures, f"{button.inner_text()} draws a picture of its own")
        explorer.photograph(f"{figure} {button.inner_text()}")
        pictures.append(explorer.shown().picture)
        explorer.back_to_book()


@each_explorer
def test_nothing_is_cut_off(explorer: ExplorerOnPage, figure: str) -> None:
    page = explorer.notebook.page
    explorer.predictions[-1].click()
    try:
        for size in (NARROW, VIEWPORT):
            page.set_viewport_size(size)
            explorer.notebook.until(partial(fills_window, page, size["width"]), "JupyterLab has laid itself out anew")
            assert explorer.cut_off() == []
            explorer.photograph(f"{figure} {size['width']} px")
    finally:
        page.set_viewport_size(VIEWPORT)


def fills_window(page: Page, width: int) -> bool:
    """Whether the notebook reaches to the narrow bar at the window's right."""
    right = page.locator(".jp-NotebookPanel").evaluate("panel => panel.getBoundingClientRect().right")
    return bool(width - 60 < right <= width)


def number_of(kind: type[Control], figure: str) -> int:
    """How many controls of a kind the figure has."""
    return sum(isinstance(control, kind) for control in controls_of(entry(figure).draw).values())
