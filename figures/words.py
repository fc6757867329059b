"""The text of the figures in each language, one table per figure in `figures/labels`."""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from lib.checks import one_of

LANGUAGES = ("en", "zh")
_FOLDER = Path(__file__).parent / "labels"


def words(language: str, slug: str) -> Mapping[str, str]:
    """The labels, caption and alt text of one figure.

    Raises InputError for an unknown language, KeyError for an unknown slug.
    """
    return tables(one_of("language", language, LANGUAGES))[slug]


@cache
def tables(language: str) -> Mapping[str, Mapping[str, str]]:
    """All labels of a language, by slug."""
    with (_FOLDER / f"{language}.toml").open("rb") as file:
        return tomllib.load(file)
