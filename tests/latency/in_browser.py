"""What a reader waits for: from the key that moves a slider to the changed picture, in a real browser."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from playwright.sync_api import Browser, Locator, Page

from figures.exploration import Slider
from figures.explorer import Explorer, explore
from tests.browser.lab import Lab
from tests.browser.notebook_page import IMAGE, ExplorerOnPage, opened

PRESSES = 14
BURST_PAUSE_MS = 40
# Longer than any wait worth measuring: a press that changes no picture ends here and is not counted.
GIVE_UP_MS = 3000
_MEASURE_NEXT_KEY = f"""root => {{
    const image = root.querySelector('{IMAGE}'), before = image.src;
    window.measured = new Promise(done => addEventListener('keydown', () => {{
        const start = performance.now();
        const look = () => {{
            const passed = performance.now() - start;
            if (image.src !== before && image.complete) done(passed);
            else if (passed > {GIVE_UP_MS}) done(null);
            else requestAnimationFrame(look);
        }};
        look();
    }}, {{ once: true, capture: true }}));
}}"""
_WATCH_BURST = f"""root => {{
    const image = root.querySelector('{IMAGE}');
    window.burst = {{ shown: 0, key: 0, last: 0, ended: false }};
    addEventListener('keydown', () => burst.key = performance.now(), {{ capture: true }});
    let before = image.src;
    const look = () => {{
        if (image.src !== before && image.complete) {{
            before = image.src;
            burst.shown += 1;
            burst.last = performance.now();
        }}
        if (!burst.ended) requestAnimationFrame(look);
    }};
    look();
}}"""


@dataclass(frozen=True)
class BrowserTimes:
    """Milliseconds from a press to its picture; of a burst, the pictures shown and the wait for the last."""

    slider: str
    presses: list[float]
    shown: int
    settled: float


def browser_times(browser: Browser, lab: Lab, figure: str) -> list[BrowserTimes]:
    """Press keys on each slider in view of an explorer, one at a time and in a burst."""
    notebook = lab.write_notebook(figure, f'from figures.explorer import explore\nexplore("{figure}")')
    plan = explore(figure)
    with opened(browser, lab, notebook) as page:
        page.run_all()
        shown = page.explorers[figure]
        in_view = [name for name in plan.entry.exploration.in_view if isinstance(plan.controls[name], Slider)]
        return [_times(shown, slider, keys(plan, name)) for slider, name in zip(shown.sliders, in_view, strict=False)]


def keys(plan: Explorer, name: str) -> list[str]:
    """Arrow keys that walk a slider to and fro from the book's value, so that each press moves it."""
    control = plan.controls[name]
    assert isinstance(control, Slider)
    last = round((control.high - control.low) / control.step)
    place = round((control.to_position(plan.book[name]) - control.low) / control.step)
    places, step = [place], 1
    for _ in range(PRESSES):
        step = -step if not 0 <= places[-1] + step <= last else step
        places.append(places[-1] + step)
    return ["ArrowRight" if after > before else "ArrowLeft" for before, after in pairwise(places)]


def _times(explorer: ExplorerOnPage, slider: Locator, presses: list[str]) -> BrowserTimes:
    page, handle = explorer.notebook.page, slider.locator(".noUi-handle")
    slider.scroll_into_view_if_needed()
    name = slider.locator(".widget-label").inner_text()
    times = [_one_press(page, explorer, handle, key) for key in presses]
    explorer.back_to_book()
    burst = _burst(page, explorer, handle, presses)
    explorer.back_to_book()
    return BrowserTimes(
        name, [time for time in times if time is not None], burst["shown"], burst["last"] - burst["key"]
    )


def _one_press(page: Page, explorer: ExplorerOnPage, handle: Locator, key: str) -> float | None:
    explorer.root.evaluate(_MEASURE_NEXT_KEY)
    handle.press(key)
    taken: float | None = page.evaluate("measured")
    page.wait_for_timeout(100)  # the read-outs come after the picture
    return taken


def _burst(page: Page, explorer: ExplorerOnPage, handle: Locator, presses: list[str]) -> dict[str, Any]:
    handle.focus()
    explorer.root.evaluate(_WATCH_BURST)
    for key in presses:
        page.keyboard.press(key)
        page.wait_for_timeout(BURST_PAUSE_MS)
    page.wait_for_timeout(GIVE_UP_MS)
    burst: dict[str, Any] = page.evaluate("() => { burst.ended = true; return burst; }")
    return burst
