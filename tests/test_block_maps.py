"""What the block maps show is what the pool did: places, arrows, references and copies."""

import math
from collections import Counter
from itertools import product
from typing import Any

import pytest
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from figures import block_maps, style
from figures.block_maps import ROUNDING, table_readouts
from figures.exploration import book_values
from figures.explorer import explore
from figures.guard import visible_texts
from figures.registry import entry
from lib import block_history, copy_on_write
from lib.block_history import HISTORY, TOKENS, play_history
from lib.checks import InputError
from lib.copy_on_write import APPENDED, FULL_BLOCKS, TAIL, Forked, Parent, write_in_branches

MOMENTS = list(product(range(len(HISTORY) + 1), range(1, block_history.LARGEST_BLOCK + 1)))
FORKS = [
    {"block_tokens": size, "tail_tokens": tail, "branches": branches, "parent": parent, "written": written}
    for size in range(copy_on_write.SMALLEST_BLOCK, copy_on_write.LARGEST_BLOCK + 1)
    for tail in range(1, size + 1)
    for branches in range(2, copy_on_write.MOST_BRANCHES + 1)
    for parent in Parent
    for written in range(branches + 1)
]


def texts_at(figure: Figure, height: float) -> list[str]:
    """The texts whose middle is so high, from left to right."""
    found = [text for text in visible_texts(figure) if text.get_position()[1] == height]
    return [text.get_text() for text in sorted(found, key=lambda text: text.get_position()[0])]


def arrows(figure: Figure) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    """Start and end of each arrow, without the one that is drawn again in another colour."""
    lines = [each for each in figure.artists if isinstance(each, LineCollection)]
    thick = [each for each in lines if each.get_linewidths()[0] == style.LINE_PT]
    return sorted({tuple(map(tuple, segment)) for each in thick for segment in each.get_segments()})


def settings_of(slug: str, **settings: Any) -> dict[str, Any]:
    figure = entry(slug)
    return book_values(figure.draw, figure.arguments) | settings


# One sequence in scattered blocks


def test_the_history_leaves_the_table_of_the_book() -> None:
    memory = play_history()
    assert memory.sequence
    assert memory.sequence.table == [2, 0, 3]
    assert [block for block in range(memory.pool.blocks) if not memory.pool.references(block)] == [1]
    assert memory.place(9) == (2, 3, 1)


@pytest.mark.parametrize(("events", "block_tokens"), MOMENTS)
def test_each_token_stands_where_the_table_says_and_alone(events: int, block_tokens: int) -> None:
    memory = play_history(events, block_tokens)
    entered = {name: 0 for name, _, _ in HISTORY[:events]}
    for name, verb, tokens in HISTORY[:events]:
        entered[name] = 0 if verb is block_history.Verb.ENDS else entered[name] + tokens
    assert Counter(name for name, _ in memory.written().values()) == Counter(+Counter(entered))
    assert memory.pool.held == sum(-(-tokens // block_tokens) for tokens in entered.values())
    for token in range(TOKENS):
        place = memory.place(token)
        assert (place is None) == (token >= entered.get("A", 0))
        if place and memory.sequence:
            assert (place.logical, place.offset) == divmod(token, block_tokens)
            assert place.physical == memory.sequence.table[place.logical]
            assert memory.written()[place.physical * block_tokens + place.offset] == ("A", token)


@pytest.mark.parametrize(("events", "block_tokens"), MOMENTS)
def test_attention_by_the_table_is_that_over_one_piece(events: int, block_tokens: int) -> None:
    difference = play_history(events, block_tokens).attention_difference()
    assert (difference is None) == (events < 2)
    assert difference is None or difference < ROUNDING


def test_the_difference_sees_a_token_that_is_not_its_own() -> None:
    memory = play_history()
    place = memory.place(6)
    assert place
    for part in (memory.kv.keys, memory.kv.values):
        kept, at = part.bytes.copy(), (place.physical, place.offset)
        part.bytes[at] = part.codec.encode(part[at] + 1)
        assert (memory.attention_difference() or 0) > 0.01
        part.bytes[:] = kept
    assert memory.sequence
    memory.sequence.table[:2] = memory.sequence.table[1::-1]
    assert (memory.attention_difference() or 0) > 0.01


@pytest.mark.parametrize(("difference", "shown"), [(0.25, "2.5e-01"), (math.nan, "nan"), (4e-16, "below 1e-15")])
def test_a_difference_beyond_rounding_is_shown(difference: float, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_history.Memory, "attention_difference", lambda _: difference)
    assert table_readouts(**settings_of("block-table"))[-1].amount == shown


@pytest.mark.parametrize(("events", "block_tokens"), MOMENTS)
def test_the_picture_shows_blocks_entries_and_arrows(events: int, block_tokens: int) -> None:
    memory = play_history(events, block_tokens)
    page = entry("block-table").figure(events=events, block_tokens=block_tokens)
    in_memory, written = list[str](), memory.written()
    for block in range(memory.pool.blocks):
        slots = range(block * block_tokens, (block + 1) * block_tokens)
        holders = [written[slot] for slot in slots if slot in written]
        in_memory += [str(token) if name == "A" else name for name, token in holders] or ["free"]
    assert texts_at(page, block_maps.PHYSICAL_PT + block_maps.CELL_HEIGHT_PT / 2) == in_memory
    table = memory.sequence.table if memory.sequence else []
    *entries, _ = texts_at(page, block_maps.TABLE_PT + block_maps.ENTRY_PT / 2)
    assert entries == list(map(str, table))
    width, lefts = block_maps._columns(memory.pool.blocks, block_tokens)
    assert [end for _, (end, _) in arrows(page)] == [lefts[block] + width / 2 for block in table]


def test_the_question_is_about_a_place_that_the_first_picture_does_not_show() -> None:
    question = entry("block-table").exploration.question()
    assert question.answer == "4 and 6"
    assert question.reveals == {"token": 9, "block_tokens": 2}
    shown = [readout.amount for readout in table_readouts(**settings_of("block-table", **question.reveals))]
    assert shown[:2] == [4, 6]
    assert entry("block-table").exploration.settings["token 9 in blocks of 4"] == {"token": 9}


def test_the_picture_frames_the_place_of_the_token() -> None:
    page = entry("block-table").figure(token=9)
    width, lefts = block_maps._columns(4, 4)
    framed = next(each for each in page.artists if to_hex(each.get_edgecolor()[0]) == style.LIMIT)
    corners = {(round(float(x), 6), float(y)) for x, y in (path.vertices.min(axis=0) for path in framed.get_paths())}
    middle = lefts[2] + width / 2 - block_maps.ENTRY_PT / 2
    of_slots = [(lefts[2] + width / 4, block_maps.LOGICAL_PT), (lefts[3] + width / 4, block_maps.PHYSICAL_PT)]
    assert corners == {(round(x, 6), y) for x, y in (*of_slots, (middle, block_maps.TABLE_PT))}


@pytest.mark.parametrize("wrong", [{"events": 8}, {"block_tokens": 9}, {"token": TOKENS}], ids=repr)
def test_what_the_history_does_not_have_is_refused(wrong: dict[str, int]) -> None:
    (name,) = wrong
    with pytest.raises(InputError, match=rf"^{name} is "):
        entry("block-table").figure(**wrong)


# Branches that write into the tail they share


def expected_copies(tail_tokens: int, block_tokens: int, branches: int, parent: Parent, written: int) -> int:
    """Each writer copies a tail that another refers to; nobody writes a full block."""
    if tail_tokens == block_tokens:
        return 0
    return min(written, branches if parent is Parent.STAYS else branches - 1)


@pytest.mark.parametrize(
    ("settings", "copies"),
    [
        ({"parent": Parent.LETS_GO}, 1),
        ({}, 2),
        ({"tail_tokens": 4}, 0),
        ({"tail_tokens": 4, "parent": Parent.LETS_GO}, 0),
    ],
    ids=repr,
)
def test_two_branches_take_so_many_copies(settings: dict[str, Any], copies: int) -> None:
    assert len(write_in_branches(**settings).copies) == copies


def test_at_all_settings_each_reads_its_own_and_the_counts_are_right() -> None:
    for settings in FORKS:
        forked = write_in_branches(**settings)
        assert len(forked.copies) == expected_copies(**settings), settings
        check_contents(forked, settings["tail_tokens"], settings["written"])
        pointed_at = Counter(block for table in forked.tables for block in table)
        assert forked.references == [pointed_at[block] for block in range(forked.pool.blocks)]
        assert forked.blocks_apart == sum(pointed_at.values())
        assert forked.pool.held == len(pointed_at)
        assert all(table[:FULL_BLOCKS] == list(range(FULL_BLOCKS)) for table in forked.tables)


def check_contents(forked: Forked, tail_tokens: int, written: int) -> None:
    """Behind the full blocks each finds the tail and its own letter, and nobody else's."""
    for branch, letter in zip(forked.branches, APPENDED, strict=False):
        own = letter if letter in APPENDED[:written] else ""
        read = "".join(letter for block in branch.table[FULL_BLOCKS:] for letter in forked.letters(block))
        assert read[: len(branch.tokens) - FULL_BLOCKS * forked.pool.block_tokens] == TAIL[:tail_tokens] + own
    if forked.parent:
        assert "".join(forked.letters(forked.parent.table[-1])) == TAIL[:tail_tokens]


def test_the_picture_has_an_arrow_for_each_reference_and_the_letters_of_the_memory() -> None:
    for settings in FORKS[::7]:
        forked = write_in_branches(**settings)
        page = entry("copy-on-write").figure(**settings)
        spans = block_maps._spans(forked)
        ends = [end for _, (end, _) in arrows(page)]
        reached = [sum(left < end < left + width for end in ends) for left, width in spans]
        assert reached == forked.references, settings
        letters = [
            letter
            for block in range(FULL_BLOCKS, forked.pool.blocks)
            for letter in ([each for each in forked.letters(block) if each] if forked.references[block] else ["free"])
        ]
        assert texts_at(page, block_maps.TAILS_PT + block_maps.CELL_HEIGHT_PT / 2) == letters
        told = "\n".join(text.get_text() for text in visible_texts(page))
        assert told.count("copy of") == len(forked.copies)
        assert told.count("in place") == (
            not forked.parent and bool(forked.copies) and settings["written"] == len(forked.branches)
        )


def test_a_tail_holds_what_a_block_does_and_only_branches_write() -> None:
    figure, book = explore("copy-on-write"), entry("copy-on-write").exploration.readouts
    full = book(**settings_of("copy-on-write", tail_tokens=4))
    assert book(**settings_of("copy-on-write", tail_tokens=8)) == full
    assert book(**settings_of("copy-on-write", written=4)) == book(**settings_of("copy-on-write"))
    figure.widgets["tail_tokens"].value = 4
    assert figure.line == ""
    figure.widgets["tail_tokens"].value = 5
    assert figure.line == "A block has 4 slots, so a tail of 4 tokens is full: there cannot be more in it."
    figure.widgets["tail_tokens"].value = 4
    assert figure.line == "A block has 4 slots, so a tail of 4 tokens is full: there cannot be more in it."
    figure.widgets["written"].value = 3
    assert figure.line == "All 2 branches have written already."


@pytest.mark.parametrize(
    "wrong", [{"tail_tokens": 5}, {"written": 3}, {"block_tokens": 1}, {"branches": 5}, {"branches": 1}], ids=repr
)
def test_what_makes_no_fork_is_refused(wrong: dict[str, int]) -> None:
    (name,) = wrong
    with pytest.raises(InputError, match=rf"^{name} is "):
        write_in_branches(**wrong)
