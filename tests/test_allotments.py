"""The pictures of what four requests get for their KV show what the allocators did, and the lines beside are true."""

import re
from itertools import pairwise, product
from typing import Any

import pytest
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from figures import allotments, style
from figures.allotments import BLOCKS, GAP_PT, LINES_PT, MEMORY_END, PITCH_PT, REQUEST_END, WIDTH_PT, Four, four_of
from figures.exploration import Choice, controls_of
from figures.explorer import explore
from figures.guard import guard, visible_texts
from figures.registry import entry
from figures.words import LANGUAGES
from lib.allotment import NAMES, Allot, Piece
from lib.memory import pages_for

FIT = "requests that fit the pool (A to D come again and again)"
FAMILY = ("reserved-maximum", "paged-allotment", "shared-prefix-blocks")
IN_BLOCKS, GROWS = {"allot": Allot.IN_BLOCKS}, {"allot": Allot.AS_IT_GROWS}
ELSEWHERE: tuple[dict[str, Any], ...] = (
    {},
    IN_BLOCKS,
    GROWS,
    IN_BLOCKS | {"common_tokens": 8},
    IN_BLOCKS | {"common_tokens": 8, "sharers": 4},
    IN_BLOCKS | {"common_tokens": 9, "sharers": 3, "block_tokens": 1, "slots": 16},
    IN_BLOCKS | {"block_tokens": 16, "slots": 128},
    IN_BLOCKS | {"block_tokens": 1, "max_tokens": 64, "common_tokens": 2},
    GROWS | {"a": 16, "b": 16, "c": 16, "d": 16, "slots": 60},
    {"max_tokens": 64, "slots": 16},
    {"max_tokens": 20, "a": 1, "b": 1, "c": 1, "d": 1, "slots": 100},
)
each_setting = pytest.mark.parametrize("settings", ELSEWHERE, ids=str)
Bar = tuple[int, int]  # first slot and the one after the last


def drawn(figure: Figure, role: str, end: int, bottom: float) -> list[Bar]:
    """The bars of a role at a height, in slots of an axis that ends there."""
    look, found = allotments._LOOK[role], []
    for patches in figure.axes[0].collections:
        if isinstance(patches, PolyCollection) and to_hex(patches.get_facecolor()[0]) == to_hex(look["facecolor"]):
            for path in patches.get_paths():
                (left, low), (right, _) = path.vertices.min(axis=0), path.vertices.max(axis=0)
                if abs(low - bottom) < 1e-6:
                    found.append((in_slots(left, end), in_slots(right, end)))
    return sorted(found)


def in_slots(place: float, end: int) -> int:
    """The slot whose edge is there, but for a gap between pieces that leaves most of each slot."""
    exact = place * end / WIDTH_PT
    gaps = GAP_PT * end / WIDTH_PT, 0, 1 / 5
    edges = {round(exact + sign * gap, 6) for gap in gaps for sign in (-1, 1)}
    (slot,) = {int(edge) for edge in edges if edge.is_integer()}
    return slot


def expected(pieces: list[Piece], role: str) -> list[Bar]:
    if role == "unused":
        return sorted((piece.start + piece.tokens, piece.end) for piece in pieces if piece.tokens < piece.slots)
    return sorted((piece.start, piece.start + piece.tokens) for piece in pieces)


def by_role(four: Four, pieces: list[Piece]) -> dict[str, list[Piece]]:
    shared = {piece.start for piece in four.got.found}
    return {
        "found": [piece for piece in pieces if piece.found],
        "shared": [piece for piece in pieces if not piece.found and piece.start in shared],
        "used": [piece for piece in pieces if not piece.found and piece.start not in shared],
        "unused": [piece for piece in pieces if not piece.found],
    }


def ends_of_axes(figure: Figure) -> list[int]:
    """The numbers at the right ends of both axes, that of the requests first."""
    texts = [text for text in figure.axes[0].texts if text.get_position()[0] == WIDTH_PT]
    return [int(text.get_text()) for text in sorted(texts, key=lambda text: -text.get_position()[1])]


@each_setting
def test_every_slot_is_drawn_in_the_order_of_tokens_and_where_it_is(settings: dict[str, Any]) -> None:
    four, figure = four_of(**settings), entry("8-11").figure(**settings)
    request_end, memory_end = ends_of_axes(figure)
    for line, pieces in enumerate(four.got.requests):
        starts = [sum(piece.slots for piece in pieces[:at]) for at in range(len(pieces))]
        roles = by_role(four, list(pieces))
        for role, of_role in roles.items():
            placed = zip(pieces, starts, strict=True)
            in_order = [piece._replace(start=start) for piece, start in placed if piece in of_role]
            bars = drawn(figure, role, request_end, LINES_PT - line * PITCH_PT)
            assert bars == expected(in_order, role), (NAMES[line], role)
    for role, of_role in by_role(four, four.got.own).items():
        assert drawn(figure, role, memory_end, 0) == expected(of_role, role), role


@each_setting
def test_the_counts_beside_the_bars_are_own_slots_and_add_up(settings: dict[str, Any]) -> None:
    figure, got = entry("8-11").figure(**settings), four_of(**settings).got
    beside = [text for text in figure.axes[0].texts if text.get_position()[0] == WIDTH_PT + 8]
    counts = [int(text.get_text()) for text in sorted(beside, key=lambda text: -text.get_position()[1])]
    assert sum(counts[:-1]) == counts[-1] == got.allotted


@pytest.mark.long
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("slug", FAMILY)
@each_setting
def test_odd_settings_have_no_fault_in_print(slug: str, settings: dict[str, Any], language: str) -> None:
    guard(entry(slug).figure(language=language, **settings), f"{slug} ({language}) with {settings}")


def test_the_three_figures_go_from_64_to_52_to_44_on_the_same_axes() -> None:
    figures = [entry(slug).figure() for slug in FAMILY]
    totals = [re.search(r"in memory: (\d+) allotted", " ".join(map(str, told(figure)))) for figure in figures]
    assert [total and int(total[1]) for total in totals] == [64, 52, 44]
    assert [ends_of_axes(figure) for figure in figures] == [[REQUEST_END, MEMORY_END]] * 3
    assert len({tuple(figure.get_size_inches()) for figure in figures}) == 1


def told(figure: Figure) -> list[str]:
    return [text.get_text() for text in visible_texts(figure)]


def test_each_name_in_memory_stands_above_what_that_request_reads() -> None:
    figure, got = entry("8-13").figure(), four_of(allot=Allot.IN_BLOCKS, common_tokens=8).got
    letters = {
        in_slots_exactly(text.get_position()[0]): text.get_text()
        for text in figure.axes[0].texts
        if text.get_position()[1] == allotments.BAR_PT + 2
    }
    readers: dict[float, str] = {}
    for name, pieces in zip(NAMES, got.requests, strict=True):
        for piece in pieces:
            middle = (piece.start + piece.end) / 2
            readers[middle] = readers.get(middle, "") + name
    assert letters == readers
    assert list(letters.values()).count("AB") == 2


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({"sharers": 4}, ["AB\nCD", "AB\nD"]),
        ({"sharers": 4, "c": 9}, ["AB\nCD"] * 2),
        ({"sharers": 3}, ["AB\nC", "AB"]),
        ({"block_tokens": 2}, ["A\nB"] * 4),
        ({"sharers": 4, "block_tokens": 16, "common_tokens": 9, "a": 1}, []),
    ],
    ids=str,
)
def test_the_names_over_shared_blocks_stand_in_two_rows_where_one_is_too_short(
    settings: dict[str, Any], names: list[str]
) -> None:
    figure = entry("8-13").figure(**settings)
    told = [text for text in figure.axes[0].texts if text.get_position()[1] == allotments.BAR_PT + 2]
    several = [text.get_text() for text in sorted(told, key=lambda text: text.get_position()[0])]
    assert [text for text in several if len(text) > 1] == names
    guard(figure, "8-13")


def in_slots_exactly(place: float) -> float:
    return round(place * MEMORY_END / WIDTH_PT, 6)


@pytest.mark.parametrize("slots", [16, 52, 64, 128])
def test_the_line_of_the_pool_is_where_it_ends(slots: int) -> None:
    figure = entry("8-12").figure(slots=slots)
    line = next(line for line in figure.axes[0].lines if line.get_color() == style.LIMIT)
    assert line.get_xdata()[0] * ends_of_axes(figure)[1] / WIDTH_PT == pytest.approx(slots)
    assert f"pool of {slots}" in told(figure)


def readouts(slug: str, **settings: Any) -> dict[str, str]:
    explorer = explore(slug, **settings)
    assert explorer.sentence == ""
    return {readout.label: str(readout) for readout in explorer.readouts}


def test_readouts_at_the_book_values() -> None:
    maximum, blocks, sharing = map(readouts, FAMILY)
    names = "slots allotted", "of them unused", "use, %", FIT
    assert [maximum[name] for name in names] == ["64", "22", "66", "4"]
    assert [blocks[name] for name in names] == ["52", "10", "81", "5"]
    assert [sharing[name] for name in names] == ["44", "10", "77", "7"]
    assert blocks["unused by A, B, C, D"] == "3, 3, 3, 1"
    assert blocks["unused at most, whatever the lengths"] == "12"
    assert (maximum["entries of all tables"], blocks["entries of all tables"]) == ("4", "13")
    assert sharing["entries of all tables"] == "13"
    assert (sharing["blocks saved by sharing"], sharing["tokens equal but not shared"]) == ("2", "0")


@pytest.mark.parametrize("block", BLOCKS)
def test_smaller_blocks_waste_less_and_cost_entries_and_calls(block: int) -> None:
    shown = readouts("8-12", block_tokens=block, copy_call=2e-6)
    entries = sum(pages_for(length, block) for length in (9, 13, 5, 15))
    assert shown["entries of all tables"] == str(entries)
    assert shown["of them unused"] == str(block * entries - 42)
    assert shown["pieces if all KV is moved elsewhere"] == f"{72 * entries:,}"
    assert shown["time of their copy calls"] == f"{72 * entries * 2e-3:.2f} ms"


def test_growing_wastes_no_slot_and_holds_no_more_requests() -> None:
    shown = readouts("8-11", **GROWS)
    assert (shown["of them unused"], shown[FIT]) == ("0", "4")
    assert (shown["slots free while the next one waits"], shown["moves while they grew"]) == ("22", "17")
    assert shown["tokens moved by them"] == "53"


@pytest.mark.parametrize(("common", "saved", "equal"), [(8, "2", "0"), (7, "1", "3"), (3, "0", "3"), (9, "2", "1")])
def test_only_full_blocks_are_shared(common: int, saved: str, equal: str) -> None:
    shown = readouts("8-13", common_tokens=common)
    assert (shown["blocks saved by sharing"], shown["tokens equal but not shared"]) == (saved, equal)


@pytest.mark.parametrize(
    ("slug", "answer", "told_there"),
    [
        ("reserved-maximum", "33 %", {"use, %": "33", "slots allotted": "128"}),
        ("paged-allotment", "42", {"entries of all tables": "42", "of them unused": "0"}),
        ("shared-prefix-blocks", "1", {"blocks saved by sharing": "1", "slots allotted": "48"}),
    ],
)
def test_the_setting_that_an_answer_reveals_shows_it(slug: str, answer: str, told_there: dict[str, str]) -> None:
    question = entry(slug).exploration.question()
    assert question.answer == answer
    shown = readouts(slug, **question.reveals)
    assert {name: shown[name] for name in told_there} == told_there


def test_the_price_is_told_in_entries_calls_and_time() -> None:
    question = entry("paged-allotment").exploration.question()
    assert question.choices == ("13", "26", "42", "52")
    because = question.because
    calls = 42 * 36 * 2, 13 * 36 * 2
    assert f"{calls[0]} calls instead of {calls[1]}" in because
    assert f"{calls[0] / 1e3:.1f} ms instead of {calls[1] / 1e3:.1f} ms" in because


@pytest.mark.parametrize("slug", FAMILY)
def test_copy_calls_are_priced_where_their_time_is_a_control_in_view(slug: str) -> None:
    explorer = explore(slug)
    is_priced = "copy_call" in entry(slug).exploration.in_view
    assert is_priced == (slug == "paged-allotment")
    assert any("copy calls" in readout.label for readout in explorer.readouts) == is_priced
    explorer.widgets["copy_call"].value = 2.0
    assert explorer.line.startswith("What copy calls cost is read off beside figure 8-12 only") != is_priced


@pytest.mark.parametrize("most", [8, 12])
def test_a_maximum_below_a_length_is_refused_in_one_sentence(most: int) -> None:
    explorer = explore("8-11", max_tokens=most)
    assert explorer.sentence == (
        f"Nothing to draw: max_tokens is {most}; allowed: at least the longest of the requests, 15 "
        '(the control "maximum, tokens").'
    )
    explorer.move(d=most - 4, b=most - 4, a=most)
    assert explorer.sentence == ""


@pytest.mark.long
@pytest.mark.parametrize("slug", FAMILY)
@pytest.mark.parametrize("start", [{}, *ELSEWHERE[1:4]], ids=str)
def test_a_move_without_effect_says_why_whatever_they_get(slug: str, start: dict[str, Any]) -> None:
    explorer = explore(slug)
    explorer.move(**explorer.book | start)
    for name in ("max_tokens", "block_tokens", "common_tokens", "sharers", "slots"):
        control = explorer.controls[name]
        places = control.options if isinstance(control, Choice) else range(int(control.low), int(control.high) + 1, 4)
        before = explorer.settings[name]
        for here, there in pairwise(list(places)[:5]):
            explorer.widgets[name].value = here
            seen = explorer.png, explorer.sentence, explorer.readouts
            explorer.widgets[name].value = there
            if seen == (explorer.png, explorer.sentence, explorer.readouts) and not explorer.sentence:
                assert explorer.line.endswith(".")
                assert "changes nothing that is shown" not in explorer.line
            else:
                assert explorer.line == ""
        explorer.widgets[name].value = before


@pytest.mark.parametrize(
    ("settings", "moved", "line"),
    [
        (IN_BLOCKS, "max_tokens", "Nothing is reserved for a maximum here: slots are taken when tokens come."),
        ({}, "block_tokens", "Each request has one region, of whatever length; there are no blocks."),
        (IN_BLOCKS, "sharers", "No tokens are common, so it does not matter how many requests share them."),
        ({"common_tokens": 8}, "sharers", "Each request has a region to itself and holds the common tokens in it"),
        (IN_BLOCKS | {"common_tokens": 3}, "sharers", "No other block is shared: only one full of common tokens is"),
    ],
)
def test_why_a_move_changes_nothing(settings: dict[str, Any], moved: str, line: str) -> None:
    assert allotments._why_still(moved, explore("8-11").book | settings).startswith(line)


def test_what_the_lines_say_is_so() -> None:
    for allot, block, common in product(Allot, BLOCKS, (0, 3, 8)):
        at = four_of(allot=allot, block_tokens=block, common_tokens=common)
        longer = four_of(allot=allot, block_tokens=block, common_tokens=common, max_tokens=32)
        assert (at.got == longer.got) == (allot != Allot.MAXIMUM)
        if allot != Allot.IN_BLOCKS:
            assert at.got == four_of(allot=allot, common_tokens=common).got
            assert at.got.found == []
        if not common:
            assert at.got == four_of(allot=allot, block_tokens=block, sharers=4).got


def test_the_controls_of_the_family_are_the_same() -> None:
    assert len({tuple(controls_of(entry(slug).draw)) for slug in FAMILY}) == 1
