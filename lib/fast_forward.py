"""The scheduler without walking every step: as long as nothing changes, any number of decode steps is one closed form.

Nothing changes while no prompt is computed, nobody ends or goes away, nobody may enter, and a pool has blocks for all.
Then each request's context grows by one token a step, step times form an arithmetic series, and the border after an
arrival follows from a square root of whole numbers. `simulate` equals `lib.scheduling.walk` to the nanosecond.
"""

from bisect import bisect_left
from collections import OrderedDict, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import islice
from math import isqrt

from lib.paging import Findable
from lib.residency import Departure, Holdings, PoolSetup, Residents
from lib.schedule import Part, Schedule, Stretch
from lib.scheduling import Entry, Order, Policy, Request, next_start, servable, until_last_output, walk
from lib.speculation_setup import PLAIN, SpeculationSetup
from lib.step_time import FIT, StepPlan, StepTime

NEVER = 2**200  # later than any step ends
# A request in decode is one whole number, its last step above and its place below, so that the heap is quick.
_BITS = 40
_PLACE = (1 << _BITS) - 1
# The makers of named tuples take three times as long, and the loop makes little else.
_named = tuple.__new__


def simulate(
    requests: Sequence[Request],
    policy: Policy,
    step_time: StepTime = FIT,
    pool: PoolSetup | None = None,
    speculation: SpeculationSetup = PLAIN,
) -> Schedule:
    """The schedule of requests in order of arrival, as `lib.scheduling.walk` gives it, only sooner.

    With speculation no two steps are alike, so it walks them all, and so it does where a request waits for a tool.
    Raises InputError for no requests, arrivals out of order, and times beyond 2^63 ns. Source: sections 8.2.2, 8.3.2,
    8.5.1 and 8.6.1.
    """
    load, refused = servable(requests, policy, pool)
    if speculation != PLAIN or any(request.tool_waits for request in load):
        return walk(requests, policy, step_time, pool, speculation)
    arrivals, queue = [request.arrival_ns for request in load], deque(range(len(load)))
    leaving = deque(sorted((at, place) for place, one in enumerate(load) if (at := one.cancel_ns) is not None))
    rows, chunk, budget = policy.max_running, policy.most_per_request, policy.most_per_step
    at_border, prompts_first = policy.entry == Entry.AT_BORDER, policy.order == Order.PROMPTS_FIRST
    started, first_output, last_output = [-1] * len(load), [-1] * len(load), [-1] * len(load)
    outputs, entries = [0] * len(load), [0] * len(load)  # those given before it was last in decode; who entered when
    kv = _holdings(load, pool, entries) if pool else None
    stretches: list[Stretch] = []
    skipped: dict[int, list[int]] = {}
    silent_since: dict[int, int] = {}  # of each that was preempted: from which step on it gives no output
    cancellations, preemptions = list[Departure](), list[Departure]()

    now = step = entered = 0
    prompts: list[Part] = []  # of each, what is left to compute behind what is in KV
    decoding: list[int] = []  # a heap: who ends first
    pairs = 0  # of all in decode, in the next step

    while prompts or decoding or queue:
        was_empty = not prompts and not decoding
        if was_empty:
            now = max(now, next_start([arrivals[place] for place in islice(queue, rows)], policy))
        if leaving and leaving[0][0] <= now:
            gone = _due_to_leave(leaving, now)
            with_row = [part.place for part in prompts] + [each & _PLACE for each in decoding]
            before = len(cancellations)
            for place in sorted(gone.intersection(with_row), key=entries.__getitem__):
                departure, left_out = _take_out(
                    place, step, now, prompts, decoding, load, outputs, last_output, skipped
                )
                cancellations.append(departure)
                pairs -= left_out
                if kv:
                    kv.leave_at(place, step)
            for place in [place for place in queue if place in gone]:
                queue.remove(place)
                cancellations.append(Departure(step, place, outputs[place], 0, now))
            if len(cancellations) > before:
                continue

        decodes, due = len(decoding), kv.due(step) if kv else ()
        left = budget if prompts_first else budget - decodes
        given, left = _share_out(prompts, chunk, left) if prompts else ([], left)
        needed, is_held_up = 0, False
        if kv:
            before = len(preemptions)
            while (needed := kv.needed(step, due, given)) > kv.free:
                with_row = [part.place for part in prompts] + [each & _PLACE for each in decoding]
                victim = max(with_row, key=entries.__getitem__)
                departure, left_out = _take_out(
                    victim, step, now, prompts, decoding, load, outputs, last_output, skipped
                )
                preemptions.append(departure)
                pairs -= left_out
                kv.leave_at(victim, step)
                if outputs[victim]:
                    silent_since.setdefault(victim, step)
                queue.appendleft(victim)
                decodes, due = len(decoding), [place for place in due if place != victim]
                given, left = _share_out(prompts, chunk, budget if prompts_first else budget - decodes)
            is_held_up = len(preemptions) > before

        free_rows = rows - len(prompts) - decodes if at_border or was_empty else 0
        most, olds = 1 if is_held_up else NEVER, len(given)
        while free_rows and left and not is_held_up and queue and arrivals[queue[0]] <= now:
            place = queue[0]
            request = load[place]
            known = request.prompt + outputs[place]
            cached = kv.found_tokens(place, known) if kv else request.cached_prefix
            new = min(known - cached, chunk, left)
            if kv:
                if not kv.lets_in(place, known, cached + new, needed):
                    is_held_up = True
                    break
                kv.enter(place, cached + new)
            queue.popleft()
            prompts.append(_named(Part, (place, known - cached, cached)))
            given.append(_named(Part, (place, new, cached)))
            if started[place] < 0:
                started[place] = step
            entries[place] = entered
            entered, free_rows, left = entered + 1, free_rows - 1, left - new

        if not given:
            steps, duration, growth = step_time.decode_stretch(decodes, pairs, (decoding[0] >> _BITS) - step + 1)
            if steps > most:
                steps = most
            if steps > 1:
                if free_rows and queue and not is_held_up:
                    steps = min(steps, _steps_until(arrivals[queue[0]] - now, duration, growth))
                if leaving:
                    steps = min(steps, _steps_until(leaving[0][0] - now, duration, growth))
            if kv:
                kv.step(step, due)
                steps = kv.steps_with_room(step, steps, queue[0] if is_held_up else None)
                kv.note_peak()
            stretches.append(_named(Stretch, (steps, now, duration, growth, decodes, ())))
            now += steps * duration + growth * (steps * (steps - 1) // 2)
            step, pairs = step + steps, pairs + steps * decodes
            if decoding[0] >> _BITS < step:
                pairs -= _end(decoding, step, load, last_output, kv)
            continue

        # In order of admission comes to the same as decodes first: nobody ever takes more tokens than in an earlier
        # step, so who gets any gets some in every step, and a prompt is only cut where nobody in decode comes after it.
        computing = min(decodes, left) if prompts_first else decodes
        resting_pairs = 0
        if computing < decodes:
            resting = _last_entered(decoding, decodes - computing, entries)
            resting_pairs = _rest(decoding, resting, step, load, skipped)
            if kv:
                kv.rest(resting, step)
                due = [place for place in due if place not in resting]
        if kv:
            kv.step(step, due, given, olds)
            kv.note_peak()
        duration = step_time(_plan(computing, pairs - resting_pairs, given))
        stretches.append(_named(Stretch, (1, now, duration, 0, computing, tuple(given))))
        now, step, pairs = now + duration, step + 1, pairs + computing
        remaining, ready = [], []
        for (place, to_compute, context), (_, new, _) in zip(prompts, given, strict=False):
            if new == to_compute:
                ready.append(place)
            else:
                remaining.append(_named(Part, (place, to_compute - new, context + new)))
        remaining += prompts[len(given) :]
        prompts = remaining
        for place in ready:
            if not outputs[place]:
                first_output[place] = step - 1
            elif place in silent_since:
                skipped.setdefault(place, []).extend(range(silent_since.pop(place), step - 1))
            outputs[place] += 1
            if (to_come := load[place].output - outputs[place]) and kv:
                kv.decode_from(place, step, load[place].prompt + outputs[place])
            heappush(decoding, (step + to_come - 1) << _BITS | place)
            pairs += load[place].prompt + outputs[place]
        if decoding and decoding[0] >> _BITS < step:
            pairs -= _end(decoding, step, load, last_output, kv)
    return Schedule(
        load, rows, step_time, stretches, started, first_output, last_output,
        until_last_output(skipped, last_output), cancellations, preemptions, refused,
        kv.peak_blocks if kv else None,
    )  # fmt: skip


class _WithDecodes(Holdings):
    """Holdings that know who is in decode: of those nothing is written down while they grow by a token a step."""

    def __init__(self, load: Sequence[Request], setup: PoolSetup) -> None:
        super().__init__(load, setup)
        self._ahead: dict[int, int] = {}  # of each in decode: its tokens in KV after a step less that step's number
        self._took_idle = False  # whether the last step did

    def needed(self, step: int, due: Sequence[int], given: Iterable[Part]) -> int:
        """Blocks that the requests in decode and these parts of prompts take."""
        in_decode = sum(self.blocks_to_grow(place, self._ahead[place] + step) for place in due)
        return in_decode + sum(self.blocks_to_grow(place, context + new) for place, new, context in given)


class _Growing(_WithDecodes, Residents):
    """Residents of which one in decode is looked after only in the steps in which it needs a further block.

    Where outputs are given with a request, others may find them, so there each is looked after in every step.
    """

    def __init__(self, load: Sequence[Request], setup: PoolSetup, entries: Sequence[int]) -> None:
        super().__init__(load, setup)
        self._entries = entries
        self._due: list[int] = []  # a heap like that of the requests in decode: the step, the place
        self._next: dict[int, int] = {}  # of each in decode: the step in which it next needs a block
        self._is_foretold = any(len(request.ids) > request.prompt for request in load if request.ids is not None)

    def decode_from(self, place: int, step: int, length: int) -> None:
        """From this step on, which brings its KV to this length, a request computes one token in each."""
        self._ahead[place] = length - step
        self._look_ahead(place, step)

    def due(self, step: int) -> list[int]:
        """Those in decode to be looked after in this step."""
        found = []
        while self._due and self._due[0] >> _BITS <= step:
            place = heappop(self._due) & _PLACE
            if self._next.get(place) == step and place not in found:
                found.append(place)
        return found

    def step(self, step: int, due: Sequence[int], parts: Sequence[Part] = (), olds: int = 0) -> None:
        """Compute a token of those in decode and parts of prompts, of which the first `olds` had a row before."""
        idle = self.pool.idle
        lengths = {place: self._ahead[place] + step for place in due}
        lengths |= {place: context + new for place, new, context in parts[:olds]}
        for place in sorted(lengths, key=self._entries.__getitem__):
            self.grow(place, lengths[place])
        self._took_idle = self.pool.idle < idle
        for place in due:
            self._look_ahead(place, step + 1)
        self.compute(sorted((*due, *(part.place for part in parts)), key=self._entries.__getitem__))

    def rest(self, places: Iterable[int], step: int) -> None:
        """These compute nothing in this step."""
        for place in places:
            self._ahead[place] -= 1
            self._look_ahead(place, step + 1)

    def steps_with_room(self, step: int, most: int, waiting: int | None) -> int:
        """Of so many steps, the first of which has its blocks, those for which there are blocks; they are taken.

        While somebody waits, none behind a step that changes what would be found: outputs that are known beforehand
        come, or idle blocks are taken, after which the gate may open for less.
        """
        at = step
        while waiting is None or not (self._is_foretold or self._took_idle):
            if not self._due or (at := self._due[0] >> _BITS) >= step + most:
                return most
            places = self.due(at)
            if self.needed(at, places, ()) > self.free:
                for place in places:
                    self._look_ahead(place, at)
                return at - step
            self.step(at, places)
        return at + 1 - step

    def end(self, places: Iterable[int], step: int) -> None:
        """Give back before this step what these hold, in the order in which they entered."""
        for place in sorted(places, key=self._entries.__getitem__):
            self.leave_at(place, step)

    def leave_at(self, place: int, step: int) -> None:
        """Give back before this step all that a request holds."""
        if place in self._ahead:
            self.grow(place, self._ahead.pop(place) + step - 1)
            self.compute([place])
            del self._next[place]
        self.leave(place)

    def _look_ahead(self, place: int, step: int) -> None:
        wait = 0 if self._is_foretold else -(self._ahead[place] + step - 1) % self.setup.block_tokens
        self._next[place] = at = step + wait
        heappush(self._due, at << _BITS | place)


class _Counted(_WithDecodes):
    """Holdings where nobody can find what another left: then only numbers of blocks matter, and only they are kept.

    A request that comes back finds what is left of its own full blocks; they are taken from its tail on.
    """

    def __init__(self, load: Sequence[Request], setup: PoolSetup) -> None:
        super().__init__(load, setup)
        self._blocks: dict[int, int] = {}  # of each that has a row
        self._lengths: dict[int, int] = {}  # tokens in KV of each that has a row but is not in decode
        self._held, self._empty = 0, setup.blocks
        self._idle: OrderedDict[int, int] = OrderedDict()  # full blocks by who left them, the first to leave first

    @property
    def free(self) -> int:
        return self.setup.blocks - self._held

    @property
    def held(self) -> int:
        return self._held

    @property
    def residents(self) -> Collection[int]:
        return self._blocks

    def found_tokens(self, place: int, known: int) -> int:
        """Of the tokens that a waiting request has so far, those whose KV would be found."""
        return self._idle.get(place, 0) * self.setup.block_tokens

    def blocks_to_admit(self, place: int, tokens: int) -> int:
        return self.setup.blocks_for(tokens)

    def blocks_to_grow(self, place: int, length: int) -> int:
        return self.setup.blocks_for(length) - self._blocks[place]

    def enter(self, place: int, length: int) -> None:
        self._blocks[place] = self._idle.pop(place, 0)
        self._held += self._blocks[place]
        self._grow(place, length)

    def decode_from(self, place: int, step: int, length: int) -> None:
        self._ahead[place] = length - step
        del self._lengths[place]

    def due(self, step: int) -> list[int]:
        """All in decode."""
        return list(self._ahead)

    def step(self, step: int, due: Sequence[int], parts: Sequence[Part] = (), olds: int = 0) -> None:
        self._took_idle = False
        for place in due:
            self._take(place, self._ahead[place] + step)
        for place, new, context in parts[:olds]:
            self._grow(place, context + new)

    def rest(self, places: Iterable[int], step: int) -> None:
        for place in places:
            self._ahead[place] -= 1

    def steps_with_room(self, step: int, most: int, waiting: int | None) -> int:
        if waiting in self._idle:  # no step behind one that may take what it would find
            if self._took_idle:
                return 1
            most = min(most, self._steps_within(self._empty, step, most) + 1)
        steps = self._steps_within(self.free, step, most)
        self.step(step + steps - 1, self.due(step))
        return steps

    def _steps_within(self, blocks: int, step: int, most: int) -> int:
        """Of so many steps, the first of which has its blocks, those for which these blocks are enough."""
        size, room = self.setup.block_tokens, blocks + sum(map(self._blocks.__getitem__, self._ahead))

        def is_too_much(steps: int) -> bool:
            return sum(-(-(ahead + step + steps) // size) for ahead in self._ahead.values()) > room

        return bisect_left(range(1, most), True, key=is_too_much) + 1

    def end(self, places: Iterable[int], step: int) -> None:
        for place in places:
            self.leave_at(place, step)

    def leave_at(self, place: int, step: int) -> None:
        length = self._ahead.pop(place) + step - 1 if place in self._ahead else self._lengths.pop(place)
        blocks = self._blocks.pop(place)
        full = 0 if self.setup.findable == Findable.NEVER else length // self.setup.block_tokens
        if full:
            self._idle[place] = full
        self._empty += blocks - full
        self._held -= blocks

    def _grow(self, place: int, length: int) -> None:
        self._lengths[place] = length
        self._take(place, length)

    def _take(self, place: int, length: int) -> None:
        taken = self.setup.blocks_for(length) - self._blocks[place]
        self._blocks[place] += taken
        self._held += taken
        self._empty -= taken
        while self._empty < 0:
            self._took_idle = True
            oldest, left = self._idle.popitem(last=False)
            self._empty += left
            if self._empty > 0:
                self._idle[oldest], self._empty = self._empty, 0
                self._idle.move_to_end(oldest, last=False)


def _holdings(load: Sequence[Request], setup: PoolSetup, entries: Sequence[int]) -> _Growing | _Counted:
    if setup.findable == Findable.NEVER or all(request.ids is None for request in load):
        return _Counted(load, setup)
    return _Growing(load, setup, entries)


def _due_to_leave(leaving: deque[tuple[int, int]], now: int) -> set[int]:
    """Whose users have gone away by now, ended or not."""
    gone = set()
    while leaving and leaving[0][0] <= now:
        gone.add(leaving.popleft()[1])
    return gone


def _take_out(
    place: int,
    step: int,
    now: int,
    prompts: list[Part],
    decoding: list[int],
    load: Sequence[Request],
    outputs: list[int],
    last_output: list[int],
    skipped: Mapping[int, Sequence[int]],
) -> tuple[Departure, int]:
    """Take the row of a request that has not ended; gives what it leaves with and its pairs in a next decode step."""
    if part := next((part for part in prompts if part.place == place), None):
        prompts.remove(part)
        return Departure(step, place, outputs[place], part.context, now), 0
    key = next(each for each in decoding if each & _PLACE == place)
    decoding.remove(key)
    heapify(decoding)
    outputs[place] = load[place].output - ((key >> _BITS) - step + 1)
    rests = set(skipped.get(place, ()))
    last_output[place] = next(at for at in range(step - 1, -1, -1) if at not in rests)
    known = load[place].prompt + outputs[place]
    return Departure(step, place, outputs[place], known - 1, now), known


def _share_out(prompts: Iterable[Part], chunk: int, left: int) -> tuple[list[Part], int]:
    """The parts of prompts that a step has tokens for, and how many are left."""
    given = []
    for place, to_compute, context in prompts:
        if not left:
            break
        new = min(to_compute, chunk, left)
        given.append(_named(Part, (place, new, context)))
        left -= new
    return given, left


def _steps_until(wait_ns: int, duration_ns: int, growth_ns: int) -> int:
    """The fewest steps, the first of `duration_ns` and each further one `growth_ns` longer, that last `wait_ns`."""
    if not growth_ns:
        return -(-wait_ns // duration_ns) if duration_ns else NEVER
    linear = 2 * duration_ns - growth_ns
    steps = (isqrt(linear * linear + 8 * growth_ns * wait_ns) - linear) // (2 * growth_ns)
    return steps if steps * (linear + growth_ns * steps) >= 2 * wait_ns else steps + 1


def _plan(decodes: int, decode_pairs: int, prompts: Sequence[Part]) -> StepPlan:
    new_tokens, pairs, context_tokens = decodes, decode_pairs, decode_pairs - decodes
    for _, new, context in prompts:
        new_tokens += new
        pairs += new * context + new * (new + 1) // 2
        context_tokens += context
    return _named(StepPlan, (new_tokens, pairs, context_tokens, decodes + len(prompts)))


def _end(
    decoding: list[int], step: int, load: Sequence[Request], last_output: list[int], kv: "_Growing | _Counted | None"
) -> int:
    """Take out those whose last step is over; gives the pairs that they would have had in the next."""
    pairs, ended = 0, []
    while decoding and decoding[0] >> _BITS < step:
        place = heappop(decoding) & _PLACE
        last_output[place] = step - 1
        pairs += load[place].prompt + load[place].output
        ended.append(place)
    if kv:
        kv.end(ended, step)
    return pairs


def _last_entered(decoding: Sequence[int], count: int, entries: Sequence[int]) -> list[int]:
    """So many of the requests in decode, the last to have entered."""
    return sorted((each & _PLACE for each in decoding), key=entries.__getitem__)[len(decoding) - count :]


def _rest(
    decoding: list[int], resting: Sequence[int], step: int, load: Sequence[Request], skipped: dict[int, list[int]]
) -> int:
    """Let requests in decode skip a step; gives the pairs left out."""
    pairs = 0
    for at, each in enumerate(decoding):
        place = each & _PLACE
        if place in resting:
            outputs_to_come = (each >> _BITS) - step + 1
            pairs += load[place].prompt + load[place].output - outputs_to_come
            skipped.setdefault(place, []).append(step)
            decoding[at] += 1 << _BITS
    heapify(decoding)
    return pairs
