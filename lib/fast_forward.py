"""The scheduler without walking every step: as long as nothing changes, any number of decode steps is one closed form.

Nothing changes while no prompt is computed, nobody ends and nobody may enter. Then each request's context grows by one
token a step, step times form an arithmetic series, and the border after an arrival follows from a square root of whole
numbers. `simulate` equals `lib.scheduling.walk` to the nanosecond.
"""

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from math import isqrt

from lib.schedule import Part, Schedule, Stretch
from lib.scheduling import Entry, Order, Policy, Request, in_order_of_arrival, next_start
from lib.step_time import FIT, StepPlan, StepTime

NEVER = 2**200  # later than any step ends
# A request in decode is one whole number, its last step above and its place below, so that the heap is quick.
_BITS = 40
_PLACE = 2**_BITS - 1
# The makers of named tuples take three times as long, and the loop makes little else.
_named = tuple.__new__


def simulate(requests: Sequence[Request], policy: Policy, step_time: StepTime = FIT) -> Schedule:
    """The schedule of requests in order of arrival, as `lib.scheduling.walk` gives it, only sooner.

    Raises InputError for no requests, arrivals out of order, and times beyond 2^63 ns. Source: section 8.2.2.
    """
    load = in_order_of_arrival(requests, policy)
    arrivals = [request.arrival_ns for request in load] + [NEVER]
    rows, chunk, budget = policy.max_running, policy.most_per_request, policy.most_per_step
    at_border, prompts_first = policy.entry == Entry.AT_BORDER, policy.order == Order.PROMPTS_FIRST
    started, first_output, last_output = [0] * len(load), [0] * len(load), [0] * len(load)
    stretches: list[Stretch] = []
    skipped: dict[int, list[int]] = {}

    now = step = entered = 0
    prompts: list[Part] = []  # of each, what is left to compute behind what is in KV
    decoding: list[int] = []  # a heap: who ends first
    pairs = 0  # of all in decode, in the next step
    while prompts or decoding or entered < len(load):
        free_rows = rows - len(prompts) - len(decoding)
        if free_rows == rows:
            now = max(now, next_start(arrivals[entered : min(entered + rows, len(load))], policy))
        elif not at_border:
            free_rows = 0
        upcoming = entered
        while free_rows and arrivals[upcoming] <= now:
            request = load[upcoming]
            to_compute = request.prompt - request.cached_prefix
            prompts.append(_named(Part, (upcoming, to_compute, request.cached_prefix)))
            upcoming, free_rows = upcoming + 1, free_rows - 1

        decodes = len(decoding)
        if not prompts:
            next_end = decoding[0] >> _BITS
            steps, duration, growth = step_time.decode_stretch(decodes, pairs, next_end - step + 1)
            if free_rows and steps > 1:
                steps = min(steps, _steps_until(arrivals[upcoming] - now, duration, growth))
            stretches.append(_named(Stretch, (steps, now, duration, growth, decodes, ())))
            now += steps * duration + growth * (steps * (steps - 1) // 2)
            step, pairs = step + steps, pairs + steps * decodes
            if next_end < step:
                pairs -= _end(decoding, step, load, last_output)
            continue

        # In order of admission comes to the same as decodes first: nobody ever takes more tokens than in an earlier
        # step, so who gets any gets some in every step, and a prompt is only cut where nobody in decode comes after it.
        left = budget if prompts_first else budget - decodes
        given, remaining, ready = [], [], []
        for part in prompts:
            place, to_compute, context = part
            new = min(to_compute, chunk, left)
            if new:
                given.append(_named(Part, (place, new, context)))
                left -= new
                if place == entered:
                    started[place], entered = step, entered + 1
            if new == to_compute:
                ready.append(place)
            elif place < entered:
                remaining.append(_named(Part, (place, to_compute - new, context + new)))
        prompts = remaining
        computing = min(decodes, left) if prompts_first else decodes
        resting_pairs = _rest(decoding, decodes - computing, step, load, skipped) if computing < decodes else 0
        duration = step_time(_plan(computing, pairs - resting_pairs, given))
        stretches.append(_named(Stretch, (1, now, duration, 0, computing, tuple(given))))
        now, step, pairs = now + duration, step + 1, pairs + computing
        if decodes and decoding[0] >> _BITS < step:
            pairs -= _end(decoding, step, load, last_output)
        for place in ready:
            first_output[place] = last_output[place] = step - 1
            outputs = load[place].output
            if outputs > 1:
                heappush(decoding, (step + outputs - 2) << _BITS | place)
                pairs += load[place].prompt + 1
    return Schedule(load, rows, step_time, stretches, started, first_output, last_output, skipped)


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


def _end(decoding: list[int], step: int, load: Sequence[Request], last_output: list[int]) -> int:
    """Take out those whose last step is over; gives the pairs that they would have had in the next."""
    pairs = 0
    while decoding and decoding[0] >> _BITS < step:
        place = heappop(decoding) & _PLACE
        last_output[place] = step - 1
        pairs += load[place].prompt + load[place].output
    return pairs


def _rest(decoding: list[int], resting: int, step: int, load: Sequence[Request], skipped: dict[int, list[int]]) -> int:
    """Let so many of the requests in decode, the last to have entered, skip a step; gives the pairs left out."""
    decoding.sort(key=lambda each: each & _PLACE)
    pairs = 0
    for at in range(len(decoding) - resting, len(decoding)):
        place, outputs_to_come = decoding[at] & _PLACE, (decoding[at] >> _BITS) - step + 1
        pairs += load[place].prompt + load[place].output - outputs_to_come
        skipped.setdefault(place, []).append(step)
        decoding[at] += 1 << _BITS
    heapify(decoding)
    return pairs
