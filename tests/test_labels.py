"""Both languages say the same things, and nothing that no figure shows."""

import re
from collections.abc import Iterator, Mapping
from string import Formatter
from typing import Any

import pytest
from fontTools.ttLib import TTFont  # type: ignore[import-untyped]
from matplotlib import font_manager

from figures import style
from figures import words as words_module
from figures.exploration import book_values, controls_of
from figures.registry import FIGURES, Entry
from figures.words import LANGUAGES, tables, words
from lib.checks import InputError

SLUGS = [entry.slug for entry in FIGURES]
OUTSIDE = {"caption", "alt"}  # beside the picture, not in it
# Only files of a reader's own bring them into the picture: tests/test_own_engine.py looks for each of them.
OF_ONES_OWN = {"your-engine": {"in_time", "run", "at_once", "no_starts"}}
NUMBERS = "|".join(re.escape(entry.number) for entry in FIGURES if entry.number)
FIGURE_NUMBER = re.compile(rf"\b(?:{NUMBERS})\b|[Ff]ig(?:ure|\.)\s*\d|图\s*\d")


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_figure_has_its_labels_and_each_table_its_figure(language: str) -> None:
    assert tables(language).keys() == set(SLUGS)


@pytest.mark.parametrize("slug", SLUGS)
def test_both_languages_have_the_same_keys_and_places(slug: str) -> None:
    english, chinese = words("en", slug), words("zh", slug)
    assert english.keys() == chinese.keys()
    assert {key: places(text) for key, text in english.items()} == {key: places(text) for key, text in chinese.items()}


@pytest.mark.parametrize("slug", SLUGS)
def test_a_step_of_the_scheduler_has_one_name_in_chinese(slug: str) -> None:
    other_name = re.compile("(?<!逐)(?<!同)步")
    assert not [text for text in words("zh", slug).values() if other_name.search(text)]


def places(text: str) -> list[str]:
    return sorted(name for _, name, _, _ in Formatter().parse(text) if name is not None)


@pytest.mark.parametrize("slug", SLUGS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_caption_and_alt_text_are_there_and_differ(language: str, slug: str) -> None:
    caption, alt = (words(language, slug)[key].strip() for key in ("caption", "alt"))
    assert caption
    assert alt
    assert caption != alt
    assert not places(caption + alt), "nobody fills them in"


@pytest.mark.parametrize("slug", SLUGS)
def test_caption_and_alt_text_are_translated(slug: str) -> None:
    for key in OUTSIDE:
        assert not re.search(r"[\u3400-\u9fff]", words("en", slug)[key])
        assert re.search(r"[\u3400-\u9fff]", words("zh", slug)[key])


@pytest.mark.parametrize("slug", SLUGS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_no_label_is_empty_or_names_a_figure_by_its_number(language: str, slug: str) -> None:
    for key, text in words(language, slug).items():
        assert text.strip(), key
        assert not FIGURE_NUMBER.search(text), key


@pytest.mark.parametrize("text", [f"see {FIGURES[0].number}", "as in Figure 12", "fig. 3", "见图8", "图 2"])
def test_a_figure_number_is_known_when_seen(text: str) -> None:
    assert FIGURE_NUMBER.search(text)


@pytest.mark.parametrize("text", ["6.95 s", "256 outputs", "batch 1", "8K", "88-22", "下图两端"])
def test_other_numbers_are_no_figure_numbers(text: str) -> None:
    assert not FIGURE_NUMBER.search(text)


@pytest.mark.parametrize("entry", FIGURES, ids=SLUGS)
@pytest.mark.parametrize(
    "language", LANGUAGES[:1] + tuple(pytest.param(one, marks=pytest.mark.long) for one in LANGUAGES[1:])
)
def test_every_label_is_used_by_the_figure(language: str, entry: Entry, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: set[str] = set()
    monkeypatch.setattr(words_module, "tables", lambda named: {entry.slug: Listening(tables(named)[entry.slug], asked)})
    for settings in likely_settings(entry):
        try:
            entry.figure(language=language, **settings)
        except InputError:
            continue
    elsewhere = OUTSIDE | OF_ONES_OWN.get(entry.slug, set())
    assert asked - elsewhere == tables(language)[entry.slug].keys() - elsewhere


class Listening(dict[str, str]):
    """Labels that note which of them are asked for."""

    def __init__(self, labels: Mapping[str, str], asked: set[str]) -> None:
        super().__init__(labels)
        self.asked = asked

    def __getitem__(self, key: str) -> str:
        self.asked.add(key)
        return super().__getitem__(key)


def likely_settings(entry: Entry) -> Iterator[Mapping[str, Any]]:
    """The book's values, each control at each of its ends, and the settings that have a name."""
    yield book_values(entry.draw, entry.arguments)
    yield from ({name: end} for name, control in controls_of(entry.draw).items() for end in control.ends)
    yield from entry.exploration.settings.values()


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_character_is_in_the_fonts_of_the_figures(language: str) -> None:
    with TTFont(style.FONT_FILE) as font:
        known = set(font.getBestCmap())
    if language == "en":
        with TTFont(font_manager.findfont("DejaVu Sans")) as font:
            known |= set(font.getBestCmap())
    used = {character for labels in tables(language).values() for text in labels.values() for character in text}
    assert not {character for character in used if ord(character) not in known and not character.isspace()}


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(InputError, match=r"^language is 'fr'; allowed: one of 'en', 'zh'$"):
        words("fr", SLUGS[0])


def test_a_figure_without_labels_is_missed() -> None:
    with pytest.raises(KeyError, match="no-such-figure"):
        words("en", "no-such-figure")
