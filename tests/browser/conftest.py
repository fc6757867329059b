"""One JupyterLab and one browser for all tests of this folder, and a screenshot of each page at which a test failed."""

import re
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser.lab import Lab, running_lab
from tests.browser.notebook_page import SCREENSHOTS, chromium


# Of the package and not of the session: as long as the browser is held, an event loop runs in this thread.
@pytest.fixture(scope="package")
def browser(chromium_path: Path) -> Iterator[Browser]:
    """A browser without a window."""
    with chromium(chromium_path) as started:
        yield started


@pytest.fixture(scope="package")
def lab(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """JupyterLab on a copy of the project."""
    with running_lab(tmp_path_factory.mktemp("lab")) as started:
        yield started


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    held = item.funcargs.get("browser") if isinstance(item, pytest.Function) else None
    if report.failed and isinstance(held, Browser):
        pages = [page for context in held.contexts for page in context.pages]
        for number, page in enumerate(pages, start=1):
            name = re.sub(r"\W+", "-", f"{item.name} {report.when} {number}")
            page.screenshot(path=SCREENSHOTS / "failed" / f"{name}.png")
    return report
