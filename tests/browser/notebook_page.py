"""A notebook in a real browser, used as a reader uses it: by menu, mouse and keyboard."""

import json
import os
import re
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Locator, Page, ViewportSize, WebSocket, sync_playwright

from tests.browser.lab import PATIENCE_S, ROOT, Lab, last_said
from tools.notebooks import joined, read_notebook

SCREENSHOTS = ROOT / "build" / "screenshots"
# High enough for a whole explorer, so that its screenshots are whole.
VIEWPORT = ViewportSize(width=1280, height=1400)
QUIET = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
POP_UPS = ".jp-Dialog, .Toastify__toast"
IMAGE = "img.widget-image"
FRAME = f".widget-box:has(> {IMAGE})"
# The parts of an explorer come one by one; it is there when picture and table are.
EXPLORER = f".jp-OutputArea-output > .widget-vbox:has({IMAGE}[src]):has(tr)"
# Each new picture has an address of its own, so that one that stays is fetched once, however often it is looked at.
_READ = f"""async root => {{
    const image = root.querySelector('{IMAGE}');
    const text = path => root.querySelector(path).textContent.trim();
    const rows = [...root.querySelectorAll('.widget-html tr')].map(row => [...row.cells].map(cell => cell.textContent));
    const known = (root.digests ??= new Map());
    const digest = async () => {{
        const hashed = await crypto.subtle.digest('SHA-256', await (await fetch(image.src)).arrayBuffer());
        return Array.from(new Uint8Array(hashed), byte => byte.toString(16).padStart(2, '0')).join('');
    }};
    const address = image.style.display === 'none' ? '' : image.src;
    if (address && !known.has(address)) known.set(address, await digest());
    return {{
        picture: known.get(address) ?? '',
        table: rows.map(row => row.join(' | ')).join('\\n'),
        line: text('{FRAME} + .widget-html'),
        sentence: text('{FRAME} .widget-html'),
    }};
}}"""
_CUT_OFF = """root => {
    const parts = root.querySelectorAll('button, select, table, .widget-box, .widget-label, .widget-readout');
    const wide = [root, ...parts].filter(part => part.clientWidth && part.scrollWidth > part.clientWidth);
    const edge = root.closest('.jp-OutputArea-output').getBoundingClientRect().right;
    const beyond = [...root.querySelectorAll('*')].filter(part => part.getBoundingClientRect().right > edge + 1);
    return [...wide, ...beyond].map(part => `${part.className || part.tagName}: ${part.innerText || ''}`);
}"""


@contextmanager
def chromium(program: Path) -> Iterator[Browser]:
    """A browser without a window, which asks nobody for anything by itself."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=QUIET)
        yield browser
        browser.close()


@contextmanager
def opened(browser: Browser, lab: Lab, notebook: str = "") -> Iterator["NotebookPage"]:
    """A notebook whose kernel waits for work; without a name, the one that JupyterLab opens by itself."""
    page = browser.new_page(viewport=VIEWPORT)
    page.set_default_timeout(PATIENCE_S * 1000)
    requests: list[str] = []
    complaints: list[str] = []
    under_way: set[str] = set()
    page.on("request", lambda request: requests.append(request.url))
    page.on("websocket", lambda socket: requests.append(socket.url))
    page.on("websocket", lambda socket: _keep_book(socket, under_way))
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(lab.address(notebook))
    page.wait_for_selector(".jp-Notebook .jp-Cell")
    path = urlsplit(page.url).path.removeprefix("/lab/tree/")
    shown = NotebookPage(page, lab, path, requests, complaints, under_way)
    shown.await_idle()
    try:
        yield shown
    finally:
        page.close()
        lab.end_kernels()


@dataclass(frozen=True)
class NotebookPage:
    """One notebook open in JupyterLab, with the addresses that its page asked for and its complaints.

    `under_way` are the messages to the kernel that it has not yet done with.
    """

    page: Page
    lab: Lab
    notebook: str
    requests: list[str]
    complaints: list[str]
    under_way: set[str]
    explorers: dict[str, "ExplorerOnPage"] = field(default_factory=dict)

    @property
    def cells(self) -> Locator:
        return self.page.locator(".jp-Notebook .jp-Cell")

    def stored(self) -> Any:
        """The notebook as it lies in its file."""
        return read_notebook((self.lab.root / self.notebook).read_text(encoding="utf-8"))

    @property
    def outside(self) -> list[str]:
        """The addresses on other machines that the page asked for."""
        return [url for url in self.requests if urlsplit(url).hostname not in ("127.0.0.1", "localhost", None)]

    def await_idle(self) -> None:
        """Wait until the kernel has done all that the page asked for, and the page has shown that."""
        self.until(self._is_idle, "the kernel is idle")

    def _is_idle(self) -> bool:
        if self.under_way or "| Idle" not in self._status():
            return False
        # An answer may still be on its way into the page, and let it ask for what it held back meanwhile.
        self.page.wait_for_timeout(50)
        return not self.under_way

    def _status(self) -> str:
        return " ".join(self.page.locator("#jp-main-statusbar").all_inner_texts())

    def run_all(self) -> None:
        """Run all cells by the menu, wait until they are numbered from 1 on, and find the explorers."""
        code = [
            place for place, cell in enumerate(self.stored().cells) if cell.cell_type == "code" and cell.source.strip()
        ]
        prompts = [self.cells.nth(place).locator(".jp-InputPrompt") for place in code]
        numbers = [f"[{number}]:" for number in range(1, len(code) + 1)]
        # The stored numbers look as if all had run already.
        self.choose("Edit", "Clear Outputs of All Cells")
        self.choose("Run", "Run All Cells")
        self.until(lambda: [prompt.text_content() for prompt in prompts] == numbers, "all cells ran")
        self.await_idle()
        for place, cell in enumerate(self.stored().cells):
            for figure in explored(cell):
                root = self.cells.nth(place).locator(EXPLORER)
                self.explorers[figure] = ExplorerOnPage(self, root, _shown(root))

    def choose(self, *path: str) -> None:
        """Choose from the menus, such as "Run", "Run All Cells"."""
        for name in path:
            self.page.locator(".lm-MenuBar-itemLabel, .lm-Menu-itemLabel").get_by_text(name, exact=True).click()

    def save(self) -> None:
        """Save by keyboard, and wait until the server has written the file."""
        with self.page.expect_response(
            lambda answer: answer.request.method == "PUT" and self.notebook in answer.url
        ) as written:
            self.page.keyboard.press("Control+s")
        assert written.value.ok

    def photograph(self, name: str) -> None:
        """Keep a picture of the page."""
        photograph(self.page, self.notebook, name)

    def until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait until something holds; fails if it never does."""
        late = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < late, f"waited in vain: {what}\n{self._account()}"
            self.page.wait_for_timeout(20)

    def _account(self) -> str:
        """How page, server and kernel stand, for whoever must find out why something was waited for in vain."""
        pop_ups = self.page.locator(POP_UPS).all_inner_texts()
        return (
            f"status bar: {self._status()!r}; pop-ups: {pop_ups}; messages under way: {len(self.under_way)}; "
            f"complaints: {self.complaints}; the lab's log:\n{last_said(self.lab.root)}"
        )


def _keep_book(socket: WebSocket, under_way: set[str]) -> None:
    """Keep book of what a page asks its kernel for and the kernel has not yet done."""

    def asked(frame: str | bytes) -> None:
        channel, header, _, _ = _message(frame)
        if channel == "shell":
            under_way.add(header["msg_id"])

    def answered(frame: str | bytes) -> None:
        _, header, parent, content = _message(frame)
        if header["msg_type"] == "status" and content["execution_state"] == "idle":
            under_way.discard(parent.get("msg_id", ""))

    if urlsplit(socket.url).path.endswith("/channels"):
        socket.on("framesent", asked)
        socket.on("framereceived", answered)


def _message(frame: str | bytes) -> tuple[str, Any, Any, Any]:
    """Channel, header, parent header and content of a message between page and server (v1 of their protocol)."""
    assert isinstance(frame, bytes)
    (count,) = struct.unpack_from("<Q", frame)
    ends = struct.unpack_from(f"<{count}Q", frame, 8)
    channel, header, parent, _, content = (frame[start:end] for start, end in pairwise(ends[:6]))
    return channel.decode("ascii"), json.loads(header), json.loads(parent), json.loads(content)


def explored(cell: Any) -> list[str]:
    """The figures that a cell explores at the book's values."""
    return (
        re.findall(r"""^explore\(["']([\w-]+)["']""", joined(cell.source), re.MULTILINE)
        if cell.cell_type == "code"
        else []
    )


@dataclass(frozen=True)
class Shown:
    """What an explorer shows: picture (SHA-256; empty while a sentence has its place), table, the line between them."""

    picture: str
    table: str
    line: str
    sentence: str


@dataclass(frozen=True)
class ExplorerOnPage:
    """One live explorer in a page, and what it showed when its cell had run."""

    notebook: NotebookPage
    root: Locator
    first: Shown

    @property
    def sliders(self) -> list[Locator]:
        """The sliders, those under "more" last."""
        return self.root.locator(".widget-slider").all()

    @property
    def dropdowns(self) -> list[Locator]:
        return self.root.locator("select").all()

    @property
    def predictions(self) -> list[Locator]:
        """The buttons that answer the question."""
        return self.root.locator(".widget-box:has(> button)").first.get_by_role("button").all()

    @property
    def settings(self) -> list[Locator]:
        """The buttons of the named settings; the first brings back the book's values."""
        return self.root.locator(".widget-box:has(> button)").last.get_by_role("button").all()

    @property
    def verdict(self) -> str:
        return self.root.locator(".widget-box:has(> button) + .widget-html").first.inner_text().strip()

    @property
    def height(self) -> float:
        return float(self.root.evaluate("root => root.getBoundingClientRect().height"))

    def photograph(self, name: str) -> None:
        """Keep a picture of the explorer."""
        photograph(self.root, self.notebook.notebook, name)

    def shown(self) -> Shown:
        return _shown(self.root)

    def until(self, holds: Callable[[Shown], bool], what: str) -> None:
        """Wait until something holds for what is shown; fails if it never does."""
        self.notebook.until(lambda: holds(self.shown()), what)

    def cut_off(self) -> list[str]:
        """The parts that are wider than their place."""
        return list(self.root.evaluate(_CUT_OFF))

    def open_more(self) -> None:
        """Open the controls under "more"."""
        closed = ".jupyter-widget-Collapse:has(> .lm-mod-hidden) > .jupyter-widget-Collapse-header"
        for header in self.root.locator(closed).all():
            header.click()

    def back_to_book(self) -> None:
        """Press the button of the book's values if others are shown; fails unless that shows what was shown first.

        All that was asked for before must be done: else its end would look like that of what is asked for next.
        """
        self.notebook.await_idle()
        if self.shown() == self.first:
            return
        self.settings[0].click()
        self.until(lambda now: now == self.first, "the book's values show the first picture and read-outs")


def _shown(root: Locator) -> Shown:
    return Shown(**root.evaluate(_READ))


def photograph(what: Page | Locator, notebook: str, name: str) -> None:
    """Keep a picture for whoever looks at them: in CI, nobody."""
    if os.environ.get("CI") != "true":
        file = re.sub(r"\W+", "-", name).strip("-") + ".png"
        what.screenshot(path=SCREENSHOTS / Path(notebook).stem / file)
