"""Each notebook of the chapter as a reader uses it: run, moved by keyboard, saved."""

from collections.abc import Iterator
from functools import partial

import pytest
from playwright.sync_api import Browser, Locator, Page, ViewportSize

from figures.exploration import Choice, Control, Slider, controls_of
from figures.registry import entry
from tests.browser.lab import ROOT, Lab
from tests.browser.notebook_page import POP_UPS, VIEWPORT, ExplorerOnPage, NotebookPage, Shown, explored, opened
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
# Of every day is the notebook that opens first; the others take minutes, and nbval runs their cells every day, too.
EVERY_DAY = NOTEBOOKS[0]


def marks_of(notebook: str) -> tuple[pytest.MarkDecorator, ...]:
    return () if notebook == EVERY_DAY else (pytest.mark.long,)


# Of the module, so that a notebook is opened and run once for all its tests. pytest brings tests of equal parameters
# together: a figure is named with its notebook, as two notebooks may explore the same one.
each_notebook = pytest.mark.parametrize(
    "fresh", [pytest.param(each, marks=marks_of(each), id=each) for each in NOTEBOOKS], indirect=True, scope="module"
)
each_explorer = pytest.mark.parametrize(
    ("fresh", "place"),
    [pytest.param(place[0], place, marks=marks_of(place[0]), id="-".join(place)) for place in EXPLORERS],
    indirect=["fresh"],
    scope="module",
)


@pytest.fixture(scope="module")
def fresh(request: pytest.FixtureRequest, browser: Browser, lab: Lab) -> Iterator[NotebookPage]:
    """A notebook as it opens, with nothing run until a test asks for that."""
    with opened(browser, lab, request.param) as page:
        yield page


@pytest.fixture(scope="module")
def run_notebook(fresh: NotebookPage) -> NotebookPage:
    """A notebook of which all cells ran."""
    fresh.run_all()
    return fresh


@pytest.fixture
def notebook(run_notebook: NotebookPage) -> Iterator[NotebookPage]:
    """The same, and whatever a test did with it, the page complained of nothing and asked nobody outside."""
    yield run_notebook
    assert run_notebook.outside == []
    assert run_notebook.complaints == []


@pytest.fixture
def figure(place: tuple[str, str]) -> str:
    return place[1]


@pytest.fixture
def explorer(notebook: NotebookPage, figure: str) -> ExplorerOnPage:
    """An explorer with all its controls in sight, at the book's values."""
    found = notebook.explorers[figure]
    found.root.scroll_into_view_if_needed()
    found.open_more()
    found.back_to_book()
    return found


@each_notebook
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
    assert notebook.page.locator(POP_UPS).all_inner_texts() == []
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
def test_answers_a_click_a_key_and_a_choice(explorer: ExplorerOnPage, figure: str) -> None:
    assert len(explorer.sliders) == number_of(Slider, figure)
    assert len(explorer.dropdowns) == number_of(Choice, figure)
    predict(explorer, figure, 0)
    explorer.back_to_book()
    for slider in explorer.sliders[:1]:
        push(explorer, slider, figure, ends=())
        explorer.back_to_book()
    for dropdown in explorer.dropdowns[:1]:
        choose(explorer, dropdown, others(dropdown)[0])
        explorer.back_to_book()


@pytest.mark.long
@each_explorer
def test_keys_work_in_the_explorer_and_are_no_commands_to_the_notebook(explorer: ExplorerOnPage) -> None:
    page, cells = explorer.notebook.page, explorer.notebook.cells
    kinds = "all => all.map(cell => cell.className.match(/jp-[a-zA-Z]+Cell/)[0])"
    before = cells.evaluate_all(kinds)
    for dropdown in explorer.dropdowns[:1]:
        start, first = dropdown.input_value(), dropdown.locator("option").first.get_attribute("value")
        dropdown.press("ArrowDown" if start == first else "ArrowUp")
        explorer.until(lambda now: now != explorer.first, "an arrow key chooses another option")
        assert dropdown.input_value() != start
    for control in (explorer.root.locator("select, .noUi-handle").first, explorer.settings[0]):
        for key in ("m", "Shift+M", "ArrowDown", "y"):
            control.press(key)
            assert control.evaluate("control => control === document.activeElement"), key
    assert cells.evaluate_all(kinds) == before
    explorer.notebook.await_idle()
    page.keyboard.press("Enter")
    explorer.until(lambda now: now == explorer.first, "Enter presses the button of the book's values")


@pytest.mark.long
@each_explorer
def test_each_slider_moves_picture_and_readouts(explorer: ExplorerOnPage, figure: str) -> None:
    for slider in explorer.sliders:
        push(explorer, slider, figure)
        explorer.back_to_book()


@pytest.mark.long
@each_explorer
def test_each_dropdown_changes_something_or_says_why_not(explorer: ExplorerOnPage, figure: str) -> None:
    for dropdown in explorer.dropdowns:
        for option in others(dropdown):
            choose(explorer, dropdown, option)
            explorer.photograph(f"{figure} {option}")
            explorer.back_to_book()


@pytest.mark.long
@each_explorer
def test_each_prediction_is_judged_and_drawn(explorer: ExplorerOnPage, figure: str) -> None:
    choices = entry(figure).exploration.question().choices
    assert [button.inner_text() for button in explorer.predictions] == list(choices)
    for place, choice in enumerate(choices):
        predict(explorer, figure, place)
        explorer.photograph(f"{figure} predicted {choice}")
        explorer.back_to_book()


@pytest.mark.long
@each_explorer
def test_each_named_setting_draws_a_picture_of_its_own(explorer: ExplorerOnPage, figure: str) -> None:
    pictures = [explorer.first.picture]
    for button in explorer.settings[1:]:
        button.click()
        explorer.until(lambda now: now.picture not in pictures, f"{button.inner_text()} draws a picture of its own")
        explorer.photograph(f"{figure} {button.inner_text()}")
        pictures.append(explorer.shown().picture)
        explorer.back_to_book()


@pytest.mark.long
@each_explorer
def test_nothing_is_cut_off(explorer: ExplorerOnPage, figure: str) -> None:
    page = explorer.notebook.page
    predict(explorer, figure, -1)
    try:
        for size in (NARROW, VIEWPORT):
            page.set_viewport_size(size)
            explorer.notebook.until(partial(fills_window, page, size["width"]), "JupyterLab has laid itself out anew")
            assert explorer.cut_off() == []
            explorer.photograph(f"{figure} {size['width']} px")
    finally:
        page.set_viewport_size(VIEWPORT)


def predict(explorer: ExplorerOnPage, figure: str, place: int) -> None:
    """Answer the question by one of its buttons: the answer is judged, and what was asked about is drawn."""
    question, tall = entry(figure).exploration.question(), explorer.height
    explorer.predictions[place].click()
    explorer.until(lambda now: now.picture != explorer.first.picture, "what was asked about is drawn")
    assert explorer.verdict == question.verdict(question.choices[place])
    assert explorer.height == tall, "the verdict makes the page jump"


def push(explorer: ExplorerOnPage, slider: Locator, figure: str, ends: tuple[str, ...] = ("End", "Home")) -> None:
    """Move a slider by an arrow key and then to its ends; the page stays still meanwhile."""
    name, handle, tall = slider.locator(".widget-label").inner_text(), slider.locator(".noUi-handle"), explorer.height
    low, high, start = (float(handle.get_attribute(f"aria-value{which}") or "") for which in ("min", "max", "now"))
    for key in ("ArrowLeft" if start == high else "ArrowRight", *ends):
        before, at = explorer.shown(), float(handle.get_attribute("aria-valuenow") or "")
        if at == {"End": high, "Home": low}.get(key):
            continue  # the step before has led there
        handle.press(key)
        if start == {"End": high, "Home": low}.get(key):
            explorer.until(partial(is_back, explorer.first), f"{name} by {key} comes back to the start")
        else:
            explorer.until(partial(has_moved, before), f"{name} by {key} moves picture and read-outs")
        assert explorer.height == tall, f"{name} by {key} makes the page jump"
        if key in ends:
            explorer.photograph(f"{figure} {name} {key}")


def is_back(first: Shown, now: Shown) -> bool:
    """Whether picture and read-outs are those of the start; the last move may have changed nothing, with a line."""
    return (now.picture, now.table) == (first.picture, first.table)


def has_moved(before: Shown, now: Shown) -> bool:
    """Whether picture or read-outs are others than before, or a line says why they stayed."""
    return now.line != "" or (now.picture, now.table) != (before.picture, before.table)


def others(dropdown: Locator) -> list[str]:
    """The options of a dropdown other than the one it shows."""
    options = dropdown.locator("option").evaluate_all("all => all.map(option => option.value)")
    return [option for option in options if option != dropdown.input_value()]


def choose(explorer: ExplorerOnPage, dropdown: Locator, option: str) -> None:
    """Choose an option: something changes, or a line says why not."""
    dropdown.select_option(option)
    explorer.until(lambda now: now != explorer.first, f"{option} changes something")


def fills_window(page: Page, width: int) -> bool:
    """Whether the notebook reaches to the narrow bar at the window's right."""
    right = page.locator(".jp-NotebookPanel").evaluate("panel => panel.getBoundingClientRect().right")
    return bool(width - 60 < right <= width)


def number_of(kind: type[Control], figure: str) -> int:
    """How many controls of a kind the figure has."""
    return sum(isinstance(control, kind) for control in controls_of(entry(figure).draw).values())
