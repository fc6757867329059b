"""The step time of a reader's own engine, fitted to a benchmark file, and how well a replay with it meets the file.

A client sees no steps, only when tokens arrive. Tokens that arrive together end one step; whoever stands between its
first and its last token was in decode in it. Which part of a prompt a step computed is not seen: so all steps from the
border before a prompt may begin to its first token make one equation, in which the whole prompt stands. How it was cut
does not matter there: the tokens are the same, and so are the pairs. Source: the three terms of section 8.2.2.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import heappop, heappush
from itertools import combinations
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from lib.attention import causal_pairs
from lib.benchmark_file import Benchmark, MeasuredRequest
from lib.checks import InputError
from lib.fast_forward import simulate
from lib.latency import percentile
from lib.scheduling import UNLIMITED, Policy, Request
from lib.step_time import NS, Fit, StepTime

Floats = np.ndarray[Any, np.dtype[np.float64]]
Integers = np.ndarray[Any, np.dtype[np.int64]]

TERMS = ("fixed_ns", "per_new_token_ns", "per_causal_pair_ns")
# Tokens that arrive within this share of a short interval end the same step; shorter are only such as follow a token
# that came late.
TOGETHER, SHORT_PERCENT = 0.25, 5
# Decode steps whose pairs lie within a factor of 2^(1/4) count as alike.
CLASSES_AN_OCTAVE = 4
# A column of which the others leave less than this share says nothing of its own. Nor does a term that leaves the
# prefill of the file's mean prompt vague by more than that share.
APART, VAGUE = 0.02, 0.25
# Each round weighs an equation by its last residual, but none more than one that is met to a ten-thousandth.
ROUNDS, LEAST_RESIDUAL = 50, 1e-4
# From the median of absolute residuals to the standard deviation of a normal law.
NORMAL = 1.4826
_TINY = 1e-300  # instead of 0, below a line


class Equation(NamedTuple):
    """Steps that took so long together, with all that they computed; `seen` times, of which it is the median."""

    steps: int
    new_tokens: float
    pairs: float
    seconds: float
    seen: int = 1


@dataclass(frozen=True)
class Steps:
    """The equations that a file gives: one for each class of decode steps, one for each stretch with prompts in it.

    `left_out` stretches and steps lie where the file does not tell how many steps there were.
    """

    decodes: tuple[Equation, ...]
    prompts: tuple[Equation, ...]
    left_out: int

    @property
    def equations(self) -> tuple[Equation, ...]:
        return self.decodes + self.prompts


@dataclass(frozen=True)
class Recalibration:
    """A fit, and twice the standard error of each of its terms, in ns; `error` is the median relative residual."""

    fit: Fit
    within_ns: tuple[float, float, float]
    error: float
    steps: Steps

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know before trusting the terms, one sentence each."""
        values = (getattr(self.fit, name) for name in TERMS)
        unsure = (
            f"{name} is {value:,} ns, but the file tells it only to within {within:,.0f} ns."
            for name, value, within in zip(TERMS, values, self.within_ns, strict=True)
            if within > value
        )
        return (
            "Times are a client's: a prompt alone in the engine is timed from its sending, with the way to and fro.",
            "Each prompt is taken as computed in full: with a prefix cache the fit would be too quick.",
            f"Stretches and steps left out, as the file does not tell how many steps passed: {self.steps.left_out:,}.",
            *unsure,
        )


class Compared(NamedTuple):
    """A request's times in seconds as measured and as the replay has them; no interval for a single output."""

    place: int
    measured_ttft_s: float
    predicted_ttft_s: float
    measured_interval_s: float | None
    predicted_interval_s: float | None


@dataclass(frozen=True)
class Replay:
    """A run as measured, and the same requests as an engine of some policy and step time would have served them.

    Failed requests are in neither: they were not served.
    """

    measured: Benchmark
    predicted: Benchmark

    @cached_property
    def compared(self) -> tuple[Compared, ...]:
        """The completed requests, side by side."""
        pairs = zip(self.measured.requests, self.predicted.requests, strict=True)
        return tuple(
            Compared(place, was.ttft_s, is_said.ttft_s, was.mean_interval_s, is_said.mean_interval_s)
            for place, (was, is_said) in enumerate(pairs)
            if not was.failed
        )

    @property
    def ttft_error(self) -> float:
        """The median of |predicted / measured - 1| over the times to first token."""
        return median(abs(one.predicted_ttft_s / one.measured_ttft_s - 1) for one in self.compared)

    @property
    def interval_error(self) -> float | None:
        """The same over the mean intervals; None if no request has any."""
        pairs = ((one.predicted_interval_s, one.measured_interval_s) for one in self.compared)
        errors = [abs(predicted / measured - 1) for predicted, measured in pairs if predicted and measured]
        return median(errors) if errors else None


def fitted(benchmark: Benchmark, policy: Policy) -> Recalibration:
    """The three terms of a step's time from one run, by non-negative least absolute deviations.

    `policy` says how the engine ran: its rows and its limits of tokens. Robust: of alike decode steps the median
    counts, and of all equations the absolute deviation in relation to the time, so a few late tokens do not matter.
    Requests whose chunks hold several tokens count as being there, but their chunks end no step. Raises InputError for
    a file without start times, and for one that cannot tell one term from the others: too few different batches,
    or prompts too much alike. Terms are whole ns.
    """
    found = steps_of(benchmark, policy)
    rows = np.array([(each.steps, each.new_tokens, each.pairs) for each in found.equations], float)
    rows = rows.reshape(-1, len(TERMS))
    columns = rows / np.array([[each.seconds * NS] for each in found.equations]).reshape(-1, 1)
    apart = _apart(columns)
    _refuse_blurred(benchmark, apart >= APART)
    terms = _least_deviations(columns, np.sqrt([each.seen for each in found.equations]))
    error = float(np.median(np.abs(columns @ terms - 1)))
    within = 2 * NORMAL * error / (np.linalg.norm(columns, axis=0) * apart)
    prompt = round(np.mean([one.input_tokens for _, one in _completed(benchmark)]))
    prefill = np.array((1, prompt, causal_pairs(prompt)))
    _refuse_blurred(benchmark, within * prefill <= VAGUE * (terms @ prefill))
    return Recalibration(Fit(*map(round, terms.tolist())), tuple(within.tolist()), error, found)


def _refuse_blurred(benchmark: Benchmark, is_told: np.ndarray[Any, np.dtype[np.bool_]]) -> None:
    if blurred := [name for name, told in zip(TERMS, is_told, strict=True) if not told]:
        allowed = "a file with more different batches and prompts of more different lengths"
        raise InputError(benchmark.file, f"no witness of {' and '.join(blurred)}", allowed)


def replay(benchmark: Benchmark, policy: Policy, step_time: StepTime) -> Replay:
    """What `simulate` makes of the same arrivals and lengths under a policy, say the engine's own, one by one.

    The predicted run lasts until its own last token, or until the last sending where that comes later. Raises
    InputError as `steps_of`, and for what is no step time.
    """
    if not isinstance(step_time, StepTime):
        raise InputError("step_time", step_time, "a StepTime, such as the fit of fitted(benchmark, policy)")
    sent = _completed(benchmark)
    load = [Request(round((one.sent_s or 0.0) * NS), one.input_tokens, one.output_tokens) for _, one in sent]
    schedule = simulate(load, policy, step_time)
    predicted = list(benchmark.requests)
    for at, (place, one) in enumerate(sent):
        intervals = tuple(length / NS for length in schedule.intervals_ns(at))
        predicted[place] = replace(one, ttft_s=int(schedule.ttft_ns[at]) / NS, intervals_s=intervals)
    ends = [(one.sent_s or 0.0) + (one.latency_s or 0.0) for one in predicted]
    return Replay(benchmark, replace(benchmark, duration_s=max(ends), requests=tuple(predicted)))


def steps_of(benchmark: Benchmark, policy: Policy) -> Steps:
    """The equations for the three terms that a run gives, in an engine of this policy.

    Raises InputError for a file without start times or without a completed request, and for what is no policy.
    """
    if not isinstance(policy, Policy):
        raise InputError("policy", policy, "a Policy, such as chunked(8, 2048, 2048): how the engine ran")
    return _Seen([one for _, one in _completed(benchmark)], policy).steps()


def _completed(benchmark: Benchmark) -> list[tuple[int, MeasuredRequest]]:
    """The completed requests with their places in the file, in order of sending."""
    if not isinstance(benchmark, Benchmark):
        raise InputError("benchmark", benchmark, "a Benchmark, as read_benchmark gives it")
    if not benchmark.has_start_times:
        raise InputError("benchmark", f"{benchmark.file} without start_times", "a file of a newer client, with them")
    found = [(place, one) for place, one in enumerate(benchmark.requests) if not one.failed]
    if not found:
        raise InputError("benchmark", f"{benchmark.file} without an answer", "at least one completed request")
    return sorted(found, key=lambda one: one[1].sent_s or 0.0)


class _Seen:
    """What can be told of an engine's steps from the times at which tokens arrived; steps are counted from 0."""

    def __init__(self, requests: Sequence[MeasuredRequest], policy: Policy) -> None:
        self.requests, self.policy = requests, policy
        self.arrivals = [np.array(one.arrivals_s) for one in requests]
        between = [interval for one in requests if one.one_token_a_chunk for interval in one.intervals_s]
        self.together_s = TOGETHER * percentile(between, SHORT_PERCENT) if between else 0.0
        self.single = np.array([one.one_token_a_chunk for one in requests])
        self.prompts = np.array([one.input_tokens for one in requests])
        firsts = np.array([times[0] for times in self.arrivals])
        lasts = np.array([times[-1] for times in self.arrivals])
        self.ends = self._step_ends(firsts, lasts)
        self._refuse_fewer_rows(firsts, lasts)
        self.entries = self._entries(lasts)
        self.first, self.last = self._step_at(firsts), self._step_at(lasts)
        self.decodes, self.pairs = self._decodes(np.ones_like(self.single))
        self.told, _ = self._decodes(self.single)

    def _step_ends(self, firsts: Floats, lasts: Floats) -> Floats:
        """When the steps ended: where tokens of at least half of those in decode, and of a newcomer, came together."""
        times = [each if single else each[[0, -1]] for each, single in zip(self.arrivals, self.single, strict=True)]
        events = np.sort(np.concatenate(times))
        groups: list[list[float]] = [[]]
        for event in events.tolist():
            if groups[-1] and event > groups[-1][0] + self.together_s:
                groups.append([])
            groups[-1].append(event)
        ends = np.array([median(group) for group in groups])
        began, ended = np.sort(firsts[self.single]), np.sort(lasts[self.single])
        there = np.searchsorted(began, ends + self.together_s, "right") - np.searchsorted(ended, ends - self.together_s)
        return np.asarray(ends[2 * np.array([len(group) for group in groups]) >= there])

    def _step_at(self, times: Floats) -> Integers:
        """The step that ended with a token of this time."""
        return np.asarray(np.searchsorted(self.ends, times + self.together_s, "right") - 1, np.int64)

    def _refuse_fewer_rows(self, firsts: Floats, lasts: Floats) -> None:
        """Whoever has a first and not yet a last token has a row, so the file says how many rows there are at least."""
        began, ended = np.sort(firsts + self.together_s), np.sort(lasts - self.together_s)
        at_once = np.arange(1, len(began) + 1) - np.searchsorted(ended, began, "right")
        if self.policy.max_running < (rows := int(at_once.max())):
            allowed = f"at least {rows}: so many requests got tokens at the same time"
            raise InputError("max_running", self.policy.max_running, allowed)

    def _entries(self, lasts: Floats) -> Floats:
        """When each request could begin: once sent, and once there was a row for it, first come, first served."""
        rows, entries = list[float](), []
        for one, last in zip(self.requests, lasts.tolist(), strict=True):
            sent = one.sent_s or 0.0
            entries.append(max(sent, heappop(rows)) if len(rows) == self.policy.max_running else sent)
            heappush(rows, last)
        return np.array(entries)

    def _decodes(self, of: np.ndarray[Any, np.dtype[np.bool_]]) -> tuple[Integers, Integers]:
        """How many of these requests were in decode in each step, and their pairs: a new token to all before it."""
        count, offset = np.zeros((2, len(self.ends) + 1), np.int64)
        for first, last, prompt in zip(self.first[of], self.last[of], self.prompts[of], strict=True):
            count[first + 1] += 1
            count[last + 1] -= 1
            offset[first + 1] += prompt - first
            offset[last + 1] -= prompt - first
        batch = np.cumsum(count)[:-1]
        return batch, np.cumsum(offset)[:-1] + batch * np.arange(len(batch))

    def steps(self) -> Steps:
        begins = np.minimum(self._step_at(self.entries) + 1, self.first)
        stretches = list(_joined(sorted(zip(begins.tolist(), self.first.tolist(), strict=True))))
        in_prompts = np.zeros(len(self.ends), bool)
        for begin, end in stretches:
            in_prompts[begin : end + 1] = True
        prompts = [self._prompts_in(begin, end) for begin, end in stretches]
        plain = np.flatnonzero(~in_prompts & (self.decodes > 0))
        told = [int(step) for step in plain if self.told[step]]
        left_out = prompts.count(None) + len(plain) - len(told)
        return Steps(tuple(self._classes(told)), tuple(each for each in prompts if each), left_out)

    def _classes(self, steps: Sequence[int]) -> Iterator[Equation]:
        """One equation for decode steps that are alike in batch and pairs: their median time."""
        alike: dict[tuple[int, int], list[int]] = {}
        for step in steps:
            octave = round(CLASSES_AN_OCTAVE * float(np.log2(self.pairs[step])))
            alike.setdefault((int(self.decodes[step]), octave), []).append(step)
        for (batch, _), those in sorted(alike.items()):
            times = [float(self.ends[step] - self.ends[step - 1]) for step in those]
            yield Equation(1, batch, float(np.mean(self.pairs[those])), median(times), len(those))

    def _prompts_in(self, begin: int, end: int) -> Equation | None:
        """All steps of a stretch and the prompts in it; None where steps may have passed unseen, nobody knows how many.

        Unseen are the steps in which no token comes: at the start, nobody in decode, of a prompt cut into parts.
        """
        steps = np.arange(begin, end + 1)
        own = np.flatnonzero((self.first >= begin) & (self.first <= end))
        unseen, alone = 0, not self.decodes[begin]
        if np.any(self.told[steps[1:] if alone else steps] == 0):
            return None
        start = float(self.entries[own].min()) if alone else float(self.ends[begin - 1])
        if alone:
            started = self.prompts[own[self.first[own] == begin]]
            limit = min(self.policy.most_per_request, self.policy.most_per_step)
            if len(started) > 1 and limit < UNLIMITED:
                return None
            unseen = -(-int(started.sum()) // limit) - 1
            start = max(start, float(self.ends[begin - 1]) if begin else 0.0)
        tokens = int(self.decodes[steps].sum() + self.prompts[own].sum())
        pairs = int(self.pairs[steps].sum()) + sum(causal_pairs(int(prompt)) for prompt in self.prompts[own])
        length = float(self.ends[end]) - start
        return Equation(len(steps) + unseen, tokens, pairs, length) if length > 0 else None


def _joined(spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Spans of steps, both ends in them, with those that share a step joined."""
    begin, end = spans[0]
    for further, beyond in spans[1:]:
        if further > end:
            yield begin, end
            begin = further
        end = max(end, beyond)
    yield begin, end


def _apart(columns: Floats) -> Floats:
    """Of each column, the share that is no sum of multiples of the others: the sine of its angle to them."""
    found = []
    for place in range(columns.shape[1]):
        own, others = columns[:, place], np.delete(columns, place, axis=1)
        scaled = others / np.maximum(np.linalg.norm(others, axis=0), _TINY)
        left = own - scaled @ np.linalg.lstsq(scaled, own, rcond=None)[0]
        found.append(np.linalg.norm(left) / max(float(np.linalg.norm(own)), _TINY))
    return np.array(found)


def _least_deviations(columns: Floats, weights: Floats) -> Floats:
    """The terms, none below 0, with the least sum of weighted absolute deviations from 1: least squares, reweighed."""
    now = weights
    for _ in range(ROUNDS):
        terms = non_negative(columns * np.sqrt(now)[:, None], np.sqrt(now))
        now = weights / np.maximum(np.abs(columns @ terms - 1), LEAST_RESIDUAL)
    return terms


def non_negative(columns: Floats, target: Floats) -> Floats:
    """The least squares among factors of at least 0; columns are few, so each set of those above 0 can be tried.

    Where all come out above 0 by themselves, nothing else is tried: no other set does better.
    """
    count = columns.shape[1]
    best, least = np.zeros(count), float(target @ target)
    scales = np.maximum(np.linalg.norm(columns, axis=0), _TINY)
    for size in range(count, 0, -1):
        for chosen in map(list, combinations(range(count), size)):
            found = np.linalg.lstsq(columns[:, chosen] / scales[chosen], target, rcond=None)[0]
            left = target - columns[:, chosen] / scales[chosen] @ found
            if np.all(found >= 0) and left @ left <= least:
                best, least = np.zeros(count), float(left @ left)
                best[chosen] = found / scales[chosen]
                if size == count:
                    return best
    return best
