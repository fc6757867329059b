"""The figure of a broken engine: a script of events, what its blocks are, and how far attention is from right."""

import math
from collections.abc import Mapping
from typing import Annotated, Any

from matplotlib.figure import Figure

from figures import style
from figures.block_maps import CELL_HEIGHT_PT, BlockMap
from figures.exploration import Choice, Exploration, Question, Readout, Slider
from figures.page import new_page
from figures.words import words
from lib.blocks import State
from lib.broken_engine import BLOCK_TOKENS, TOLERANCE, Engine, Fault
from lib.checks import one_of, whole
from lib.engine_script import Script
from lib.shortest_script import MOST_EVENTS, SHORTEST

SOUND = "none"
FAULTS = (SOUND, *Fault)
LINE_PT, TOP_PT, LEFT_PT, MAP_PT, BLOCK_PT, BARS_PT = 18, 156, 14, 124, 60, 316
# The axis of errors, in powers of ten; below it there is no bar, which is what rounding comes to.
LEAST, MOST = round(math.log10(TOLERANCE)), 2


def played(script: Fault, fault: str, events: int) -> Engine:
    """The engine after the first events of a script."""
    engine = Engine(() if one_of("fault", fault, FAULTS) == SOUND else {Fault(fault)})
    for event in script_of(script)[: whole("events", events, at_most=MOST_EVENTS)]:
        engine.follow(event)
    return engine


def script_of(script: Fault) -> Script:
    """The script that shows a fault."""
    return SHORTEST[one_of("script", script, Fault)]


def broken_engine(
    *,
    script: Annotated[Fault, Choice("script for", tuple(Fault))] = Fault.NO_COPY,
    fault: Annotated[str, Choice("fault", FAULTS)] = SOUND,
    events: Annotated[int, Slider("events played", 0, MOST_EVENTS, 1)] = MOST_EVENTS,
    language: str = "en",
) -> Figure:
    """The events of a script, the blocks of a live pool after some of them, and the errors of what was computed.

    Raises InputError for values that make no sense. Source: section 8.3.2.
    """
    engine = played(script, fault, events)
    text = words(language, "broken-engine")
    with style.in_book_style():
        page = new_page(180)
        drawn = BlockMap(page)
        _draw_script(drawn, script_of(script), engine.events, text)
        _draw_blocks(drawn, engine, text)
        _draw_errors(drawn, engine, text)
        drawn.draw()
    return page


def _draw_script(drawn: BlockMap, script: Script, done: int, text: Mapping[str, str]) -> None:
    """Each event; the last one played is framed, those to come are faint."""
    drawn.text(LEFT_PT, TOP_PT + 10, text["events"], ha="left")
    for place, event in enumerate(script):
        middle = TOP_PT - 10 - place * LINE_PT
        drawn.text(
            LEFT_PT + 4, middle, f"{place + 1} {event}", ha="left", color=style.INK if place < done else style.FAINT
        )
        if place + 1 == done:
            drawn.box("now", LEFT_PT, middle - LINE_PT / 2, 96, LINE_PT)


def _draw_blocks(drawn: BlockMap, engine: Engine, text: Mapping[str, str]) -> None:
    """Blocks from top to bottom: the token whose KV stands in each slot, the state, and who holds it."""
    drawn.text(MAP_PT, TOP_PT + 10, text["blocks"], ha="left")
    states = {state: text[state.name.lower()] for state in State}
    for block in range(engine.pool.blocks):
        bottom, state = TOP_PT - 26 - block * 56, engine.pool.state(block)
        slots = engine.texts[block * BLOCK_TOKENS : (block + 1) * BLOCK_TOKENS]
        look = {State.HELD: "A", State.WAITING: "shared", State.IDLE: "C", State.EMPTY: "free"}[state]
        letters = ("", "") if state == State.EMPTY else tuple(slot[-1:] for slot in slots)
        drawn.block(MAP_PT, bottom, BLOCK_PT, [(look, "") for _ in letters])
        for place, letter in enumerate(letters):
            ground = {"facecolor": style.PAPER, "edgecolor": "none", "pad": 0.5} if letter else None
            at = MAP_PT + (place + 0.5) * BLOCK_PT / BLOCK_TOKENS
            drawn.text(at, bottom + CELL_HEIGHT_PT / 2, letter, bbox=ground)
        holders = ", ".join(name for name, one in engine.sequences.items() if block in one.table)
        told = states[state].format(holders=holders)
        drawn.text(MAP_PT + BLOCK_PT + 6, bottom + CELL_HEIGHT_PT / 2, f"{block}: {told}", ha="left")
    flight, none = text["flight"], text["no_flight"]
    flying = ", ".join(name for step in engine.in_flight for name, _, _ in step.members)
    drawn.text(MAP_PT, TOP_PT - 130, flight.format(names=flying) if flying else none, ha="left")


def worst(engine: Engine) -> dict[str, float]:
    """The largest error of each sequence so far."""
    found = dict[str, float]()
    for output in engine.outputs:
        found[output.name] = max(found.get(output.name, 0.0), output.error)
    return found


def _draw_errors(drawn: BlockMap, engine: Engine, text: Mapping[str, str]) -> None:
    """A bar for each sequence that got an output, on a logarithmic scale; what rounding comes to has none."""
    drawn.text(BARS_PT, TOP_PT + 10, text["errors"], ha="left")
    for place, (name, error) in enumerate(worst(engine).items()):
        middle = TOP_PT - 10 - place * 44
        drawn.text(BARS_PT, middle, f"{name}: {_told(error, text)}", ha="left", color=_colour(error))
        if error > TOLERANCE:
            length = 90 * (min(MOST, math.log10(error)) - LEAST) / (MOST - LEAST)
            drawn.box("free", BARS_PT, middle - 24, length, 12)


def _colour(error: float) -> str:
    return style.LIMIT if error > TOLERANCE else style.INK


def _told(error: float, text: Mapping[str, str]) -> str:
    if error == math.inf:
        return text["missing"]
    return text["right"] if error <= TOLERANCE else f"{error:.2g}"


def broken_readouts(**settings: Any) -> tuple[Readout, ...]:
    """States of the blocks and the largest error of each sequence, at the settings of `broken_engine`."""
    engine = played(**settings)
    pool, errors = engine.pool, worst(engine)
    outputs = [_in_words(name, errors) for name in "ABC"]
    return (
        Readout("events followed", engine.events),
        Readout("blocks held", pool.held),
        Readout("blocks that wait for a step", pool.waiting),
        Readout("blocks idle, can be found", pool.idle),
        Readout("blocks empty", pool.empty),
        *(Readout(f"largest error of {name}", told) for name, told in zip("ABC", outputs, strict=True)),
    )


def _in_words(name: str, errors: Mapping[str, float]) -> str:
    if name not in errors:
        return "no output yet"
    return _told(errors[name], {"missing": "output missing", "right": f"below {TOLERANCE:g}"})


def _ask_who_is_harmed() -> Question:
    fault = Fault.NO_COPY
    wrong = [name for name, error in worst(played(fault, fault, MOST_EVENTS)).items() if error > TOLERANCE]
    told = {(): "neither", ("A",): "only A's", ("B",): "only B's", ("A", "B"): "both"}
    return Question(
        text="A and B share a block that is filled in part. Without copy on write, A writes x into its next slot, then "
        "B writes y into the same one. Whose attention is wrong?",
        choices=tuple(told.values()),
        answer=told[tuple(wrong)],
        reveals={"script": fault, "fault": fault, "events": MOST_EVENTS},
        because="The slot holds one KV, that of the last who wrote: B reads its own, A that of B, in silence.",
    )


def _why_broken_still(moved: str, settings: Mapping[str, Any]) -> str:
    length = len(script_of(settings["script"]))
    if moved == "events" and settings["events"] >= length:
        return f"This script has {length} events, and all of them are played."
    if moved == "fault":
        return "In this script, as far as it is played, no such fault has shown: it needs another sequence of events."
    return ""


BROKEN_EXPLORATION = Exploration(
    question=_ask_who_is_harmed,
    in_view=("script", "fault", "events"),
    settings={str(fault): {"script": fault, "fault": fault} for fault in Fault if fault != Fault.NO_COPY},
    readouts=broken_readouts,
    why_still=_why_broken_still,
)
