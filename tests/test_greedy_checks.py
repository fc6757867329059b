"""The greedy-check explorer: its cells are what a target leaves that is asked token by token, its words are true."""

from itertools import product
from typing import Any

import pytest
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from figures.exploration import book_values
from figures.explorer import explore
from figures.greedy_checks import (
    CELL_PT,
    DRAFT_PT,
    GREEDY_EXPLORATION,
    KNOWN_TOKENS,
    KV_PT,
    SIGN_PT,
    SIGNS,
    TARGET_PT,
    TEXT_PT,
    round_of,
)
from figures.guard import guard, visible_texts
from figures.registry import entry
from figures.words import LANGUAGES
from lib.greedy_check import check

GREEDY = entry("greedy-check")
BOOK = book_values(GREEDY.draw, GREEDY.arguments)
ROUNDS = [(draft, at) for draft, at in product((1, 2, 4, 8), range(1, 10)) if at <= draft + 1]
each_round = pytest.mark.parametrize(("draft_tokens", "differs_at"), ROUNDS)


def drawn(figure: Figure, bottom: float) -> str:
    """A row of cells, column by column: its token, else k (known), v (void), _ (empty); - where no cell is.

    A token whose cell is hatched stands in brackets, and one of the target's own in angle ones.
    """
    looks = ("k", "_", "", "<>", "()")  # in the order in which the looks are drawn
    axes = figure.axes[0]
    collections = [found for found in axes.collections if isinstance(found, PolyCollection)]
    tokens = {
        int(text.get_position()[0]): text.get_text()
        for text in axes.texts
        if bottom < text.get_position()[1] < bottom + CELL_PT and text.get_horizontalalignment() == "center"
    }
    cells: dict[int, str] = {}
    for look, found in zip(looks, collections, strict=True):
        for path in found.get_paths():
            extent = path.get_extents()
            if extent.y0 == bottom:
                column = int(extent.x0)
                assert column not in cells, "two cells in one place"
                token = tokens.pop(column, "")
                cells[column] = look if look in ("k", "_") else f"{look[:1]}{token}{look[1:]}"
    assert not tokens, "a token without a cell"
    return " ".join(cells.get(column, "-") for column in range(max(cells) + 1))


def signs(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.axes[0].texts if text.get_position()[1] == SIGN_PT]


def test_the_book() -> None:
    figure = GREEDY.figure()
    assert drawn(figure, DRAFT_PT) == "k k k a b (c) (d)"
    assert drawn(figure, TARGET_PT) == "- - - a b <x> () ()"
    assert drawn(figure, TEXT_PT) == "k k k a b <x>"
    assert drawn(figure, KV_PT) == "k k k a b (c) (d)"
    assert signs(figure) == ["=", "=", "≠"]
    assert {readout.label: str(readout) for readout in explore("greedy-check").readouts} == {
        "outputs": "3",
        "draft tokens accepted": "2",
        "draft tokens thrown away": "2",
        "rows verified": "5",
        "choices that are void": "2",
        "tokens of text after the round": "6",
        "tokens written in KV by then": "7",
        "of them count (KV length)": "5",
    }


def test_a_draft_accepted_in_full_gets_one_token_more_that_is_not_in_kv() -> None:
    figure = GREEDY.figure(draft_tokens=2, differs_at=3)
    assert drawn(figure, DRAFT_PT) == "k k k a b"
    assert drawn(figure, TARGET_PT) == "- - - a b <c>"
    assert drawn(figure, TEXT_PT) == "k k k a b <c>"
    assert drawn(figure, KV_PT) == "k k k a b _"
    assert signs(figure) == [SIGNS[True]] * 2


@each_round
def test_the_cells_are_those_of_a_target_that_is_asked_token_by_token(draft_tokens: int, differs_at: int) -> None:
    """The target writes the alphabet, but for one x; what it says behind an x or another wrong token is of no use."""
    draft = tuple(range(ord("a"), ord("a") + draft_tokens))
    rest = [*draft, ord("a") + draft_tokens]
    if differs_at <= draft_tokens:
        rest[differs_at - 1] = ord("x")
    known = tuple(range(KNOWN_TOKENS))
    came = check(lambda text: rest[len(text) - KNOWN_TOKENS], known, draft)
    figure = GREEDY.figure(draft_tokens=draft_tokens, differs_at=differs_at)
    cells = [*"kkk", *map(chr, came.outputs[:-1]), f"<{chr(came.outputs[-1])}>"]
    assert drawn(figure, TEXT_PT).split() == cells
    in_kv = [cell for cell in drawn(figure, KV_PT).split() if "(" not in cell and cell != "_"]
    assert in_kv == cells[:-1], "all of the text but its last token"
    assert drawn(figure, DRAFT_PT).count("(") == len(came.discarded)
    assert drawn(figure, TARGET_PT).count("()") == draft_tokens + 1 - len(came.outputs)
    assert signs(figure).count(SIGNS[False]) == (differs_at <= draft_tokens)
    told = [text.get_text() for text in visible_texts(figure)]
    assert f"rows of this step: {draft_tokens + 1}" in told
    outputs = f"outputs: {len(came.outputs)} ({came.accepted} accepted and 1 more)."
    assert any(line.startswith(outputs) and line.endswith(f"tokens but {chr(came.outputs[-1])}.") for line in told)


@each_round
def test_the_bracket_is_under_the_rows_that_the_step_computes(draft_tokens: int, differs_at: int) -> None:
    (bracket,) = GREEDY.figure(draft_tokens=draft_tokens, differs_at=differs_at).axes[0].lines
    start, *_, end = map(float, bracket.get_xdata())  # type: ignore[arg-type]
    assert (round(start), round(end)) == (KNOWN_TOKENS - 1, KNOWN_TOKENS + draft_tokens)


def test_a_difference_beyond_the_draft_is_none() -> None:
    assert round_of(2, 9) == round_of(2, 3)
    explorer = explore("greedy-check")
    explorer.widgets["differs_at"].value = 5
    assert explorer.line == "" and str(explorer.readouts[0]) == "5"
    explorer.widgets["differs_at"].value = 6
    assert explorer.line.startswith("The draft has only 4 tokens")


def test_the_question_is_answered_by_the_round() -> None:
    explorer = explore("greedy-check")
    assert explorer.question.choices == ("4, all in KV", "5, 4 of them in KV", "5, all in KV")
    assert explorer.question.answer == "5, 4 of them in KV"
    explorer.predict(explorer.question.answer)
    shown = {readout.label: readout.amount for readout in explorer.readouts}
    assert shown["outputs"] == 5
    assert shown["of them count (KV length)"] == KNOWN_TOKENS + 4


def test_named_settings_show_what_they_say() -> None:
    full, at_once, twice = (round_of(**BOOK | dict(settings)) for settings in GREEDY_EXPLORATION.settings.values())
    assert full.differs_at is None
    assert len(at_once.outputs) == 1
    assert (len(twice.draft), twice.differs_at, len(twice.outputs)) == (8, 3, 3)


@pytest.mark.parametrize(
    ("settings", "opening"),
    [
        ({"draft_tokens": 9}, "Nothing to draw: draft_tokens is 9; allowed: a whole number from 1 to 8"),
        ({"differs_at": 10}, "Nothing to draw: differs_at is 10; allowed: a whole number from 1 to 9"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(settings: dict[str, Any], opening: str) -> None:
    assert explore("greedy-check", **settings).sentence.startswith(opening)


@pytest.mark.parametrize(("draft_tokens", "differs_at"), [(1, 1), (1, 2), (4, 1), (8, 1), (8, 4), (8, 9)])
@pytest.mark.parametrize("language", LANGUAGES)
def test_no_fault_elsewhere(draft_tokens: int, differs_at: int, language: str) -> None:
    figure = GREEDY.figure(draft_tokens=draft_tokens, differs_at=differs_at, language=language)
    guard(figure, GREEDY.slug, GREEDY.may_overlap)
