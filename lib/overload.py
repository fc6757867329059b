"""What becomes of the requests of a load that is too much for an engine: all let in, given up, or refused in time.

Each way is run by `lib.fast_forward.simulate` and counted afterwards: who had all outputs by the deadline, what was
computed for the others, and how long the devices were busy.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

import numpy as np

from lib.admission import Answer, Engine, Verdict, deadline_ns, decide
from lib.arrivals import in_order
from lib.checks import InputError
from lib.fast_forward import simulate
from lib.schedule import MOST_NS, Integers, Schedule
from lib.scheduling import Request, in_order_of_arrival


class Fate(StrEnum):
    """What became of a request."""

    IN_TIME = "in time"
    LATE = "late"
    GIVEN_UP = "given up"
    REFUSED = "refused"


@dataclass(frozen=True)
class Outcome:
    """What became of a request, and why it was let in or refused, as the last engine said that was asked.

    Where one let it in: which, when it began and gave its last output in ns (-1: never), the tokens computed for it.
    """

    request: Request
    fate: Fate
    verdict: Verdict
    engine: int | None = None
    started_ns: int = -1
    finish_ns: int = -1
    computed_tokens: int = 0


@dataclass(frozen=True)
class Served:
    """The outcomes of a load, in order of arrival, and what each engine ran: None for one that got no request."""

    outcomes: tuple[Outcome, ...]
    schedules: tuple[Schedule | None, ...]

    def count(self, fate: Fate) -> int:
        """Requests with this fate."""
        return self._fates[fate]

    @cached_property
    def _fates(self) -> Counter[Fate]:
        return Counter(outcome.fate for outcome in self.outcomes)

    @property
    def computed_tokens(self) -> int:
        return sum(outcome.computed_tokens for outcome in self.outcomes)

    @property
    def wasted_tokens(self) -> int:
        """Tokens computed for requests that did not have all outputs in time."""
        return sum(outcome.computed_tokens for outcome in self.outcomes if outcome.fate != Fate.IN_TIME)

    @cached_property
    def busy_ns(self) -> int:
        """How long the devices of all engines computed, together."""
        ran = [stretch for schedule in self.schedules if schedule for stretch in schedule.stretches]
        return sum(stretch.end_ns(stretch.steps) - stretch.start_ns for stretch in ran)

    @property
    def busy_ns_per_result(self) -> float | None:
        """Device time for each request in time, that of the others included; None if there is none."""
        in_time = self.count(Fate.IN_TIME)
        return self.busy_ns / in_time if in_time else None


def let_all_in(requests: Sequence[Request], engine: Engine, deadline_s: float) -> Served:
    """A load on one engine without a gateway: only what its pool could never hold is refused.

    Raises InputError as `lib.admission.decide` does, and where the pool could hold none. Source: section 8.6.1.
    """
    if not isinstance(engine, Engine):
        raise InputError("engine", engine, "an Engine")
    load = in_order_of_arrival(requests, engine.policy)
    due_ns = deadline_ns(deadline_s)
    holds = [not engine.pool or engine.pool.can_ever_hold(engine.serves(request)) for request in load]
    if not any(holds):
        raise InputError("requests", requests, "at least one that the pool can hold")
    answers = [(Answer(Verdict.LET_IN if held else Verdict.NEVER_FITS),) for held in holds]
    return _served(load, answers, [engine], due_ns)


def cancel_at_deadline(requests: Sequence[Request], deadline_s: float) -> tuple[Request, ...]:
    """The same requests from users who go away when so much time has passed since the arrival, if not before.

    Raises InputError for no requests, arrivals out of order, and a deadline of 0 or less. Source: section 8.6.1.
    """
    due_ns, load = deadline_ns(deadline_s), in_order(requests)
    return tuple(
        replace(request, cancel_ns=min(request.arrival_ns + due_ns, MOST_NS if one is None else one))
        for request in load
        for one in (request.cancel_ns,)
    )


def refuse_late(requests: Sequence[Request], engines: Sequence[Engine], deadline_s: float) -> Served:
    """A load behind the gateways of one or several engines, which refuse what they expect to be late.

    What one refuses is offered to the next. Raises InputError as `lib.admission.decide` does. Source: section 8.6.1.
    """
    load = in_order(requests)
    return _served(load, decide(load, engines, deadline_s), engines, deadline_ns(deadline_s))


def _served(
    load: Sequence[Request], answers: Sequence[Sequence[Answer]], engines: Sequence[Engine], due_ns: int
) -> Served:
    """Run each engine on what it let in, and say what became of each request."""
    outcomes = [Outcome(request, Fate.REFUSED, asked[-1].verdict) for request, asked in zip(load, answers, strict=True)]
    schedules: list[Schedule | None] = []
    for number, engine in enumerate(engines):
        places = [
            place
            for place, asked in enumerate(answers)
            if len(asked) == number + 1 and asked[-1].verdict == Verdict.LET_IN
        ]
        schedules.append(_run([load[place] for place in places], engine) if places else None)
        if schedule := schedules[-1]:
            for place, outcome in zip(places, _outcomes(schedule, number, due_ns), strict=True):
                outcomes[place] = replace(outcome, request=load[place])
    return Served(tuple(outcomes), tuple(schedules))


def _run(load: Sequence[Request], engine: Engine) -> Schedule:
    served = [engine.serves(request) for request in load]
    schedule = simulate(served, engine.policy, engine.step_time, engine.pool, engine.speculation)
    assert not schedule.refused
    return schedule


def _outcomes(schedule: Schedule, engine: int, due_ns: int) -> list[Outcome]:
    columns = (schedule.completed, schedule.started_ns, schedule.finish_ns, computed_tokens(schedule))
    return [
        Outcome(
            request,
            _fate(completed, finish - request.arrival_ns <= due_ns),
            Verdict.LET_IN, engine, started, finish if completed else -1, tokens,
        )
        for request, completed, started, finish, tokens in zip(
            schedule.requests, *(column.tolist() for column in columns), strict=True
        )
    ]  # fmt: skip


def _fate(completed: bool, in_time: bool) -> Fate:
    if not completed:
        return Fate.GIVEN_UP
    return Fate.IN_TIME if in_time else Fate.LATE


def computed_tokens(schedule: Schedule) -> Integers:
    """Tokens computed for each request: of prompts, in decode, of drafts, and once more after a preemption.

    Raises InputError for what is no schedule.
    """
    if not isinstance(schedule, Schedule):
        raise InputError("schedule", schedule, "a Schedule, such as simulate() gives")
    computed = np.zeros(len(schedule.requests), np.int64)
    first, last = schedule.first_output_step, schedule.last_output_step
    silent = {place: set(steps) for place, steps in schedule.skipped.items()}
    for place in np.flatnonzero(np.asarray(last) >= 0).tolist():
        computed[place] = last[place] - first[place] + 1 - len(silent.get(place, ()))
    step = 0
    for stretch in schedule.stretches:
        for place, new, _ in stretch.prompts:
            computed[place] += new
            # The last part of a prompt gave an output: that step is counted already.
            if first[place] <= step <= last[place] and step not in silent.get(place, ()):
                computed[place] -= 1
        step += stretch.steps
    for place, rounds in schedule.rounds.items():
        computed[place] += sum(each.drafted for each in rounds)
    assert computed.sum() == schedule.scheduled_tokens
    return computed
