"""The scheduler without walking every step: as long as nothing changes, any number of decode steps is one closed form.

Nothing changes while no prompt is computed, nobody ends or goes away, nobody may enter, and a pool has blocks for all.
Then each request's context grows by one token a step, step times form an arithmetic series, and the border after an
arrival follows from a square root of whole numbers. `simulate` equals `lib.scheduling.walk` to the nanosecond.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush
from itertools import islice
from math import isqrt

from lib.residency import PoolSetup, Preemption, Residents
from lib.schedule import Part, Schedule, Stretch
from lib.scheduling import Entry, Order, Policy, Request, next_start, servable, until_last_output
from lib.step_time import FIT, StepPlan, StepTime

NEVER = 2**200  # later than any step ends
# A request in decode is one whole number, its last step above and its place below, so that the heap is quick.
_BITS = 40
_PLACE = (1 << _BITS) - 1
# The makers of named tuples take three times as long, and the loop makes little else.
_named = tuple.__new__


def simulate(
    requests: Sequence[Request], policy: Policy, step_time: StepTime = FIT, pool: PoolSetup | None = None
) -> Schedule:
    """The schedule of requests in order of arrival, as `lib.scheduling.walk` gives it, only sooner.

    Raises InputError for no requests, arrivals out of order, and times beyond 2^63 ns. Source: sections 8.2.2, 8.3.2.
    """
    load, refused = servable(requests, policy, pool)
    arrivals, queue = [request.arrival_ns for request in load], deque(range(len(load)))
    leaving = deque(sorted((at, place) for place, one in enumerate(load) if (at := one.cancel_ns) is not None))
    rows, chunk, budget = policy.max_running, policy.most_per_request, policy.most_per_step
    at_border, prompts_first = policy.entry == Entry.AT_BORDER, policy.order == Order.PROMPTS_FIRST
    started, first_output, last_output = [-1] * len(load), [-1] * len(load), [-1] * len(load)
    outputs, entries = [0] * len(load), [0] * len(load)  # those given when it last left decode; who entered when
    kv = _Growing(load, pool, entries) if pool else None
    stretches: list[Stretch] = []
    skipped: dict[int, list[int]] = {}
    silent_since: dict[int, int] = {}  # of each that was preempted: from which step on it gives no output
    cancelled: dict[int, int] = {}
    preemptions: list[Preemption] = []

    now = step = entered = 0
    prompts: list[Part] = []  # of each, what is left to compute behind what is in KV
    decoding: list[int] = []  # a heap: who ends first
    pairs = 0  # of all in decode, in the next step
    kv_tokens = peak_kv_tokens = 0

    def leave_decode(place: int) -> None:
        """Take one out that has not ended, and keep what it has given."""
        nonlocal pairs
        key = next(each for each in decoding if each & _PLACE == place)
        decoding.remove(key)
        heapify(decoding)
        outputs[place] = load[place].output - ((key >> _BITS) - step + 1)
        pairs -= load[place].prompt + outputs[place]
        rests = set(skipped.get(place, ()))
        last_output[place] = next(at for at in range(step - 1, -1, -1) if at not in rests)

    def let_go(place: int) -> int:
        """Take the row and the KV of a request; gives how many tokens it had in KV."""
        nonlocal prompts, kv_tokens
        part = next((part for part in prompts if part.place == place), None)
        if part:
            prompts = [other for other in prompts if other is not part]
        else:
            leave_decode(place)
        lost = part.context if part else load[place].prompt + outputs[place] - 1
        kv_tokens -= lost
        if kv:
            kv.leave_at(place, step)
        return lost

    while prompts or decoding or queue:
        was_empty = not prompts and not decoding
        if was_empty:
            now = max(now, next_start([arrivals[place] for place in islice(queue, rows)], policy))
        if leaving and leaving[0][0] <= now:
            gone = []
            while leaving and leaving[0][0] <= now:
                gone.append(leaving.popleft()[1])
            waiting, with_row = set(queue), {part.place for part in prompts} | {each & _PLACE for each in decoding}
            for place in sorted(with_row.intersection(gone), key=entries.__getitem__):
                let_go(place)
            queue = deque(place for place in queue if place not in gone)
            if still := [place for place in gone if place in waiting or place in with_row]:
                cancelled |= dict.fromkeys(still, step)
                continue

        due = kv.due(step) if kv else []
        decodes = len(decoding)
        given, left = _share_out(prompts, chunk, budget if prompts_first else budget - decodes)
        needed, is_full = 0, False
        if kv:
            needed = kv.needed(step, due, given)
            while needed > kv.pool.free:
                victim = max(
                    [part.place for part in prompts] + [each & _PLACE for each in decoding], key=entries.__getitem__
                )
                lost = let_go(victim)
                preemptions.append(Preemption(step, victim, outputs[victim], lost))
                if outputs[victim]:
                    silent_since.setdefault(victim, step)
                queue.appendleft(victim)
                due = [place for place in due if place != victim]
                decodes = len(decoding)
                given, left = _share_out(prompts, chunk, budget if prompts_first else budget - decodes)
                needed, is_full = kv.needed(step, due, given), True

        free_rows = rows - len(prompts) - decodes if at_border or was_empty else 0
        olds, is_held_up = len(given), is_full
        while free_rows and left and not is_held_up and queue and arrivals[queue[0]] <= now:
            place = queue[0]
            known = load[place].prompt + outputs[place]
            cached = kv.found_tokens(place, known) if kv else load[place].cached_prefix
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
            entries[place], entered = entered, entered + 1
            free_rows, left, kv_tokens = free_rows - 1, left - new, kv_tokens + cached

        if not given:
            next_end = decoding[0] >> _BITS
            most = 1 if is_full else next_end - step + 1
            steps, duration, growth = step_time.decode_stretch(decodes, pairs, most)
            next_change = leaving[0][0] if leaving else NEVER
            if free_rows and queue and not is_held_up:
                next_change = min(next_change, arrivals[queue[0]])
            if steps > 1 and next_change < NEVER:
                steps = min(steps, _steps_until(next_change - now, duration, growth))
            if kv:
                kv.step(step, due)
                steps = kv.steps_with_room(step, steps, is_held_up)
            stretches.append(_named(Stretch, (steps, now, duration, growth, decodes, ())))
            now += steps * duration + growth * (steps * (steps - 1) // 2)
            step, pairs, kv_tokens = step + steps, pairs + steps * decodes, kv_tokens + steps * decodes
            ready: list[int] = []
        else:
            # In order of admission comes to the same as decodes first: nobody ever takes more tokens than in an
            # earlier step, so who gets any gets some in every step; a prompt is cut only where no decode comes after.
            computing = min(decodes, left) if prompts_first else decodes
            resting = _resting(decoding, decodes - computing, entries) if computing < decodes else []
            resting_pairs = _rest(decoding, resting, step, load, skipped) if resting else 0
            if kv:
                kv.rest(resting, step)
                kv.step(step, [place for place in due if place not in resting], given, olds)
            duration = step_time(_plan(computing, pairs - resting_pairs, given))
            stretches.append(_named(Stretch, (1, now, duration, 0, computing, tuple(given))))
            now, step, pairs = now + duration, step + 1, pairs + computing
            kv_tokens += computing
            remaining, ready = [], []
            for (place, to_compute, context), (_, new, _) in zip(prompts, given, strict=False):
                kv_tokens += new
                if new == to_compute:
                    ready.append(place)
                else:
                    remaining.append(_named(Part, (place, to_compute - new, context + new)))
            prompts = remaining + prompts[len(given) :]
        if kv:
            kv.note_peak()
        if kv_tokens > peak_kv_tokens:
            peak_kv_tokens = kv_tokens

        ended = []
        while decoding and decoding[0] >> _BITS < step:
            place = heappop(decoding) & _PLACE
            pairs -= load[place].prompt + load[place].output
            ended.append(place)
        for place in ready:
            if not outputs[place]:
                first_output[place] = step - 1
            if place in silent_since:
                skipped.setdefault(place, []).extend(range(silent_since.pop(place), step - 1))
            outputs[place] += 1
            last_output[place] = step - 1
            to_come, known = load[place].output - outputs[place], load[place].prompt + outputs[place]
            if to_come:
                heappush(decoding, (step + to_come - 1) << _BITS | place)
                pairs += known
                if kv:
                    kv.decode_from(place, step, known)
            else:
                ended.append(place)
        for place in ended:
            last_output[place] = step - 1
            kv_tokens -= load[place].prompt + load[place].output - 1
        if kv and ended:
            for place in sorted(ended, key=entries.__getitem__):
                kv.leave_at(place, step)
    return Schedule(
        load, rows, step_time, stretches, started, first_output, last_output,
        until_last_output(skipped, last_output), peak_kv_tokens, cancelled, refused, preemptions,
        kv.peak_blocks if kv else None,
    )  # fmt: skip


class _Growing(Residents):
    """Residents of which one in decode is looked after only in the steps in which it needs a further block.

    Where outputs are given with a request, others may find them, so there each is looked after in every step.
    """

    def __init__(self, load: Sequence[Request], setup: PoolSetup, entries: Sequence[int]) -> None:
        super().__init__(load, setup)
        self._entries = entries
        self._due: list[int] = []  # a heap like that of the requests in decode: the step, the place
        self._next: dict[int, int] = {}  # of each in decode: the step in which it next needs a block
        self._ahead: dict[int, int] = {}  # how many more tokens it has in KV after a step than that step's number
        self._is_foretold = any(len(request.ids) > request.prompt for request in load if request.ids is not None)

    def decode_from(self, place: int, step: int, length: int) -> None:
        """From this step on, which brings its KV to this length, a request computes one token in each."""
        self._ahead[place] = length - step
        self._look_ahead(place, step)

    def due(self, step: int) -> list[int]:
        """Those in decode to be looked after in this step; what they have computed before it is up to date."""
        found = []
        while self._due and self._due[0] >> _BITS <= step:
            place = heappop(self._due) & _PLACE
            if self._next.get(place) == step and place not in found:
                self._catch_up(place, step)
                found.append(place)
        return found

    def needed(self, step: int, due: Sequence[int], given: Iterable[Part]) -> int:
        """Blocks that the requests in decode and these parts of prompts take."""
        in_decode = sum(self.blocks_to_grow(place, self._ahead[place] + step) for place in due)
        return in_decode + sum(self.blocks_to_grow(place, context + new) for place, new, context in given)

    def step(self, step: int, due: Sequence[int], parts: Sequence[Part] = (), olds: int = 0) -> None:
        """Compute a token of those in decode and parts of prompts, of which the first `olds` had a row before."""
        lengths = {place: self._ahead[place] + step for place in due}
        lengths |= {place: context + new for place, new, context in parts[:olds]}
        for place in sorted(lengths, key=self._entries.__getitem__):
            self.grow(place, lengths[place])
        for place in due:
            self._look_ahead(place, step + 1)
        self.compute(sorted((*due, *(part.place for part in parts)), key=self._entries.__getitem__))

    def rest(self, places: Iterable[int], step: int) -> None:
        """These compute nothing in this step."""
        for place in places:
            self._ahead[place] -= 1
            self._look_ahead(place, step + 1)

    def steps_with_room(self, step: int, most: int, is_held_up: bool) -> int:
        """Of so many steps those for which there are blocks; they are taken.

        While somebody waits who could find what others' outputs leave behind, one only.
        """
        while self._due and (at := self._due[0] >> _BITS) < step + most:
            places = self.due(at)
            if self.needed(at, places, ()) > self.pool.free or (places and is_held_up and self._is_foretold):
                for place in places:
                    self._look_ahead(place, at)
                return at - step
            self.step(at, places)
        return most

    def leave_at(self, place: int, step: int) -> None:
        """Give back before this step all that a request holds."""
        if self._ahead.get(place) is not None:
            self._catch_up(place, step)
            del self._ahead[place], self._next[place]
        self.leave(place)

    def _catch_up(self, place: int, step: int) -> None:
        self.grow(place, self._ahead[place] + step - 1)
        self.compute([place])

    def _look_ahead(self, place: int, step: int) -> None:
        wait = 0 if self._is_foretold else -(self._ahead[place] + step - 1) % self.setup.block_tokens
        self._next[place] = at = step + wait
        heappush(self._due, at << _BITS | place)


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
        return -(-wait_ns // duration_ns)
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


def _resting(decoding: Sequence[int], count: int, entries: Sequence[int]) -> list[int]:
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
