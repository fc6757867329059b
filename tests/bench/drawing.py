"""Figures for print and for the screen, beside empty ones of the same size."""

import subprocess
import sys
import tempfile
from pathlib import Path

from figures.__main__ import draw
from figures.page import FORMATS, new_page, save, screen_png
from figures.registry import FIGURES, Entry
from figures.words import LANGUAGES
from tests.bench.frame import Result, median_seconds

ALL, BAR_S, REACH_S = 36, 60, 30
FILES = len(FORMATS) * len(LANGUAGES)


def all_figures() -> list[Result]:
    """All figures in all formats and languages by the command line, beside a run of it that draws nothing."""
    with tempfile.TemporaryDirectory() as folder:
        drawn, started = median_seconds(lambda: _figures("draw", "--to", folder), lambda: _figures("list"), times=3)
    at_this_pace = started + (drawn - started) * ALL / len(FIGURES)
    what = f"{ALL} figures at the pace of these {len(FIGURES)}"
    return [Result(what, at_this_pace, "s", "only start", started, BAR_S, REACH_S)]


def each_figure() -> list[Result]:
    """Each figure in all formats and languages, in one process, beside empty figures of its size."""
    return [_one_figure(entry) for entry in FIGURES]


def explorer_pictures() -> list[Result]:
    """Each figure as an explorer draws it, beside an empty one of its size."""
    return [_one_picture(entry) for entry in FIGURES]


def _figures(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "figures", *words], check=True, capture_output=True)


def _one_figure(entry: Entry) -> Result:
    height_pt = _height_pt(entry)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        drawn, empty = median_seconds(
            lambda: [draw(entry.slug, language, FORMATS, folder) for language in LANGUAGES],
            lambda: _save_empty(height_pt, folder),
            times=3,
        )
    return Result(f"{entry.slug}, {FILES} files", drawn, "s", "empty figures", empty, BAR_S / ALL, REACH_S / ALL)


def _one_picture(entry: Entry) -> Result:
    height_pt = _height_pt(entry)
    drawn, empty = median_seconds(lambda: screen_png(entry.figure()), lambda: screen_png(new_page(height_pt)), times=25)
    return Result(entry.slug, drawn * 1e3, "ms", "empty figure", empty * 1e3, 100, 60)


def _save_empty(height_pt: float, folder: Path) -> None:
    for kind in FORMATS:
        for _ in LANGUAGES:
            save(new_page(height_pt), folder / f"empty.{kind}")


def _height_pt(entry: Entry) -> float:
    return float(entry.figure().get_size_inches()[1]) * 72
