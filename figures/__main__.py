"""Draw figures for print: `python -m figures` lists them, `python -m figures draw` draws all of them or those named."""

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from textwrap import shorten

from figures.guard import FigureFault, guard
from figures.page import FORMATS, save
from figures.registry import FIGURES, entry
from figures.words import LANGUAGES, words
from lib.checks import InputError


def draw(slug: str, language: str, formats: tuple[str, ...], folder: Path) -> list[Path]:
    """Draw one figure in one language into `folder/language`, one file a format; gives the paths.

    Raises FigureFault, and writes nothing, if the guard refuses the figure.
    """
    chosen = entry(slug)
    figure = chosen.figure(language=language)
    guard(figure, f"{slug} ({language})", chosen.may_overlap)
    paths = [folder / language / f"{slug}.{kind}" for kind in formats]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        save(figure, path)
    return paths


def main(arguments: list[str] | None = None) -> int:
    """The command line; gives the exit code."""
    chosen = _parser().parse_args(arguments)
    if chosen.command != "draw":
        for known in FIGURES:
            caption = shorten(words("en", known.slug)["caption"], 80)
            print(f"{known.number or '–':<5} {known.slug:<24} {known.section:<6} {caption}")
        return 0
    try:
        named = dict.fromkeys(entry(name).slug for name in chosen.figure)
        slugs = list(named) or [known.slug for known in FIGURES]
        jobs = list(product(slugs, chosen.language))
        with ProcessPoolExecutor(min(len(jobs), os.cpu_count() or 1)) as pool:
            drawn = [pool.submit(draw, slug, language, tuple(chosen.format), chosen.to) for slug, language in jobs]
            for path in (path for job in drawn for path in job.result()):
                print(path)
    except (InputError, FigureFault, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m figures", description=__doc__)
    commands = parser.add_subparsers(dest="command")
    commands.add_parser("list", help="number, name, section and caption of each figure (also without a command)")
    drawing = commands.add_parser("draw", help="draw all figures, or those named by slug or number")
    drawing.add_argument("figure", nargs="*", help="slug or number, such as request-timeline or 8-2")
    drawing.add_argument("--language", nargs="+", choices=LANGUAGES, default=LANGUAGES)
    drawing.add_argument("--format", nargs="+", choices=FORMATS, default=FORMATS)
    drawing.add_argument("--to", type=Path, default=Path("build/figures"), metavar="FOLDER")
    return parser


if __name__ == "__main__":
    sys.exit(main())
