"""The shortest script of events that shows a fault of a pool: stated, searched for, and judged."""

import math
import pickle
from collections.abc import Iterable, Iterator
from collections.abc import Sequence as Several
from dataclasses import dataclass
from typing import Any

from lib.block_content import Content
from lib.blocks import PagingError
from lib.broken_engine import BLOCK_TOKENS, BLOCKS, Fault, Output, Tracer, run_script, tokens_of
from lib.checks import InputError, one_of, whole
from lib.engine_script import NAMES, Event, Script, Verb, read_script

# Of each fault a script than which no other is shorter; the tests search for it.
SHORTEST = {
    fault: read_script(text.replace("; ", "\n"))
    for fault, text in {
        Fault.IDENTITY_KEPT: "admit A ab; step; release A; admit B xyz; step; release B; admit C abc; step",
        Fault.FREED_AT_ONCE: "admit A ab; submit; release A; admit B xy; step",
        Fault.NO_COPY: "admit A a; fork A B; append A x; append B y; step",
        Fault.FULL_HIT: "admit A ab; step; admit B ab; step",
    }.items()
}
MOST_EVENTS = max(map(len, SHORTEST.values()))
SEQUENCES, LETTERS = 3, "ab"
_STEP, _SUBMIT, _COMPLETE = (Event(verb) for verb in (Verb.STEP, Verb.SUBMIT, Verb.COMPLETE))


@dataclass(frozen=True)
class Verdict:
    """Whether a script shows a fault: the outputs that are wrong with it, or why the script does not count."""

    fault: Fault
    events: int
    wrong: tuple[Output, ...]
    refusal: str

    @property
    def is_shown(self) -> bool:
        return bool(self.wrong) and not self.refusal

    def __str__(self) -> str:
        fewest = len(SHORTEST[self.fault])
        if self.refusal:
            return f"This does not count: {self.refusal}."
        if not self.wrong:
            return f"Not shown: with '{self.fault}', too, each output is right. {fewest} events are enough."
        event, name, error = self.wrong[0]
        told = f"is wrong by {error:.2g}" if error < math.inf else "is missing"
        shown = f"Shown in {self.events} events: in event {event} the output of {name} {told}."
        if self.events > fewest:
            return f"{shown} {fewest} are enough."
        return f"{shown} It takes no fewer."


def judge(script: str | Several[Event], fault: Fault) -> Verdict:
    """Whether a script shows a fault in a pool of two blocks, and how many events are enough.

    A script that the pool refuses, broken or sound, does not count. Raises InputError for one that makes no sense.
    Source: section 8.3.2.
    """
    fault, events = one_of("fault", fault, Fault), read_script(script)
    try:
        run_script(events)
    except PagingError as refusal:
        return Verdict(fault, len(events), (), f"the sound pool refuses {refusal}")
    try:
        outputs = run_script(events, {fault}).outputs
    except PagingError as refusal:
        return Verdict(fault, len(events), (), f"the broken pool refuses {refusal}")
    return Verdict(fault, len(events), tuple(output for output in outputs if output.is_wrong), "")


def search(fault: Fault, blocks: int = BLOCKS, most_events: int = MOST_EVENTS) -> Script | None:
    """The first of the shortest scripts that show a fault, None if there is none of so many events.

    All scripts are gone through, the shorter ones first, that have at most three sequences and prompts of one letter of
    two, repeated up to the size of the pool; of those that come to the same state, one. Raises InputError for values
    that make no sense.
    """
    fault = one_of("fault", fault, Fault)
    most = whole("most_events", most_events, at_least=1, at_most=MOST_EVENTS)
    engine = Tracer({fault}, blocks)
    prompts = [letter * tokens for letter in LETTERS for tokens in range(1, engine.pool.blocks * BLOCK_TOKENS + 1)]
    # Steps and sequences refer to each other and to the pool: pickle copies all of them, quicker than deepcopy does.
    reached: list[tuple[Script, bytes]] = [((), pickle.dumps(engine))]
    known = set[Any]()
    for _ in range(most):
        for script, kept in reached:
            for event in (_STEP, _COMPLETE):
                after = _after(kept, event)
                if after and any(output.is_wrong for output in after.outputs) and _is_sound((*script, event), blocks):
                    return (*script, event)
        longer = []
        for script, kept in reached:
            for event in _next_events(script, pickle.loads(kept), prompts):
                after, found = _after(kept, event), (*script, event)
                if after and (state := _state(after, _named(found))) not in known:
                    known.add(state)
                    longer.append((found, pickle.dumps(after)))
        reached = longer
    return None


def _after(kept: bytes, event: Event) -> Tracer | None:
    engine: Tracer = pickle.loads(kept)
    try:
        engine.follow(event)
    except (PagingError, InputError):
        return None
    return engine


def _is_sound(script: Script, blocks: int) -> bool:
    engine = Tracer((), blocks)
    try:
        for event in script:
            engine.follow(event)
    except PagingError:
        return False
    return True


def _named(script: Script) -> int:
    """Sequences that a script has named so far."""
    return sum(event.verb in (Verb.ADMIT, Verb.FORK) for event in script)


def _next_events(script: Script, engine: Tracer, prompts: list[str]) -> Iterator[Event]:
    if engine.due:
        yield from (_STEP, _SUBMIT)
    if engine.in_flight:
        yield _COMPLETE
    for name in engine.sequences:
        yield Event(Verb.RELEASE, name)
        yield from (Event(Verb.APPEND, name, letter) for letter in LETTERS)
    if (named := _named(script)) < SEQUENCES:
        # The first prompt is made of the first letter: with the other one all would be the same.
        yield from (Event(Verb.ADMIT, NAMES[named], each) for each in prompts if script or each[0] == LETTERS[0])
        yield from (Event(Verb.FORK, name, NAMES[named]) for name in engine.sequences)


def _state(engine: Tracer, named: int) -> tuple[Any, ...]:
    """All that decides what can happen from here on; blocks are numbered as they are met, names do not matter."""
    pool, numbers = engine.pool, dict[int, int]()

    def numbered(blocks: Iterable[int]) -> tuple[int, ...]:
        return tuple(numbers.setdefault(block, len(numbers)) for block in blocks)

    places = {flight.step: place for place, flight in enumerate(engine.in_flight)}
    running = [
        (
            tokens_of(one),
            numbered(one.table),
            one.computed,
            one.found_blocks,
            engine.due.index(name) if name in engine.due else None,
            tuple((places[step], step.computed_before[one]) for step in one.steps),
        )
        for name, one in sorted(engine.sequences.items(), key=lambda item: tokens_of(item[1]))
    ]
    flights = [
        (numbered(step.let_go), [(tokens, row and (row.text, numbered(row.table))) for _, tokens, row in members])
        for step, members in engine.in_flight
    ]
    free = numbered(pool._idle), numbered(pool._waiting)
    met = [(_place_of(pool._contents[block], block), pool._touched[block], _texts(engine, block)) for block in numbers]
    empty = [numbers.get(block) for block in pool._empty]
    return named, repr((running, flights, free, met, empty))


def _texts(engine: Tracer, block: int) -> list[str]:
    return engine.texts[block * BLOCK_TOKENS : (block + 1) * BLOCK_TOKENS]


def _place_of(content: Content | None, block: int) -> tuple[Any, ...]:
    """What a block is found under, and how many others are found before it."""
    path = list[Any]()
    place = [*content.blocks].index(block) if content else None
    while content and content.parent:
        path.append(content.key)
        content = content.parent
    return place, path
