"""Figures of block tables over physical blocks: where the tokens of a sequence stand, and who writes where."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from matplotlib.collections import Collection, LineCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.transforms import Affine2D, Transform

from figures import style
from figures.exploration import Choice, Exploration, Question, Readout, Slider
from figures.page import new_page
from figures.words import words
from lib import block_history, copy_on_write
from lib.block_history import HISTORY, LOOKED_AT, TOKENS, Memory, Place, play_history
from lib.checks import whole
from lib.copy_on_write import APPENDED, FULL_BLOCKS, Forked, Parent, write_in_branches

LEFT_PT, RIGHT_PT, GAP_PT = 14, 406, 8
CELL_PT_AT_MOST, CELL_HEIGHT_PT, ENTRY_PT = 24, 20, 18
LOOKS: Mapping[str, Mapping[str, Any]] = {
    **{name: {"facecolor": colour} for name, colour in style.REQUEST.items()},
    "open": {"facecolor": style.PAPER},
    "shared": style.look("shared"),
    "free": style.look("queue"),
    "framed": {"facecolor": "none", "edgecolor": style.LIMIT, "linewidth": 2, "zorder": 3},
    "now": {"facecolor": "none", "linewidth": style.LINE_PT},
}
# What attention may differ by when only the order of its sums does: a few units in the last place.
ROUNDING = 1e-15
Cell = tuple[str, str]  # look, text
Point = tuple[float, float]


@dataclass
class BlockMap:
    """Blocks, table entries and arrows of one picture, in points from the lower left corner of the page.

    What looks the same is gathered and drawn at once, and without axes: else it would take several times as long.
    """

    page: Figure
    boxes: dict[str, list[list[Point]]] = field(default_factory=dict)
    arrows: dict[str, list[tuple[Point, Point]]] = field(default_factory=dict)
    stems: list[tuple[Point, Point]] = field(default_factory=list)

    def text(self, x: float, y: float, text: str, **how: Any) -> None:
        """Text with its middle there, unless told otherwise."""
        self.page.text(x, y, text, transform=self._points, **{"ha": "center", "va": "center"} | how)

    def box(self, look: str, left: float, bottom: float, width: float, height: float) -> None:
        """A rectangle of this look."""
        right, top = left + width, bottom + height
        self.boxes.setdefault(look, []).append([(left, bottom), (right, bottom), (right, top), (left, top)])

    def block(self, left: float, bottom: float, width: float, cells: Sequence[Cell]) -> None:
        """A held block, slot by slot."""
        each = width / len(cells)
        for place, (look, text) in enumerate(cells):
            self.box(look, left + place * each, bottom, each, CELL_HEIGHT_PT)
            if text:
                self.text(left + (place + 0.5) * each, bottom + CELL_HEIGHT_PT / 2, text)

    def free_block(self, left: float, bottom: float, width: float, text: str) -> None:
        """A block that nobody holds, so that what stands in its slots does not matter."""
        self.box("free", left, bottom, width, CELL_HEIGHT_PT)
        ground = {"facecolor": style.PAPER, "edgecolor": "none", "pad": 1}
        self.text(left + width / 2, bottom + CELL_HEIGHT_PT / 2, text, bbox=ground)

    def entry(self, middle: float, bottom: float, block: int) -> None:
        """An entry of a block table: the number of the physical block that it points at."""
        self.box("open", middle - ENTRY_PT / 2, bottom, ENTRY_PT, ENTRY_PT)
        self.text(middle, bottom + ENTRY_PT / 2, str(block))

    def arrow(self, start: Point, end: Point, colour: str = style.INK) -> None:
        """From a table entry down to a block."""
        self.arrows.setdefault(colour, []).append((start, end))

    def draw(self) -> None:
        """Put all that was gathered on the page."""
        for look, corners in self.boxes.items():
            how: dict[str, Any] = {"edgecolor": style.INK, "linewidth": style.THIN_PT, "zorder": 1, **LOOKS[look]}
            self._add(PolyCollection(corners, **how))
        self._add(LineCollection(self.stems, colors=style.INK, linewidths=style.THIN_PT))
        for colour, arrows in self.arrows.items():
            self._add(LineCollection(arrows, colors=colour, linewidths=style.LINE_PT))
            heads = [[end, (end[0] - 3, end[1] + 7), (end[0] + 3, end[1] + 7)] for _, end in arrows]
            self._add(PolyCollection(heads, facecolor=colour, edgecolor="none", zorder=2))

    @property
    def _points(self) -> Transform:
        return Affine2D().scale(1 / 72) + self.page.dpi_scale_trans

    def _add(self, drawn: Collection) -> None:
        drawn.set_transform(self._points)
        self.page.add_artist(drawn)


# One sequence in scattered blocks

HISTORY_PT, TOLD_PT, PHYSICAL_PT, TABLE_PT, LOGICAL_PT = 8, 58, 110, 178, 206


def block_table(
    *,
    events: Annotated[int, Slider("events played", 0, len(HISTORY), 1)] = len(HISTORY),
    block_tokens: Annotated[
        int, Slider("tokens a block", 1, block_history.LARGEST_BLOCK, 1)
    ] = block_history.BLOCK_TOKENS,
    token: Annotated[int, Slider("look at token", 0, TOKENS - 1, 1)] = 5,
    language: str = "en",
) -> Figure:
    """A sequence block by block, its block table, and the physical blocks of a live pool, after some events.

    Raises InputError for values that make no sense. Source: figure 8-10.
    """
    memory = play_history(events, block_tokens)
    place, text = memory.place(token), words(language, "block-table")
    with style.in_book_style():
        page = new_page(254)
        drawn = BlockMap(page)
        width, lefts = _columns(memory.pool.blocks, memory.pool.block_tokens)
        _draw_memory(drawn, memory, width, lefts, text)
        _draw_sequence(drawn, memory, width, lefts, text)
        told = text["token_absent"].format(token=token)
        if place:
            _frame(drawn, place, width, lefts, memory.pool.block_tokens)
            told = text["token"].format(token=token, size=memory.pool.block_tokens, **place._asdict())
        drawn.text(LEFT_PT, TOLD_PT, told, ha="left", color=style.LIMIT)
        _draw_history(drawn, events, text)
        drawn.draw()
    return page


def _columns(blocks: int, block_tokens: int) -> tuple[float, list[float]]:
    """The width of a block and where each begins, side by side."""
    room = (RIGHT_PT - LEFT_PT - GAP_PT * (blocks - 1)) / (blocks * block_tokens)
    width = min(CELL_PT_AT_MOST, room) * block_tokens
    return width, [LEFT_PT + block * (width + GAP_PT) for block in range(blocks)]


def _draw_memory(
    drawn: BlockMap, memory: Memory, width: float, lefts: Sequence[float], text: Mapping[str, str]
) -> None:
    written, size = memory.written(), memory.pool.block_tokens
    for block, left in enumerate(lefts):
        if memory.pool.references(block):
            held = [written.get(slot) for slot in range(block * size, (block + 1) * size)]
            drawn.block(left, PHYSICAL_PT, width, [_cell(*each) if each else ("open", "") for each in held])
        else:
            drawn.free_block(left, PHYSICAL_PT, width, text["free"])
        drawn.text(left + width / 2, PHYSICAL_PT - 9, str(block))
    drawn.text(LEFT_PT, PHYSICAL_PT - 25, text["physical"], ha="left")


def _cell(sequence: str, token: int) -> Cell:
    return sequence, str(token) if sequence == LOOKED_AT else sequence


def _draw_sequence(
    drawn: BlockMap, memory: Memory, width: float, lefts: Sequence[float], text: Mapping[str, str]
) -> None:
    drawn.text(RIGHT_PT, LOGICAL_PT + CELL_HEIGHT_PT / 2, text["logical"].format(sequence=LOOKED_AT), ha="right")
    drawn.text(RIGHT_PT, TABLE_PT + ENTRY_PT / 2, text["table"], ha="right")
    if not memory.sequence:
        drawn.text(LEFT_PT, LOGICAL_PT + CELL_HEIGHT_PT / 2, text["absent"].format(sequence=LOOKED_AT), ha="left")
        return
    length, size = len(memory.sequence.tokens), memory.pool.block_tokens
    for logical, (block, left) in enumerate(zip(memory.sequence.table, lefts, strict=False)):
        tokens = range(logical * size, (logical + 1) * size)
        cells = [_cell(LOOKED_AT, each) if each < length else ("open", "") for each in tokens]
        middle = left + width / 2
        drawn.block(left, LOGICAL_PT, width, cells)
        drawn.text(middle, LOGICAL_PT + CELL_HEIGHT_PT + 9, str(logical))
        drawn.stems.append(((middle, LOGICAL_PT), (middle, TABLE_PT + ENTRY_PT)))
        drawn.entry(middle, TABLE_PT, block)
        drawn.arrow((middle, TABLE_PT), _above(block, width, lefts))


def _above(block: int, width: float, lefts: Sequence[float]) -> Point:
    return lefts[block] + width / 2, PHYSICAL_PT + CELL_HEIGHT_PT


def _frame(drawn: BlockMap, place: Place, width: float, lefts: Sequence[float], size: int) -> None:
    """Where the token stands: in its logical block, by which entry of the table, and in which slot of the memory."""
    for block, bottom in ((place.logical, LOGICAL_PT), (place.physical, PHYSICAL_PT)):
        drawn.box("framed", lefts[block] + place.offset * width / size, bottom, width / size, CELL_HEIGHT_PT)
    middle = lefts[place.logical] + width / 2
    drawn.box("framed", middle - ENTRY_PT / 2, TABLE_PT, ENTRY_PT, ENTRY_PT)
    drawn.arrow((middle, TABLE_PT), _above(place.physical, width, lefts), style.LIMIT)


def _draw_history(drawn: BlockMap, events: int, text: Mapping[str, str]) -> None:
    """Each event of the history; the last one played is framed, those to come are faint."""
    width = (RIGHT_PT - LEFT_PT) / len(HISTORY)
    for place, event in enumerate(HISTORY):
        told = text[event.verb.value].format(sequence=event.sequence, tokens=event.tokens)
        colour = style.INK if place < events else style.FAINT
        drawn.text(LEFT_PT + (place + 0.5) * width, HISTORY_PT + 17, told, color=colour)
    if events:
        drawn.box("now", LEFT_PT + (events - 1) * width, HISTORY_PT, width, 34)


def table_readouts(**settings: Any) -> tuple[Readout, ...]:
    """Where the token stands, what is free, and what attention makes of it, at the settings of `block_table`."""
    memory = play_history(settings["events"], settings["block_tokens"])
    place = memory.place(settings["token"])
    sequence, difference = memory.sequence, memory.attention_difference()
    entries = len(sequence.table) if sequence else 0
    unused = entries * memory.pool.block_tokens - (len(sequence.tokens) if sequence else 0)
    return (
        Readout("logical block of the token", place.logical if place else "not there yet"),
        Readout("physical block of it", place.physical if place else "not there yet"),
        Readout("offset in the block", place.offset if place else "not there yet"),
        Readout("free blocks", memory.pool.free),
        Readout(f"entries in the block table of {LOOKED_AT}", entries),
        Readout(f"slots that {LOOKED_AT} holds and does not use", unused),
        Readout("attention by the table − over KV in one piece, at most", _as_rounding(difference)),
    )


def _as_rounding(difference: float | None) -> str:
    """The last digits of a sum depend on its order and on the machine; what is more than that is shown."""
    if difference is None:
        return "nothing to read"
    return f"below {ROUNDING:g}" if difference < ROUNDING else f"{difference:.1e}"


def _ask_where_it_stands() -> Question:
    token, size = 9, 2
    memory, in_picture = play_history(block_tokens=size), play_history()
    place, before = memory.place(token), in_picture.place(token)
    assert place and before and memory.sequence
    table = memory.sequence.table
    logical, physical, offset = place
    choices = ((logical, physical), (logical, logical), (logical - 1, table[logical - 1]), before[:2])
    answer, *_ = told = [f"{one} and {other}" for one, other in choices]
    return Question(
        text=f"The same events in blocks of {size} tokens instead of {in_picture.pool.block_tokens}: the block table "
        f"of {LOOKED_AT} then reads {', '.join(map(str, table))}. Tokens and blocks are counted from 0. In which "
        f"logical block is token {token}, and in which physical one?",
        choices=tuple(sorted(told)),
        answer=answer,
        reveals={"token": token, "block_tokens": size},
        because=f"{token} = {logical} × {size} + {offset}, so it has offset {offset} in logical block {logical}, and "
        f"entry {logical} of the table points at physical block {physical}. Attention asks for the logical place only.",
    )


def _why_table_still(moved: str, settings: Mapping[str, Any]) -> str:
    sequence = play_history(settings["events"], settings["block_tokens"]).sequence
    if moved == "token" and settings["token"] >= (length := len(sequence.tokens) if sequence else 0):
        return f"{LOOKED_AT} has {length} tokens so far, so this one stands nowhere yet."
    return ""


TABLE_EXPLORATION = Exploration(
    question=_ask_where_it_stands,
    in_view=("events", "block_tokens", "token"),
    settings={
        "token 9 in blocks of 4": {"token": 9},
        "token 9 in blocks of 2": {"token": 9, "block_tokens": 2},
        "as B has ended": {"events": 3, "token": 2},
    },
    readouts=table_readouts,
    why_still=_why_table_still,
)


# Branches that write into the tail they share

KEY_PT, TAILS_PT, TABLES_PT = 12, 90, 172
FULL_BLOCK_PT, ENTRY_STEP_PT = 38, 19


def write_to_tails(
    *,
    tail_tokens: Annotated[
        int, Slider("tokens in the tail", 1, copy_on_write.LARGEST_BLOCK, 1)
    ] = copy_on_write.TAIL_TOKENS,
    branches: Annotated[int, Slider("branches", 2, copy_on_write.MOST_BRANCHES, 1)] = copy_on_write.BRANCHES,
    parent: Annotated[Parent, Choice("the parent", tuple(Parent))] = Parent.STAYS,
    written: Annotated[int, Slider("have written", 0, copy_on_write.MOST_BRANCHES, 1)] = copy_on_write.BRANCHES,
    block_tokens: Annotated[
        int, Slider("tokens a block", copy_on_write.SMALLEST_BLOCK, copy_on_write.LARGEST_BLOCK, 1)
    ] = copy_on_write.BLOCK_TOKENS,
    language: str = "en",
) -> Figure:
    """The block tables of a parent and its branches over the blocks of a live pool, after some have written.

    A tail holds no more than a block does, and no more branches write than there are. Raises InputError for values
    that make no sense. Source: figure 8-15.
    """
    forked = forked_at(tail_tokens, branches, parent, written, block_tokens)
    text = words(language, "copy-on-write")
    with style.in_book_style():
        page = new_page(216)
        drawn = BlockMap(page)
        spans = _spans(forked)
        _draw_blocks(drawn, forked, spans, text)
        _draw_tables(drawn, forked, spans, text)
        drawn.text(LEFT_PT, KEY_PT + 15, text["reference"], ha="left")
        drawn.text(LEFT_PT, KEY_PT, text["looks"], ha="left")
        drawn.draw()
    return page


def forked_at(tail_tokens: int, branches: int, parent: Parent, written: int, block_tokens: int) -> Forked:
    """What the figure's parameters describe, as far as a block and the number of branches allow."""
    size = whole("block_tokens", block_tokens, copy_on_write.SMALLEST_BLOCK, copy_on_write.LARGEST_BLOCK)
    tail = whole("tail_tokens", tail_tokens, 1, copy_on_write.LARGEST_BLOCK)
    count = whole("branches", branches, 2, copy_on_write.MOST_BRANCHES)
    done = whole("written", written, 0, copy_on_write.MOST_BRANCHES)
    return write_in_branches(size, min(tail, size), count, parent, min(done, count))


def _spans(forked: Forked) -> list[tuple[float, float]]:
    """Left end and width of each physical block: full ones without their slots, then all that may be a tail."""
    tails = forked.pool.blocks - FULL_BLOCKS
    first = LEFT_PT + FULL_BLOCKS * (FULL_BLOCK_PT + GAP_PT)
    each = (RIGHT_PT - first - GAP_PT * (tails - 1)) / tails
    width = min(each, CELL_PT_AT_MOST * forked.pool.block_tokens)
    full = [(LEFT_PT + block * (FULL_BLOCK_PT + GAP_PT), FULL_BLOCK_PT) for block in range(FULL_BLOCKS)]
    return full + [(first + tail * (each + GAP_PT), width) for tail in range(tails)]


def _draw_blocks(
    drawn: BlockMap, forked: Forked, spans: Sequence[tuple[float, float]], text: Mapping[str, str]
) -> None:
    sources = {copy.target: copy.source for copy in forked.copies}
    for block, (left, width) in enumerate(spans):
        if not forked.references[block]:
            drawn.free_block(left, TAILS_PT, width, text["free"])
        elif block < FULL_BLOCKS:
            drawn.box("shared", left, TAILS_PT, width, CELL_HEIGHT_PT)
        else:
            drawn.block(left, TAILS_PT, width, [_lettered(each) for each in forked.letters(block)])
        lines = [text["block"].format(block=block), text["references"].format(count=forked.references[block])]
        if block in sources:
            lines.append(text["copy"].format(source=sources[block]))
        elif block == FULL_BLOCKS and any(letter in APPENDED for letter in forked.letters(block) if letter):
            lines.append(text["in_place"])
        drawn.text(left + width / 2, TAILS_PT - 4, "\n".join(lines), va="top")


def _lettered(letter: str) -> Cell:
    return ("C" if letter in APPENDED else "A") if letter else "open", letter


def _draw_tables(
    drawn: BlockMap, forked: Forked, spans: Sequence[tuple[float, float]], text: Mapping[str, str]
) -> None:
    """The table of each holder, and an arrow to a block for each entry; those to one block end side by side."""
    entries = list[tuple[float, int]]()
    step = (RIGHT_PT - LEFT_PT) / (len(forked.branches) + 1)
    for place, (name, table) in enumerate(_holders(forked, text)):
        middle = LEFT_PT + (place + 0.5) * step
        drawn.text(middle, TABLES_PT + ENTRY_PT + 10, name)
        first = middle - (len(table) - 1) / 2 * ENTRY_STEP_PT
        entries += [(first + entry * ENTRY_STEP_PT, block) for entry, block in enumerate(table)]
    reached = [0] * forked.pool.blocks
    for middle, block in entries:
        drawn.entry(middle, TABLES_PT, block)
        reached[block] += 1
        left, width = spans[block]
        end = left + width * reached[block] / (forked.references[block] + 1)
        drawn.arrow((middle, TABLES_PT), (end, TAILS_PT + CELL_HEIGHT_PT))


def _holders(forked: Forked, text: Mapping[str, str]) -> list[tuple[str, list[int]]]:
    """The name of each that forked or was forked, and its table; empty for a parent that let go."""
    holders = [(text["parent"], forked.parent.table) if forked.parent else (text["parent_gone"], [])]
    for number, (branch, letter) in enumerate(zip(forked.branches, APPENDED, strict=False), start=1):
        has_written = branch.tokens[-1] == ord(letter)
        told = text["branch_wrote" if has_written else "branch"].format(branch=number, letter=letter)
        holders.append((told, branch.table))
    return holders


def copy_readouts(**settings: Any) -> tuple[Readout, ...]:
    """What writing took and who refers to what, at the settings of `write_to_tails`."""
    forked = forked_at(**settings)
    held = forked.pool.held
    return (
        Readout("copies", len(forked.copies)),
        Readout("blocks held", held),
        Readout("references to each block, from block 0 on", ", ".join(map(str, forked.references))),
        Readout("references in all (table entries)", forked.blocks_apart),
        Readout("blocks saved against storing each sequence apart", forked.blocks_apart - held),
    )


def _ask_how_many_copies() -> Question:
    gone = write_in_branches(parent=Parent.LETS_GO)
    full = write_in_branches(tail_tokens=copy_on_write.BLOCK_TOKENS, parent=Parent.LETS_GO)
    stays = write_in_branches()
    count = len(gone.branches)
    return Question(
        text=f"A sequence is forked into {count} branches and lets go. Now the branches alone share its tail block, "
        f"{copy_on_write.TAIL_TOKENS} of {copy_on_write.BLOCK_TOKENS} slots written, and each writes one token. How "
        "many copies of the tail are made?",
        choices=tuple(map(str, range(count + 1))),
        answer=str(len(gone.copies)),
        reveals={"parent": Parent.LETS_GO},
        because="Who writes first finds another reference and takes a copy; the last holder is alone and writes in "
        f"place. While the parent stays, its reference forces {len(stays.copies)} copies. With the tail exactly full "
        f"it would be {len(full.copies)}: each takes a new block, and a full block is never written.",
    )


def _why_copies_still(moved: str, settings: Mapping[str, Any]) -> str:
    if moved == "tail_tokens" and settings[moved] >= (size := settings["block_tokens"]):
        return f"A block has {size} slots, so a tail of {size} tokens is full: there cannot be more in it."
    if moved == "written" and settings[moved] >= (count := settings["branches"]):
        return f"All {count} branches have written already."
    return ""


COPY_EXPLORATION = Exploration(
    question=_ask_how_many_copies,
    in_view=("tail_tokens", "branches", "parent", "written"),
    settings={
        "the parent lets go": {"parent": Parent.LETS_GO},
        "a tail that is exactly full": {"tail_tokens": copy_on_write.BLOCK_TOKENS},
        "only one has written": {"written": 1},
    },
    readouts=copy_readouts,
    why_still=_why_copies_still,
)
