"""Measure explorers: `python -m tests.latency` all of them, `python -m tests.latency request-timeline` one."""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from figures.registry import FIGURES, entry
from lib.checks import InputError
from tests.browser.lab import running_lab
from tests.browser.notebook_page import chromium
from tests.conftest import HOW_TO_GET_ONE, NO_BROWSER, find_browser
from tests.latency.in_browser import BURST_PAUSE_MS, PRESSES, BrowserTimes, browser_times
from tests.latency.kernel import KernelTimes, kernel_times

KERNEL_BAR = "bar for the median: 100 ms, reach for 60"
BROWSER_BAR = "bar for the median: 250 ms, reach for 120"


def main(arguments: list[str] | None = None) -> int:
    """Print the times of the figures named, or of all; it measures and does not judge."""
    parser = argparse.ArgumentParser(prog="python -m tests.latency", description=__doc__)
    parser.add_argument("figure", nargs="*", help="slug or number, such as request-timeline or 8-2")
    try:
        slugs = [entry(name).slug for name in parser.parse_args(arguments).figure] or [known.slug for known in FIGURES]
    except InputError as error:
        parser.error(str(error))
    print(f"In the kernel, ms from a new setting to picture and read-outs ({KERNEL_BAR})\n")
    print(f"{'':<26}{'median':>8}{'worst':>8}{'moves':>7}{'refused':>9}{'empty figure':>14}{'times it':>10}")
    for slug in slugs:
        print(_kernel_line(slug, kernel_times(slug)), flush=True)
    print(f"\nIn a browser, ms from a key on a slider to the changed picture ({BROWSER_BAR})")
    print(f"Each of {PRESSES} presses by itself; then a burst of {PRESSES}, {BURST_PAUSE_MS} ms apart.\n")
    program = find_browser()
    if not program:
        print(f"Not measured, as {NO_BROWSER}: {HOW_TO_GET_ONE}")
        return 0
    print(f"{'':<26}{'':<20}{'median':>8}{'worst':>8}{'changed':>9}{'burst: shown':>14}{'settled after':>15}")
    with TemporaryDirectory() as folder, running_lab(Path(folder)) as lab, chromium(Path(program)) as browser:
        for slug in slugs:
            for line in _browser_lines(slug, browser_times(browser, lab, slug)):
                print(line, flush=True)
    return 0


def _kernel_line(slug: str, times: KernelTimes) -> str:
    return (
        f"{slug:<26}{median(times.moves):>8.1f}{max(times.moves):>8.1f}{len(times.moves):>7}{times.refused:>9}"
        f"{median(times.empty):>14.1f}{times.ratio:>10.1f}"
    )


def _browser_lines(slug: str, sliders: Iterable[BrowserTimes]) -> Iterable[str]:
    for times in sliders:
        middle = f"{median(times.presses):>8.0f}{max(times.presses):>8.0f}" if times.presses else f"{'–':>8}{'–':>8}"
        settled = f"{times.settled:>15.0f}" if times.shown else f"{'–':>15}"
        yield f"{slug:<26}{times.slider:<20}{middle}{len(times.presses):>9}{times.shown:>14}{settled}"


if __name__ == "__main__":
    sys.exit(main())
