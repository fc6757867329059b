"""Whether a request is let in: room for its KV at its largest, and time until its deadline.

`verdict` is the rule for one request. `decide` applies it to a load, each request on its arrival: the gateway of an
engine keeps books of those it let in and forecasts from them alone; what the engine really does it does not see. A
request that one engine refuses is offered to the next: none is left, so it is rejected; one of the same kind, so it is
passed on to another instance; one that needs less time, so a faster configuration serves it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from math import ceil
from typing import NamedTuple

from lib.checks import InputError, finite, keep_whole, seconds, whole
from lib.residency import PoolSetup
from lib.schedule import MOST_NS
from lib.scheduling import Entry, Policy, Request, in_order_of_arrival
from lib.speculation_setup import MOST_DRAFT, PLAIN, SpeculationSetup
from lib.step_time import MOST_TOKENS, NS, StepTime, equal_requests, executed_plan, step_plan, verifying

# A short request of section 8.1 that waits so much longer is late.
FURTHER_QUEUE_S = 0.1


class Verdict(StrEnum):
    """Whether a request is let in, and why not."""

    LET_IN = "let in"
    NEVER_FITS = "the pool could never hold it"
    NO_ROOM = "no room for its KV"
    TOO_LATE = "too late"


def time_used(queue_ns: int, prefill_ns: int, outputs: int, interval_ns: int) -> int:
    """Time from arrival to the last output in ns: the queue, the prefill, G - 1 intervals.

    Raises InputError for negative times and for no outputs. Source: sections 8.1.3 and 8.6.1.
    """
    to_first = whole("queue_ns", queue_ns, at_most=MOST_NS) + whole("prefill_ns", prefill_ns, at_most=MOST_NS)
    further = whole("outputs", outputs, at_least=1, at_most=MOST_TOKENS) - 1
    return to_first + further * whole("interval_ns", interval_ns, at_most=MOST_NS)


def verdict(used_ns: int, left_ns: int, blocks: int, free_blocks: int, pool_blocks: int) -> Verdict:
    """Let a request in if there is room for the blocks that it fills in the end, and it is done in the time left.

    Of no blocks, where nobody counts them, it needs 0. Raises InputError for more free blocks than there are, for no
    time left and for negative numbers. Source: section 8.6.1.
    """
    used, left = whole("used_ns", used_ns), whole("left_ns", left_ns, at_least=1)
    needed, all_blocks = whole("blocks", blocks), whole("pool_blocks", pool_blocks)
    free = whole("free_blocks", free_blocks, at_most=all_blocks)
    if needed > all_blocks:
        return Verdict.NEVER_FITS
    if needed > free:
        return Verdict.NO_ROOM
    return Verdict.LET_IN if used <= left else Verdict.TOO_LATE


@dataclass(frozen=True)
class ServiceForecast:
    """How long an engine works on a request, if so many requests, `rows`, share each of its steps all the while.

    With one row it is alone. With more, each of the others makes room for a newcomer once, whose prompt lengthens a
    step; all are taken to be like the request itself. A step gives `outputs_per_step`, more than one if drafts of
    `draft_tokens` are verified in it. What a request waits for tools counts in full, as if it kept its row meanwhile.
    """

    step_time: StepTime
    rows: int = 1
    outputs_per_step: float = 1.0
    draft_tokens: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.step_time, StepTime):
            raise InputError("step_time", self.step_time, "a StepTime, such as FIT")
        keep_whole(self, MOST_TOKENS, rows=1)
        keep_whole(self, MOST_DRAFT, draft_tokens=0)
        most = self.draft_tokens + 1
        allowed = f"from 1 to {most}, the tokens of a request that a step computes"
        if finite("outputs_per_step", self.outputs_per_step, 1, allowed) > most:
            raise InputError("outputs_per_step", self.outputs_per_step, allowed)

    def __call__(self, request: Request) -> int:
        """Nanoseconds from its first step to its last output, if it gives all outputs that it declares."""
        if not isinstance(request, Request):
            raise InputError("request", request, "a Request")
        with_tools_ns = sum(wait.wait_ns for wait in request.tool_waits)
        return with_tools_ns + _service_ns(self, request.prompt, request.cached_prefix, request.declared_output)


@lru_cache(maxsize=4096)
def _service_ns(by: ServiceForecast, prompt: int, cached: int, outputs: int) -> int:
    """Kept, as requests of the same kind come again and again."""
    one = verifying(step_plan((1 + by.draft_tokens, prompt + outputs // 2)), by.draft_tokens)
    step_ns = by.step_time(equal_requests(by.rows, one))
    prefill_ns = by.step_time(executed_plan(prompt - cached, cached, equal_requests(by.rows - 1, one)))
    steps = ceil((outputs - 1) / by.outputs_per_step)
    foreign_ns = min(by.rows - 1, steps) * (prefill_ns - step_ns)
    return time_used(0, prefill_ns, 1 + steps, step_ns) + foreign_ns


@dataclass(frozen=True)
class Engine:
    """An engine as its gateway knows it: how it runs requests, and a forecast of how long it works on one, in ns.

    Where it answers more briefly than asked, it gives at most `most_output` tokens. Raises InputError for a policy
    under which a free row is not filled at the next border, and for what is no policy, step time, pool, speculation or
    forecast.
    """

    policy: Policy
    step_time: StepTime
    forecast: Callable[[Request], int]
    pool: PoolSetup | None = None
    speculation: SpeculationSetup = PLAIN
    most_output: int | None = None

    def __post_init__(self) -> None:
        for name, kind in (("policy", Policy), ("step_time", StepTime), ("speculation", SpeculationSetup)):
            if not isinstance(getattr(self, name), kind):
                raise InputError(name, getattr(self, name), f"a {kind.__name__}")
        if self.policy.entry != Entry.AT_BORDER:
            raise InputError("policy", self.policy, "one under which requests enter at each border")
        if self.pool is not None and not isinstance(self.pool, PoolSetup):
            raise InputError("pool", self.pool, "a PoolSetup, or None where there is room for all")
        if not callable(self.forecast):
            raise InputError("forecast", self.forecast, "a function of a Request, such as a ServiceForecast")
        if self.most_output is not None:
            keep_whole(self, MOST_TOKENS, most_output=1)

    def serves(self, request: Request) -> Request:
        """The request as this engine answers it: with no more outputs than it may give, and calls before the last."""
        if self.most_output is None or request.declared_output <= self.most_output:
            return request
        output = min(request.output, self.most_output)
        ids = None if request.ids is None else request.ids[: request.prompt + output]
        calls = tuple(wait for wait in request.tool_waits if wait.output < output)
        return replace(request, output=output, max_output=self.most_output, ids=ids, tool_waits=calls)


class Answer(NamedTuple):
    """What the gateway of one engine says to a request: its verdict, and the forecast start and end, -1 if refused."""

    verdict: Verdict
    start_ns: int = -1
    end_ns: int = -1


def decide(requests: Sequence[Request], engines: Sequence[Engine], deadline_s: float) -> tuple[tuple[Answer, ...], ...]:
    """What the gateways say to each request on its arrival: one is asked after another until one lets it in.

    The deadline counts from the arrival, and to offer a request to the next engine takes no time. Raises InputError for
    no requests, arrivals out of order, no engines, a deadline of 0 or less, and a forecast that is no time. Source:
    section 8.6.1.
    """
    if not isinstance(engines, Sequence) or not engines or not all(isinstance(each, Engine) for each in engines):
        raise InputError("engines", engines, "at least one Engine, in a sequence")
    load = in_order_of_arrival(requests, engines[0].policy)
    due_ns = deadline_ns(deadline_s)
    gateways = [_Gateway(engine, due_ns) for engine in engines]
    return tuple(_answers(request, gateways) for request in load)


def deadline_ns(deadline_s: float) -> int:
    """A deadline in ns after the arrival. Raises InputError for one of 0 or less."""
    return ceil(seconds("deadline_s", deadline_s, above_zero=True) * NS)


def _answers(request: Request, gateways: Sequence["_Gateway"]) -> tuple[Answer, ...]:
    answers: list[Answer] = []
    for gateway in gateways:
        answers.append(gateway.ask(request))
        if answers[-1].verdict == Verdict.LET_IN:
            break
    return tuple(answers)


class _Booking(NamedTuple):
    end_ns: int
    blocks: int


class _Gateway:
    """The books of one engine: the forecast end and the blocks, at its largest, of each request that was let in.

    A row serves one request after another. Nobody overtakes, so from the last forecast start on rows and room can only
    come free.
    """

    def __init__(self, engine: Engine, due_ns: int) -> None:
        self.engine, self.due_ns = engine, due_ns
        self.last_start_ns = 0
        self.bookings: list[_Booking] = []

    def ask(self, request: Request) -> Answer:
        """Decide on a request that arrives now, no earlier than the one before it; book it if it is let in."""
        served, pool = self.engine.serves(request), self.engine.pool
        service_ns = whole("forecast", self.engine.forecast(served), at_least=1, at_most=MOST_NS)
        blocks = pool.blocks_for(served.most_tokens) if pool else 0
        now = max(request.arrival_ns, self.last_start_ns)
        self.bookings = [each for each in self.bookings if each.end_ns > now]
        row_ns = self._start(now, 0)
        last_start_ns = max(row_ns, request.arrival_ns + self.due_ns - service_ns)
        used_ns = time_used(row_ns - request.arrival_ns, service_ns, 1, 0)
        found = verdict(used_ns, self.due_ns, blocks, self._free(last_start_ns), pool.blocks if pool else 0)
        if found != Verdict.LET_IN:
            return Answer(found)
        start_ns = self._start(row_ns, blocks)
        end_ns = start_ns + service_ns
        assert end_ns - request.arrival_ns <= self.due_ns, "there was room at the last moment that is early enough"
        self.bookings.append(_Booking(end_ns, blocks))
        self.last_start_ns = start_ns
        return Answer(found, start_ns, end_ns)

    def _start(self, earliest_ns: int, blocks: int) -> int:
        """When there is a row, and room for so many blocks."""
        ends = sorted(each.end_ns for each in self.bookings if each.end_ns > earliest_ns)
        return next(at for at in (earliest_ns, *ends) if self._has_row(at) and self._free(at) >= blocks)

    def _has_row(self, at_ns: int) -> bool:
        return sum(each.end_ns > at_ns for each in self.bookings) < self.engine.policy.max_running

    def _free(self, at_ns: int) -> int:
        all_blocks = self.engine.pool.blocks if self.engine.pool else 0
        return all_blocks - sum(each.blocks for each in self.bookings if each.end_ns > at_ns)
