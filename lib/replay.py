"""A run in a pool, played again: what each request holds, and what each block is, in any step of a schedule.

A `Schedule` says who computed what and who lost its KV; the blocks follow from that and are not kept with it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter

from lib.blocks import PagingError, State
from lib.checks import InputError
from lib.residency import PoolSetup, Residents
from lib.schedule import Schedule, Step


@dataclass(frozen=True)
class PoolState:
    """The pool while a step is in flight: block tables and tokens by place, what each block is, whom the step touches.

    The users of those in `leaving` go away during the step: their blocks stay held until it is done.
    """

    tables: Mapping[int, tuple[int, ...]]
    tokens: Mapping[int, int]
    blocks: tuple[State, ...]
    computing: frozenset[int]
    leaving: frozenset[int]

    def count(self, state: State) -> int:
        """Blocks that are in this state."""
        return self.blocks.count(state)

    def holders(self, block: int) -> tuple[int, ...]:
        """The requests whose tables refer to a block."""
        return tuple(place for place, table in self.tables.items() if block in table)

    @property
    def touched(self) -> frozenset[int]:
        """The blocks that the step in flight reads or writes: nobody else may have them before it is done."""
        return frozenset(block for place in self.computing for block in self.tables[place])


def replay(schedule: Schedule, pool: PoolSetup) -> tuple[PoolState, ...]:
    """The pool during each step of a schedule, and once more when all are done.

    Raises InputError for another pool than that of the run. Source: section 8.3.2.
    """
    if schedule.peak_blocks is None:
        raise InputError("schedule", "one without a pool", "the schedule of a run in a pool")
    try:
        states, peak = _replay(schedule, pool)
    except PagingError:
        peak = -1
    if peak != schedule.peak_blocks:
        raise InputError("pool", pool, "the pool in which the schedule was run")
    return states


def _replay(schedule: Schedule, pool: PoolSetup) -> tuple[tuple[PoolState, ...], int]:
    kv, running, states = Residents(schedule.requests, pool), list[int](), list[PoolState]()
    entries = {(stay.start, place) for place, stays in enumerate(schedule.residences()) for stay in stays}
    departures = sorted((*schedule.cancellations, *schedule.preemptions), key=attrgetter("at_ns"))
    rounds = dict[int, list[tuple[int, int]]]()
    for place, of_one in schedule.rounds.items():
        for each in of_one:
            rounds.setdefault(each.step, []).append((place, each.outputs))

    def leave(places: Iterable[int]) -> None:
        for place in places:
            running.remove(place)
            kv.leave(place)

    def leave_before(number: int) -> None:
        # Whoever was preempted may go away before any step is made.
        leave(dict.fromkeys(one.place for one in departures if one.step == number and one.place in running))

    for number, step in enumerate(schedule.steps()):
        leave_before(number)
        newcomers = [part for part in step.prompts if (number, part.place) in entries]
        for part in newcomers:
            kv.enter(part.place, part.context + part.new_tokens)
        parts = {part.place: part for part in step.parts}
        drafted = {part.place: part.new_tokens - 1 for part in step.decodes}
        for place in running:
            if place in parts:
                kv.grow(place, parts[place].context + parts[place].new_tokens, drafted.get(place, 0))
        running += [part.place for part in newcomers]
        kv.note_peak()
        leaving = {
            one.place for one in schedule.cancellations if one.step == number + 1 and one.at_ns == step.end_ns
        }.intersection(running)
        states.append(_state(kv, running, step, leaving))
        for place, outputs in rounds.get(number, ()):
            kv.confirm(place, parts[place].context + outputs)
        kv.compute([place for place in running if place in parts])
        leave([each for each in running if schedule.last_output_step[each] == number and schedule.completed[each]])
    leave_before(schedule.step_count)
    states.append(_state(kv, running, None, set()))
    return tuple(states), kv.peak_blocks


def _state(kv: Residents, running: list[int], step: Step | None, leaving: set[int]) -> PoolState:
    tables = {place: kv.table(place) for place in running}
    return PoolState(
        tables,
        {place: kv.tokens(place) for place in running},
        tuple(kv.pool.state(block) for block in range(kv.pool.blocks)),
        frozenset(part.place for part in step.parts) if step else frozenset(),
        frozenset(leaving),
    )
