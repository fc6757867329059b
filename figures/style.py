"""How every figure looks: width, type, lines, colours and hatches, the same in both languages."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any

import matplotlib as mpl
from matplotlib import font_manager

WIDTH_PT = 420
TEXT_PT = 10
SMALLEST_TEXT_PT = 10
PRINT_DPI = 240
FONT_FILE = Path(__file__).parent / "fonts" / "ChapterSansSC-Regular.ttf"
FONT_FAMILY = "Chapter Sans SC"

# Neighbouring roles differ in lightness or in hatch, so that grey print and colour-blind eyes can tell them apart.
INK = "#1f2430"
FAINT = "#8a909c"
PAPER = "#ffffff"
LIMIT = "#b3243b"
FILL = {"queue": "#dfe2e8", "prefill": "#2b5fa8", "decode": "#9bd3a8", "foreign": "#e8943a", "shared": "#d48ac8"}
REQUEST = {"A": "#a9c8ec", "B": "#f4d3a4", "C": "#c4e5cb", "D": "#dcc3e6", "E": "#e4e2a0"}
HATCH = {"queue": "////", "prefill": "", "decode": "", "foreign": "xxxx", "shared": "...."}
# Colour and dashes of a line. Lines that may cross differ in lightness or in dashes, as fills do.
LINE: dict[str, tuple[str, Any]] = {
    "one": ("#2b5fa8", "-"),
    "other": ("#4da36c", "-"),
    "weights": (FAINT, (0, (5, 2))),
    "fit": ("#2b5fa8", "-"),
    "device": ("#4da36c", (0, (6, 2))),
    "launch": ("#a05a10", (0, (2, 1))),
}

LINE_PT, THIN_PT = 1.2, 0.6

_OWN: dict[str, Any] = {
    "font.family": [FONT_FAMILY, "DejaVu Sans"],
    "font.size": TEXT_PT,
    "axes.titlesize": TEXT_PT,
    "axes.labelsize": TEXT_PT,
    "xtick.labelsize": TEXT_PT,
    "ytick.labelsize": TEXT_PT,
    "legend.fontsize": TEXT_PT,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.linewidth": THIN_PT,
    "xtick.major.width": THIN_PT,
    "ytick.major.width": THIN_PT,
    "hatch.linewidth": THIN_PT,
    "hatch.color": INK,
    "lines.linewidth": LINE_PT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.unicode_minus": True,
    "figure.facecolor": PAPER,
    "savefig.facecolor": PAPER,
    "svg.hashsalt": "chapter 8",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
}

if not FONT_FILE.is_file():
    raise FileNotFoundError(f"the figures' font is missing: {FONT_FILE.name}; mend: git checkout -- figures/fonts")
font_manager.fontManager.addfont(FONT_FILE)
# A reader's own style sheet must not reach the book's figures, so every setting is put back, not only ours.
_BACKENDS = ("backend", "backend_fallback", "interactive", "toolbar", "webagg", "date.epoch")
_DEFAULTS: Any = mpl.rcParamsDefault
_ALL: Any = {key: value for key, value in _DEFAULTS.items() if not key.startswith(_BACKENDS)} | _OWN


# matplotlib's settings are those of the whole process, and a kernel may draw in two threads: a cell and a control.
_ONE_AT_A_TIME = RLock()


@contextmanager
def in_book_style() -> Iterator[None]:
    """A context in which figures are made and drawn with the book's settings and nothing of the caller's.

    Another thread waits until it ends.
    """
    with _ONE_AT_A_TIME, mpl.rc_context(_ALL):
        yield


def line(role: str) -> dict[str, Any]:
    """How a line of this role is drawn."""
    colour, dashes = LINE[role]
    return {"color": colour, "linestyle": dashes}


def look(role: str) -> dict[str, Any]:
    """How a patch of this role is filled and outlined."""
    return {"facecolor": FILL[role], "hatch": HATCH[role], "edgecolor": INK, "linewidth": THIN_PT}
