"""Who is computed when: requests, the limits under which a step hands out tokens, and the plain loop over the steps.

One form covers prefill, chunks, cached prefixes and decode: a request has tokens known and tokens computed, and a step
computes some of those still to be computed. A step that computes the last known token yields one more, an output.
When a pool is full, the request admitted last is preempted: its KV goes, its outputs stay, and it waits in front.
A request that waits for a tool gives up its row but not its KV: it computes nothing until the tool has returned.
With speculation a request in decode computes the tokens of a draft behind its last known one, too, and so yields
several outputs or one. Times are whole nanoseconds. `lib.fast_forward.simulate` gives the same schedule without walking
every step.
"""

from bisect import insort
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice, pairwise

from lib.block_content import Tokens, token_ids
from lib.checks import InputError, keep_whole, one_of, whole
from lib.residency import FIRST_OWN_ID, Departure, PoolSetup, Residents
from lib.schedule import MOST_NS, Absence, Part, Round, Schedule, Stretch
from lib.speculation_setup import PLAIN, SpeculationSetup
from lib.step_time import FIT, MOST_TOKENS, StepTime, step_plan, verifying

UNLIMITED = 2**62


@dataclass(frozen=True)
class ToolWait:
    """A call of a tool: once a request has given so many outputs, it can go on only so many ns later."""

    output: int
    wait_ns: int

    def __post_init__(self) -> None:
        keep_whole(self, MOST_TOKENS, output=1)
        keep_whole(self, MOST_NS, wait_ns=1)


@dataclass(frozen=True)
class Request:
    """One request: its arrival, tokens in, the outputs it will give and the most that it declares (by default those).

    The first `cached_prefix` tokens of the prompt stand in KV already; at least the last one is always computed. In a
    pool they are looked for instead, by `ids`: those of the prompt and perhaps of outputs; where none are given a
    request has tokens that no other has. At `cancel_ns` its user goes away. In `tool_waits` it calls tools, each after
    a later output and none after the last; what a tool answers is taken to have no tokens. Raises InputError for what
    makes no sense, such as more outputs than declared.
    """

    arrival_ns: int
    prompt: int
    output: int
    max_output: int | None = None
    cached_prefix: int = 0
    name: str = ""
    ids: Tokens | None = field(default=None, repr=False, hash=False)
    cancel_ns: int | None = None
    tool_waits: tuple[ToolWait, ...] = ()

    def __post_init__(self) -> None:
        keep_whole(self, MOST_NS, arrival_ns=0)
        keep_whole(self, MOST_TOKENS, prompt=1, output=1)
        if self.max_output is not None:
            keep_whole(self, MOST_TOKENS, max_output=1)
            keep_whole(self, self.max_output, output=1)
        keep_whole(self, self.prompt - 1, cached_prefix=0)
        if self.cancel_ns is not None:
            keep_whole(self, MOST_NS, cancel_ns=self.arrival_ns + 1)
        if self.ids is not None:
            ids = token_ids(self.ids, at_most=self.prompt + self.output)
            if len(ids) < self.prompt or max(ids) >= FIRST_OWN_ID:
                allowed = f"at least {self.prompt}, as many as the prompt has tokens, each below 2^62"
                raise InputError("ids", self.ids, allowed)
            object.__setattr__(self, "ids", ids)
        if self.tool_waits != ():
            object.__setattr__(self, "tool_waits", _in_order_of_output(self.tool_waits, self.output))

    @property
    def declared_output(self) -> int:
        """The most outputs it may give: what admission has to reckon with."""
        return self.output if self.max_output is None else self.max_output

    @property
    def most_tokens(self) -> int:
        """The most tokens in KV that it may come to: its last output is never computed."""
        return self.prompt + self.declared_output - 1


def _in_order_of_output(waits: object, outputs: int) -> tuple[ToolWait, ...]:
    """The waits, if each comes after a later output than the one before it, and before the last output."""
    found = tuple(waits) if isinstance(waits, Iterable) else (None,)
    after = [wait.output for wait in found if isinstance(wait, ToolWait)]
    if len(after) < len(found) or any(later <= earlier for earlier, later in pairwise([0, *after, outputs])):
        allowed = f"ToolWaits, each after a later output than the one before it, all before the last output, {outputs}"
        raise InputError("tool_waits", waits, allowed)
    return found


class Entry(StrEnum):
    """When a waiting request may take a free row."""

    AT_BORDER = "at the next border of a step"
    WHEN_ALL_ENDED = "when all running ones have ended"


class Order(StrEnum):
    """Who takes from a step's tokens first."""

    DECODES_FIRST = "decodes first"
    BY_ADMISSION = "in order of admission"
    PROMPTS_FIRST = "prompts first"


@dataclass(frozen=True)
class Policy:
    """The limits under which a step hands out tokens; waiting requests enter first come, first served.

    At most `max_running` requests have a row. `chunk` limits the tokens of one request in a step, `token_budget` those
    of all; None means no limit. Where all must have ended, a group waits up to `wait_to_fill_ns` from the arrival of
    its first for the rows to be filled. Raises InputError for a budget that the running requests alone could exceed.
    Source: section 8.2.2.
    """

    max_running: int
    entry: Entry = Entry.AT_BORDER
    wait_to_fill_ns: int = 0
    chunk: int | None = None
    token_budget: int | None = None
    order: Order = Order.DECODES_FIRST

    def __post_init__(self) -> None:
        keep_whole(self, MOST_TOKENS, max_running=1)
        keep_whole(self, MOST_NS, wait_to_fill_ns=0)
        one_of("entry", self.entry, Entry)
        one_of("order", self.order, Order)
        if self.entry != Entry.WHEN_ALL_ENDED and self.wait_to_fill_ns:
            raise InputError("wait_to_fill_ns", self.wait_to_fill_ns, "0 where requests enter at each border")
        if self.chunk is not None:
            keep_whole(self, MOST_TOKENS, chunk=1)
        if self.token_budget is None:
            return
        keep_whole(self, MOST_TOKENS, token_budget=0)
        if self.token_budget < self.max_running:
            allowed = f"at least max_running, {self.max_running}: each running request needs a token"
            raise InputError("token_budget", self.token_budget, allowed)

    @property
    def most_per_request(self) -> int:
        """Tokens that one request can get in a step."""
        return self.chunk or UNLIMITED

    @property
    def most_per_step(self) -> int:
        """Tokens that a step can hold."""
        return self.token_budget or UNLIMITED


def fixed_batch(max_running: int, wait_to_fill_ns: int = 0) -> Policy:
    """Whole groups: nobody enters until all of a group have ended; whole prompts in one step. Figure 8-5."""
    return Policy(max_running, Entry.WHEN_ALL_ENDED, wait_to_fill_ns)


def continuous(max_running: int) -> Policy:
    """A free row is filled at the next border; whole prompts in one step, beside the decodes. Figure 8-6."""
    return Policy(max_running)


def chunked(max_running: int, chunk: int, token_budget: int, order: Order = Order.DECODES_FIRST) -> Policy:
    """Continuous, but prompts are computed in chunks under a token budget. Figure 8-7."""
    chunk, token_budget = whole("chunk", chunk, at_least=1), whole("token_budget", token_budget)
    return Policy(max_running, chunk=chunk, token_budget=token_budget, order=order)


def in_order_of_arrival(requests: Iterable[Request], policy: Policy) -> tuple[Request, ...]:
    """The requests, if there are any and each arrives no earlier than the one before it, under a policy that is one.

    Raises InputError otherwise.
    """
    if not isinstance(policy, Policy):
        raise InputError("policy", policy, "a Policy, such as fixed_batch(2), continuous(2) or chunked(2, 2048, 4096)")
    try:
        load = tuple(requests)
    except TypeError:
        load = ()
    if not load or not all(isinstance(request, Request) for request in load):
        raise InputError("requests", requests, "at least one Request, in a sequence")
    for earlier, later in pairwise(load):
        if later.arrival_ns < earlier.arrival_ns:
            raise InputError("arrival_ns", later.arrival_ns, f"none before its predecessor, {earlier.arrival_ns}")
    return load


def servable(
    requests: Iterable[Request], policy: Policy, pool: PoolSetup | None
) -> tuple[tuple[Request, ...], tuple[Request, ...]]:
    """The requests in order of arrival: those that are let in, and those refused, which the whole pool could not hold.

    Raises InputError as `in_order_of_arrival`, and with a pool for a cached prefix (it is looked for in the pool) and
    if nobody is let in.
    """
    load = in_order_of_arrival(requests, policy)
    if pool is None:
        return load, ()
    if not isinstance(pool, PoolSetup):
        raise InputError("pool", pool, "a PoolSetup")
    if first := next((request for request in load if request.cached_prefix), None):
        raise InputError("cached_prefix", first.cached_prefix, "0 with a pool, in which prefixes are looked for")
    served = tuple(request for request in load if pool.can_ever_hold(request))
    if not served:
        raise InputError("blocks", pool.blocks, "blocks enough for at least one request at its largest")
    return served, tuple(request for request in load if not pool.can_ever_hold(request))


@dataclass(eq=False)
class _Running:
    """One request on its way: its place among all, the longest draft, tokens known and tokens computed.

    `entry` says as which of all it last entered, `calls` how many tools it has called, `back_ns` when the last of them
    returned or will return.
    """

    place: int
    request: Request
    longest_draft: int
    known: int = field(init=False)
    computed: int = field(init=False)
    decodes: bool = False  # since it last entered it has given an output
    entry: int = 0
    calls: int = 0
    back_ns: int = 0

    def __post_init__(self) -> None:
        self.known, self.computed = self.request.prompt, self.request.cached_prefix

    @property
    def outputs(self) -> int:
        return self.known - self.request.prompt

    @property
    def draft_tokens(self) -> int:
        """Tokens of a draft that it could use in decode: up to the last output that it declares or the next tool."""
        waits = self.request.tool_waits
        last = waits[self.calls].output if self.calls < len(waits) else self.request.declared_output
        return min(self.longest_draft, last - self.outputs - 1)

    @property
    def calls_tool(self) -> bool:
        """Whether it has just given an output after which it waits for a tool."""
        waits = self.request.tool_waits
        return self.calls < len(waits) and waits[self.calls].output == self.outputs

    def is_cancelled(self, now: int) -> bool:
        return self.request.cancel_ns is not None and self.request.cancel_ns <= now


def walk(
    requests: Sequence[Request],
    policy: Policy,
    step_time: StepTime = FIT,
    pool: PoolSetup | None = None,
    speculation: SpeculationSetup = PLAIN,
) -> Schedule:
    """The schedule of requests in order of arrival, step by step: the plain loop that every faster one must equal.

    The scheduler acts at borders of steps only; what arrives during a step waits for its end, and so does a request
    whose user goes away meanwhile: only then are its blocks given back. A request ends with the step that yields its
    last output, which is never computed itself. Without a pool there is room for all.

    A draft takes tokens of the step and, until it is verified, blocks of the pool like any other token, so it may cause
    a preemption. It never reaches beyond the last output that was declared; what is accepted beyond the last one that
    is given is thrown away. All drafts of a step are made together, before it.

    A tool is called when the step that gives the output has ended. The request gives up its row, which another may
    take, and keeps its blocks, so that no gate is in its way when it takes a row again: at the first border after the
    tool has returned at which one is free, ahead of all who queue, and in its old place in the order of admission. Only
    those with a row are preempted, if need be the last of them. No draft runs past the output that calls a tool. While
    nobody can have a row, time goes on to the next arrival, return of a tool or user who goes away.

    Raises InputError for no requests, arrivals out of order, times beyond 2^63 ns, and an acceptance of more tokens
    than are drafted, or of fewer than none. Source: sections 8.2.2, 8.3.2, 8.5.1 and 8.6.1.
    """
    load, refused = servable(requests, policy, pool)
    if not isinstance(speculation, SpeculationSetup):
        raise InputError("speculation", speculation, "a SpeculationSetup")
    kv = Residents(load, pool) if pool else None
    waiting = deque(_Running(place, request, speculation.draft_tokens) for place, request in enumerate(load))
    running, now, entered = list[_Running](), 0, 0
    with_tool = list[_Running]()  # those who hold KV and have no row: the tool is at work, or no row was free since
    absences = dict[int, list[Absence]]()
    rounds = dict[int, list[Round]]()
    stretches, skipped = list[Stretch](), dict[int, list[int]]()
    cancellations, preemptions = list[Departure](), list[Departure]()
    started, first_output, last_output = [-1] * len(load), [-1] * len(load), [-1] * len(load)
    while waiting or running or with_tool:
        if not running and not with_tool:
            group = [one.request.arrival_ns for one in islice(waiting, policy.max_running)]
            now = max(now, next_start(group, policy))
        step = len(stretches)
        if gone := [one for one in (*running, *with_tool, *waiting) if one.is_cancelled(now)]:
            for one in gone:
                holds = one in running or one in with_tool
                cancellations.append(Departure(step, one.place, one.outputs, one.computed if holds else 0, now))
                if kv and holds:
                    kv.leave(one.place)
                if one in with_tool:
                    absences[one.place][-1] = absences[one.place][-1]._replace(beyond=step)
            running = [one for one in running if one not in gone]
            with_tool = [one for one in with_tool if one not in gone]
            waiting = deque(one for one in waiting if one not in gone)
            continue
        back = [one for one in islice(with_tool, policy.max_running - len(running)) if one.back_ns <= now]
        for one in back:
            insort(running, one, key=_by_entry)
            absences[one.place][-1] = absences[one.place][-1]._replace(beyond=step)
        with_tool = with_tool[len(back) :]
        victims = _make_room(running, policy, kv)
        for victim in victims:
            preemptions.append(Departure(step, victim.place, victim.outputs, victim.computed, now))
            waiting.appendleft(victim)
            victim.decodes = False
        newcomers = [] if victims else _enter(waiting, running, with_tool, policy, now, kv)
        given = _hand_out(running, newcomers, policy)
        if not given:
            assert with_tool and not running, "those who wait for a tool hold what the next one needs"
            now = max(now, _next_event(waiting, with_tool, now))
            continue
        for one in newcomers:
            assert one is waiting.popleft()
            started[one.place] = step if started[one.place] < 0 else started[one.place]
            one.entry, entered = entered, entered + 1
        drafts = {one: new - 1 for one, new in given.items() if new > 1 and one.decodes}
        if kv:
            for one in running:
                kv.grow(one.place, one.computed + given.get(one, 0), drafts.get(one, 0))
            kv.note_peak()
        running += newcomers
        drafting = speculation.drafting_ns([(given[one], one.computed) for one in drafts])
        plan = step_plan(*((new, one.computed) for one, new in given.items()))
        duration = drafting + step_time(verifying(plan, sum(drafts.values())))
        prompts = tuple(Part(one.place, new, one.computed) for one, new in given.items() if not one.decodes)
        stretches.append(Stretch(1, now, duration, 0, len(given) - len(prompts), prompts))
        now += duration
        for one in (*running, *with_tool, *waiting):
            if one.outputs and one.computed + given.get(one, 0) < one.known:
                skipped.setdefault(one.place, []).append(step)
        for one, new in given.items():
            if one.computed + new < one.known:
                one.computed += new
                continue
            first_output[one.place] = first_output[one.place] if one.outputs else step
            last_output[one.place] = step
            outputs = 1
            if one in drafts:
                of_one = rounds.setdefault(one.place, [])
                accepted = speculation.acceptance.accepted(one.place, len(of_one))
                right = min(whole("accepted", accepted, at_most=speculation.draft_tokens), drafts[one])
                outputs = min(right + 1, one.request.output - one.outputs)
                of_one.append(Round(step, drafts[one], outputs))
                if kv:
                    kv.confirm(one.place, one.known + outputs - 1)
            one.known += outputs
            one.computed = one.known - 1
            one.decodes = True
        if kv:
            kv.compute([one.place for one in running if one in given])
        ended = [one for one in running if one.outputs == one.request.output]
        running = [one for one in running if one not in ended]
        for one in ended:
            if kv:
                kv.leave(one.place)
        if calling := [one for one in running if one.calls_tool]:
            for one in calling:
                one.back_ns, one.calls = now + one.request.tool_waits[one.calls].wait_ns, one.calls + 1
                absences.setdefault(one.place, []).append(Absence(step + 1, step + 1, one.back_ns))
            running = [one for one in running if one not in calling]
            with_tool = sorted((*with_tool, *calling), key=_by_return)
    return Schedule(
        load, policy.max_running, step_time, stretches, started, first_output, last_output,
        until_last_output(skipped, last_output), cancellations, preemptions, refused,
        kv.peak_blocks if kv else None, speculation, rounds, absences,
    )  # fmt: skip


def _by_entry(one: _Running) -> int:
    return one.entry


def _by_return(one: _Running) -> int:
    return one.back_ns


def _next_event(waiting: Sequence[_Running], with_tool: Sequence[_Running], now: int) -> int:
    """When the scheduler looks again while nobody has a row: a tool returns, a request arrives, a user goes away."""
    returns = [one.back_ns for one in with_tool]
    arrivals = [one.request.arrival_ns for one in waiting if one.request.arrival_ns > now]
    leaving = [at for one in (*with_tool, *waiting) if (at := one.request.cancel_ns) is not None]
    return min((*returns, *arrivals, *leaving))


def next_start(arrivals: Sequence[int], policy: Policy) -> int:
    """When work begins again after nothing ran, from the arrivals of those that would fill the rows.

    With the first of them, or, where a group waits to be filled, once the rows are full or it has waited long enough.
    """
    waited = arrivals[0] + policy.wait_to_fill_ns
    return min(waited, arrivals[-1]) if len(arrivals) == policy.max_running else waited


def until_last_output(skipped: dict[int, list[int]], last_output: Sequence[int]) -> dict[int, list[int]]:
    """The skipped steps without those after which a request gave no output any more, as its user went away."""
    kept = {place: [step for step in steps if step < last_output[place]] for place, steps in skipped.items()}
    return {place: steps for place, steps in kept.items() if steps}


def _make_room(running: list[_Running], policy: Policy, kv: Residents | None) -> list[_Running]:
    """Take the KV of the last admitted until there are blocks for the next tokens of the others; gives the victims."""
    victims = []
    while kv and _blocks_needed(running, policy, kv) > kv.free:
        victims.append(running.pop())
        kv.leave(victims[-1].place)
    return victims


def _blocks_needed(running: Sequence[_Running], policy: Policy, kv: Residents) -> int:
    """Blocks that those who run take in this step if nobody enters, one in decode even where it gets no token."""
    wanted = {one: 1 for one in running if one.decodes} | _hand_out(running, [], policy)
    return sum(kv.blocks_to_grow(one.place, one.computed + new) for one, new in wanted.items())


def _enter(
    waiting: Sequence[_Running],
    running: Sequence[_Running],
    with_tool: Sequence[_Running],
    policy: Policy,
    now: int,
    kv: Residents | None,
) -> list[_Running]:
    """The waiting requests that enter now, first come, first served: a row, a token and the gate are open to them."""
    if with_tool and policy.entry == Entry.WHEN_ALL_ENDED:
        return []
    newcomers, candidates = list[_Running](), _may_enter(waiting, running, policy, now)
    needed = _blocks_needed(running, policy, kv) if kv and candidates else 0
    for one in candidates:
        one.computed = kv.found_tokens(one.place, one.known) if kv else one.request.cached_prefix
        new = _hand_out(running, [*newcomers, one], policy).get(one, 0)
        if not new:
            break
        if kv:
            if not kv.lets_in(one.place, one.known, one.computed + new, needed):
                break
            kv.enter(one.place, one.computed + new)
        newcomers.append(one)
    return newcomers


def _may_enter(waiting: Sequence[_Running], running: Sequence[_Running], policy: Policy, now: int) -> list[_Running]:
    """The waiting requests that have arrived and for which there is a row, first come, first served."""
    if running and policy.entry == Entry.WHEN_ALL_ENDED:
        return []
    rows = policy.max_running - len(running)
    return [one for one in islice(waiting, rows) if one.request.arrival_ns <= now]


def _hand_out(running: Sequence[_Running], newcomers: Sequence[_Running], policy: Policy) -> dict[_Running, int]:
    """The new tokens of each request that gets any in this step."""
    decodes, prompts = [one for one in running if one.decodes], [one for one in running if not one.decodes]
    turn = {
        Order.DECODES_FIRST: [*decodes, *prompts, *newcomers],
        Order.BY_ADMISSION: [*running, *newcomers],
        Order.PROMPTS_FIRST: [*prompts, *newcomers, *decodes],
    }
    left, given, still_to_come = policy.most_per_step, {}, len(decodes)
    for one in turn[policy.order]:
        new = min(one.known - one.computed, policy.most_per_request, left)
        if one.decodes and one.longest_draft:
            still_to_come -= 1  # each of those keeps a token
            new += max(0, min(one.draft_tokens, policy.most_per_request - new, left - new - still_to_come))
        if new:
            given[one] = new
            left -= new
    return given
