"""When a block may be taken again: a story of requests that share two blocks, end, and leave a step in flight.

The sharers A, B, ... have the same first tokens; each also has a tail of its own. Steps are submitted in which each of
them computes one more output. Then one ends, as an engine that runs ahead knows which step is the last of a request
before that step is complete; the others go on with one step more and end, too. Then the request N asks for the whole
pool. Pool, KV and attention are real; the device is simulated: a step reads last thing before it is complete, and the
KV of N comes by a copy of its own, which waits for no step.
"""

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from string import ascii_uppercase
from typing import NamedTuple

import numpy as np

from lib.blocks import State
from lib.checks import one_of, whole
from lib.paged_attention import Array, KvBlocks, attend, paged_attend
from lib.paging import Pool, Sequence, Step

POOL_BLOCKS, BLOCK_TOKENS, PREFIX_BLOCKS = 8, 4, 2
SHARED_BLOCK = 0  # the first one of the prefix
LEAST_SHARERS, MOST_SHARERS, MOST_IN_FLIGHT = 2, 4, 2
NEWCOMER = "N"
HEADS, HEAD_DIM = 2, 8
_PREFIX = list(range(PREFIX_BLOCKS * BLOCK_TOKENS))
_TAIL_TOKENS = BLOCK_TOKENS  # of each sharer, of which the first is in its prompt
_FIRST_OF_NEWCOMER = len(_PREFIX) + MOST_SHARERS * _TAIL_TOKENS
_TOKENS = _FIRST_OF_NEWCOMER + POOL_BLOCKS * BLOCK_TOKENS
_QUERIES, _KEYS, _VALUES = np.random.default_rng(8).normal(size=(3, _TOKENS, HEADS, HEAD_DIM))
# What an error of attention is to be compared with.
VALUE_SIZE = float(_VALUES.std())


class Rule(StrEnum):
    """When the engine gives back the blocks of a request that has ended."""

    AFTER_STEP = "after the step"
    AT_ONCE = "at once (wrong)"


class Ending(StrEnum):
    """In which order the sharers end."""

    FIRST_ADMITTED = "first admitted ends first"
    LAST_ADMITTED = "last admitted ends first"


class Kind(StrEnum):
    """What happens in an event."""

    ADMITTED = "admitted"
    FINDS = "finds"
    SUBMITTED = "submitted"
    ENDED = "ended"
    REFUSED = "refused"
    COMPLETE = "complete"
    TAKES = "takes"


class Event(NamedTuple):
    """What happens, and to which request or to the step of which number."""

    kind: Kind
    who: str


@dataclass(frozen=True)
class Moment:
    """What stands after an event: for each block who refers to it, how often, and its state; the steps in flight.

    `error` is the largest error of attention in any step so far, a step in flight taken as if it read now; None before
    the first step.
    """

    event: Event
    holders: tuple[tuple[str, ...], ...]
    references: tuple[int, ...]
    states: tuple[State, ...]
    free: int
    steps: tuple[str, ...]
    error: float | None


def story(sharers: int, in_flight: int, rule: Rule, ending: Ending) -> tuple[Moment, ...]:
    """The moments of the story, one for each event; the state of `SHARED_BLOCK` is that of all shared blocks.

    Raises InputError for 1 sharer or more than 4, and for more than 2 steps in flight. Source: section 8.3.2, figure
    8-14.
    """
    return _told(
        whole("sharers", sharers, LEAST_SHARERS, MOST_SHARERS),
        whole("in_flight", in_flight, at_most=MOST_IN_FLIGHT),
        one_of("rule", rule, Rule),
        one_of("ending", ending, Ending),
    )


@lru_cache(maxsize=64)
def _told(sharers: int, in_flight: int, rule: Rule, ending: Ending) -> tuple[Moment, ...]:
    engine, names = _Engine(rule), ascii_uppercase[:sharers]
    steps = [str(number) for number in range(1, in_flight + 1)]
    for name in names:
        engine.admit(name)
    for number in steps:
        engine.submit(number)
    in_order = names if ending is Ending.FIRST_ADMITTED else names[::-1]
    engine.end(in_order[0])
    if steps:
        engine.complete(steps.pop(0))
        steps.append(str(in_flight + 1))
        engine.submit(steps[-1])
    for name in in_order[1:]:
        engine.end(name)
    is_in = engine.let_newcomer_ask()
    for number in steps:
        engine.complete(number)
        is_in = is_in or engine.admit_newcomer()
    return tuple(engine.moments)


class _Read(NamedTuple):
    """What a step in flight reads for one request: queries, block table and the tokens that should stand there."""

    queries: Array
    table: list[int]
    tokens: list[int]

    def error(self, kv: KvBlocks) -> float:
        found = paged_attend(self.queries, kv, self.table, len(self.tokens))
        return float(np.abs(found - attend(self.queries, _KEYS[self.tokens], _VALUES[self.tokens])).max())


class _Engine:
    """Scheduler, pool and device of the story; each verb is an event."""

    def __init__(self, rule: Rule) -> None:
        self.moments: list[Moment] = []
        self._rule = rule
        self._pool = Pool(POOL_BLOCKS, BLOCK_TOKENS)
        self._kv = KvBlocks(POOL_BLOCKS, BLOCK_TOKENS, HEADS, HEAD_DIM)
        self._requests: dict[str, Sequence] = {}
        self._reads: dict[str, list[_Read]] = {}
        self._not_reported: dict[str, Step] = {}  # of which the pool has not been told that they are complete
        self._errors_of_complete: list[float] = []

    def admit(self, name: str) -> None:
        """Admit a sharer and compute its prompt in a step that is complete before anything else happens."""
        first = len(_PREFIX) + ascii_uppercase.index(name) * _TAIL_TOKENS
        request = self._take(name, [*_PREFIX, first])
        self._pool.complete(self._pool.submit([request]))
        self._note(Kind.FINDS if request.cached else Kind.ADMITTED, name)

    def submit(self, number: str) -> None:
        """Submit a step in which each request computes one more output. It writes its KV first, and reads later."""
        reads = []
        for request in self._requests.values():
            place = len(request.tokens)
            self._pool.append(request, request.tokens[-1] + 1)
            self._write(request, place)
            tokens = list(request.tokens)
            reads.append(_Read(_QUERIES[tokens[-1:]], request.table[:], tokens))
        self._reads[number] = reads
        self._not_reported[number] = self._pool.submit(self._requests.values())
        self._note(Kind.SUBMITTED, number)

    def end(self, name: str) -> None:
        if self._rule is Rule.AT_ONCE:
            for number in list(self._not_reported):
                self._pool.complete(self._not_reported.pop(number))
        self._pool.release(self._requests.pop(name))
        self._note(Kind.ENDED, name)

    def let_newcomer_ask(self) -> bool:
        """Whether the newcomer gets all blocks at once."""
        is_in = self.admit_newcomer()
        if not is_in:
            self._note(Kind.REFUSED, NEWCOMER)
        return is_in

    def complete(self, number: str) -> None:
        self._errors_of_complete += [read.error(self._kv) for read in self._reads.pop(number)]
        if number in self._not_reported:
            self._pool.complete(self._not_reported.pop(number))
        self._note(Kind.COMPLETE, number)

    def admit_newcomer(self) -> bool:
        """Give the newcomer all blocks, if they are free; otherwise nothing happens."""
        tokens = list(range(_FIRST_OF_NEWCOMER, _TOKENS))
        if not self._pool.can_admit(tokens):
            return False
        self._take(NEWCOMER, tokens)
        self._note(Kind.TAKES, NEWCOMER)
        return True

    def _take(self, name: str, tokens: list[int]) -> Sequence:
        request = self._requests[name] = self._pool.admit(tokens)
        self._write(request, request.cached)
        return request

    def _write(self, request: Sequence, first: int) -> None:
        tokens = list(request.tokens[first:])
        slots = self._pool.slots_to_write(request, first, len(request.tokens))
        self._kv.write(slots, _KEYS[tokens], _VALUES[tokens])

    def _note(self, kind: Kind, who: str) -> None:
        blocks = range(POOL_BLOCKS)
        errors = self._errors_of_complete + [read.error(self._kv) for reads in self._reads.values() for read in reads]
        self.moments.append(
            Moment(
                Event(kind, who),
                tuple(tuple(name for name, held in self._requests.items() if block in held.table) for block in blocks),
                tuple(map(self._pool.references, blocks)),
                tuple(map(self._pool.state, blocks)),
                self._pool.free,
                tuple(self._reads),
                max(errors, default=None),
            )
        )
