"""The browser for the tests that need one, what is said where there is none, and how tests share the workers."""

import os
import re
import shutil
from pathlib import Path

import pytest
from xdist.scheduler import LoadFileScheduling

BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "msedge",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "C:/Program Files/Google/Chrome/Application/chrome.exe",
)
NO_BROWSER = "no Chromium was found"
HOW_TO_GET_ONE = (
    "install Chromium or Chrome (Debian and Ubuntu: apt install chromium), or name its program: "
    "CHROMIUM=/path/to/chrome make test"
)


def find_browser() -> str:
    """The browser's program: the one that CHROMIUM names, else one on the path; empty where there is none."""
    candidates = (os.environ["CHROMIUM"],) if os.environ.get("CHROMIUM") else BROWSERS
    return next((found for found in map(shutil.which, candidates) if found), "")


@pytest.fixture(scope="session")
def chromium_path() -> Path:
    """The browser; without one the test is skipped, except in CI, where it fails."""
    found = find_browser()
    if found:
        return Path(found)
    if os.environ.get("CI") == "true":
        pytest.fail(f"{NO_BROWSER}, and in CI the browser tests must run; {HOW_TO_GET_ONE}")
    pytest.skip(NO_BROWSER)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say that browser tests did not run, which a bare count of skipped tests hides."""
    skipped = [report for report in terminalreporter.stats.get("skipped", []) if NO_BROWSER in str(report.longrepr)]
    if skipped:
        terminalreporter.section("browser tests did not run")
        terminalreporter.line(f"Left out, as {NO_BROWSER}: {len(skipped)}")
        terminalreporter.line(f"To run them: {HOW_TO_GET_ONE}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest first, so that no worker is left with them at the end while the others wait."""
    items.sort(key=lambda item: item.get_closest_marker("browser") is None)


class ByFileAndNotebook(LoadFileScheduling):
    """The tests of a file stay on one worker; in the browser, those of a notebook."""

    def _split_scope(self, nodeid: str) -> str:
        in_browser = re.match(r"tests/browser/.*\[(\S+\.ipynb)", nodeid)
        return f"{in_browser[1]} in the browser" if in_browser else super()._split_scope(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadFileScheduling | None:
    """Unless somebody asks for another way to share."""
    return ByFileAndNotebook(config, log) if config.getoption("dist") == "loadfile" else None
