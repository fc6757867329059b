"""The configurations of section 8.6.3 in the simulator, and what the chapter's arithmetic leaves out, item by item.

A run admits the requests into a pool, finds the prefix in it, hands out tokens, verifies drafts, and lets each request
end by itself. Its steps take the longer of two times: a round as recorded for the bytes that are read, and the FLOP of
the step at the share of the peak that was reached under the same conditions.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any

import numpy as np

from lib import dflash
from lib.checks import InputError, finite, keep_whole, one_of, seconds, whole
from lib.design_problem import INSTANCE
from lib.draft_sources import pass_time
from lib.efficiency import Condition, batches, decode_table, measured, peaks, read_plan
from lib.fast_forward import simulate
from lib.four_requests import TOKEN_BUDGET
from lib.memory import MOST_BYTES, KvPool, RequestShape
from lib.model import kv_bytes_per_token
from lib.paging import Findable
from lib.records import record
from lib.residency import Gate, PoolSetup
from lib.schedule import Schedule
from lib.scheduling import Policy, Request, chunked, continuous
from lib.serving import (
    CONFIGURATIONS,
    LIMITS,
    MFU,
    WORKLOAD,
    Configuration,
    Draft,
    Workload,
    memory_needed,
    needs,
    pool_of,
)
from lib.speculation import at_every_position, expected_outputs, output_distribution
from lib.speculation_setup import MOST_SEED, PLAIN, Drafter, DrawnAcceptance, GivenAcceptance, SpeculationSetup
from lib.step_time import NS, Device, Fit, MeasuredDecode, StepPlan, StepTime

A, B, C, D = CONFIGURATIONS
# A run of many requests with drafts takes a second, so it stays within what a reader waits for.
MOST_RUN_REQUESTS, MOST_RUN_OUTPUTS = 64, 1024
# Whole numbers of outputs that come closest to a mean in so many rounds at most; where ids of own tokens begin.
_ROUNDS_OF_MEAN, _OWN = 64, 2**40


@dataclass(frozen=True)
class ServingStep(StepTime):
    """A step takes a round as recorded for the bytes it reads, or the time of its FLOP if that is longer.

    Reads are counted for each request. Where a step computes prompts, its FLOP count `prefill_factor` times: what a
    draft network adds. Clock: engine, or FLOP rule where computing is longer.
    """

    table: MeasuredDecode
    device: Device
    prefill_factor: float = 1.0

    def __call__(self, plan: StepPlan) -> int:
        compute_ns = self.device.compute_ns(plan)
        if not plan.is_decode:
            compute_ns = round(compute_ns * self.prefill_factor)
        return max(self.table(plan._replace(new_tokens=plan.logit_rows)), compute_ns)


def step_time_of(configuration: Configuration, workload: Workload = WORKLOAD) -> ServingStep:
    """The steps of a configuration: by the record with a shared prefix, or where nothing is common with own contexts.

    As `lib.serving.needs` does it.
    """
    condition = Condition.SHARED if workload.common_tokens(configuration) else Condition.OWN
    rows = [measured(condition, batch) for batch in batches(condition)]
    by = decode_table(condition, kv_bytes_per_token(INSTANCE.model, pool_of(configuration.kv_format).bytes_per_element))
    points = tuple((row.read_bytes, round(row.round_s * NS)) for row in rows)
    factor = configuration.draft.prefill_factor if configuration.draft else 1.0
    return ServingStep(replace(by, points=points), peaks(MFU), factor)


@dataclass(frozen=True)
class Conditions:
    """How a run differs from the plainest: all prompts in one step, each round as many outputs as the mean.

    `token_budget` limits the tokens of a step; with a `seed` acceptance is drawn, by chance at each position alike;
    `pass_s` are seconds of making the drafts of a round; `slots` says that drafts may reach beyond the last output, as
    in an engine that does not know it. Raises InputError for what makes no sense.
    """

    token_budget: int | None = None
    seed: int | None = None
    pass_s: float = 0.0
    slots: bool = False
    findable: Findable = Findable.ON_ADMISSION
    memory_bytes: int = MOST_BYTES

    def __post_init__(self) -> None:
        if self.token_budget is not None:
            keep_whole(self, token_budget=1)
        if self.seed is not None:
            keep_whole(self, MOST_SEED, seed=0)
        object.__setattr__(self, "pass_s", seconds("pass_s", self.pass_s))
        if not isinstance(self.slots, bool):
            raise InputError("slots", self.slots, "True or False")
        one_of("findable", self.findable, Findable)
        keep_whole(self, MOST_BYTES, memory_bytes=1)


@dataclass(frozen=True)
class Run:
    """A configuration in the simulator. The prefix, if it was cached before, was computed by a request of its own."""

    configuration: Configuration
    schedule: Schedule
    arrival_ns: int

    @property
    def total_s(self) -> float:
        """Seconds from arrival to the last output of all."""
        return (self.schedule.total_ns - self.arrival_ns) / NS

    @property
    def prefill_s(self) -> float:
        """Seconds until each request has its first output."""
        return (int(self.schedule.first_token_ns.max()) - self.arrival_ns) / NS

    @property
    def finish_s(self) -> tuple[float, ...]:
        """Seconds from arrival to the last output of each request."""
        ends = self.schedule.finish_ns[self.schedule.arrival_ns == self.arrival_ns]
        return tuple(((ends - self.arrival_ns) / NS).tolist())

    @property
    def rounds(self) -> int:
        """Steps behind the first output of the one that takes most of them."""
        first, last = np.asarray(self.schedule.first_output_step), np.asarray(self.schedule.last_output_step)
        return int((last - first).max())

    @property
    def peak_bytes(self) -> int:
        """The most bytes held at once: blocks of the pool, and what drafts take beside."""
        pool, draft = pool_of(self.configuration.kv_format), self.configuration.draft
        assert self.schedule.peak_blocks is not None
        return self.schedule.peak_blocks * pool.bytes_of(1) + (draft.memory_bytes if draft else 0)


def run(configuration: Configuration, workload: Workload = WORKLOAD, conditions: Conditions = Conditions()) -> Run:
    """A configuration in the simulator; the pool is what its drafts leave of the memory, or has room for all.

    Nobody enters unless the most that it may become fits, beside that of those who run. Raises InputError for what is
    no configuration, workload or conditions, for more than 64 requests or 1024 outputs, for memory in which no request
    fits, and for a draft that verifies one position, so drafts nothing, and yet adds to a round.
    """
    if not isinstance(conditions, Conditions):
        raise InputError("conditions", conditions, "Conditions")
    needs(configuration, workload)
    whole("requests", workload.requests, at_most=MOST_RUN_REQUESTS)
    whole("output_tokens", workload.output_tokens, at_most=MOST_RUN_OUTPUTS)
    if workload.host_removed_s:
        raise InputError("host_removed_s", workload.host_removed_s, "0 in a run: its steps are as recorded")
    if (draft := configuration.draft) and draft.positions == 1 and draft.round_s:
        raise InputError("round_s", draft.round_s, "0 in a run of 1 position: nothing is drafted, so no time goes by")
    return _run(configuration, workload, conditions)


@lru_cache(maxsize=64)
def _run(configuration: Configuration, workload: Workload, conditions: Conditions) -> Run:
    step_time, speculation = step_time_of(configuration, workload), _speculation(configuration, conditions)
    prefix = workload.common_tokens(configuration)
    first = [Request(0, prefix, 1, ids=np.arange(prefix))] if prefix and workload.is_cached else []
    policy = _policy(workload, conditions)
    arrival_ns = simulate(first, policy, step_time).total_ns if first else 0
    beyond = speculation.draft_tokens if conditions.slots else 0
    load = [
        Request(
            arrival_ns, workload.input_tokens, workload.output_tokens, workload.output_tokens + beyond,
            ids=_token_ids(prefix, place, workload.input_tokens - prefix),
        )
        for place in range(workload.requests)
    ]  # fmt: skip
    setup = _setup(configuration, workload, conditions, load[0])
    return Run(configuration, simulate([*first, *load], policy, step_time, setup, speculation), arrival_ns)


def _token_ids(prefix: int, place: int, own: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The prefix that all have, then tokens that no other request has."""
    return np.concatenate([np.arange(prefix), (1 + place) * _OWN + np.arange(own)])


def _policy(workload: Workload, conditions: Conditions) -> Policy:
    budget = conditions.token_budget
    return continuous(workload.requests) if budget is None else chunked(workload.requests, budget, budget)


def _setup(configuration: Configuration, workload: Workload, conditions: Conditions, one: Request) -> PoolSetup:
    pool, draft = pool_of(configuration.kv_format), configuration.draft
    room = conditions.memory_bytes - (draft.memory_bytes if draft else 0)
    enough = (1 + workload.requests) * -(-one.most_tokens // pool.page_tokens)
    blocks = min(max(0, room // pool.bytes_of(1)), enough)
    if blocks * pool.page_tokens < one.most_tokens:
        raise InputError("memory_bytes", conditions.memory_bytes, "memory for at least one request, beside its drafts")
    return PoolSetup(blocks, pool.page_tokens, Gate.FINAL_SIZE, findable=conditions.findable)


def _speculation(configuration: Configuration, conditions: Conditions) -> SpeculationSetup:
    draft = configuration.draft
    if draft is None or draft.positions == 1:
        return PLAIN
    length, pass_ns = draft.positions - 1, round((conditions.pass_s + draft.round_s) * NS)
    drafter = Drafter(Fit(pass_ns, 0, 0)) if pass_ns else None
    if conditions.seed is not None:
        each = acceptance_for(draft.outputs_per_round, draft.positions)
        return SpeculationSetup(DrawnAcceptance(at_every_position(each, length), conditions.seed), drafter)
    mean = Fraction(draft.outputs_per_round).limit_denominator(_ROUNDS_OF_MEAN)
    accepted = (int((number + 1) * mean) - int(number * mean) - 1 for number in range(mean.denominator))
    return SpeculationSetup(GivenAcceptance(length, (tuple(accepted),)), drafter)


@cache
def acceptance_for(outputs_per_round: float, positions: int) -> float:
    """The probability at each position with which a round has so many outputs on average, by halving.

    Raises InputError for fewer than 1 and more than the positions verified. Source: section 8.5.2, turned round.
    """
    length = whole("positions", positions, at_least=2) - 1
    allowed = f"outputs of a round from 1 to {positions}"
    wanted = finite("outputs_per_round", outputs_per_round, 1, allowed)
    if wanted > positions:
        raise InputError("outputs_per_round", wanted, allowed)
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if expected_outputs(at_every_position(middle, length)) < wanted else (low, middle)
    return high


def rounds_of_slowest(draft: Draft, outputs: int, requests: int) -> tuple[float, float]:
    """Rounds that one request, and the slowest of so many, take on average when acceptance is drawn by chance.

    Exact: P(all are done within r rounds) = P(one is)^b, and the mean is the sum of what is left. The first output
    comes from the prefill. Source: sections 8.5.2 and 8.6.3.
    """
    if not isinstance(draft, Draft):
        raise InputError("draft", draft, "a Draft")
    further = whole("outputs", outputs, at_least=2, at_most=MOST_RUN_OUTPUTS) - 1
    count = whole("requests", requests, at_least=1, at_most=MOST_RUN_REQUESTS)
    each = acceptance_for(draft.outputs_per_round, draft.positions)
    chances = np.array([0.0, *output_distribution(at_every_position(each, draft.positions - 1))])
    unfinished, one, slowest = np.zeros(further), 0.0, 0.0
    unfinished[0] = 1.0
    for _ in range(further):
        left = float(unfinished.sum())
        one, slowest = one + left, slowest + 1 - (1 - left) ** count
        unfinished = np.convolve(unfinished, chances)[:further]
    return one, slowest


@dataclass(frozen=True)
class Variation:
    """One thing that the chapter's arithmetic leaves out: its seconds for a configuration, and those with it."""

    configuration: Configuration
    what: str
    chapter_s: float
    total_s: float

    @property
    def difference_s(self) -> float:
        return self.total_s - self.chapter_s

    @property
    def turns_verdict(self) -> bool:
        """Whether the deadline is kept by one and broken by the other."""
        return (self.chapter_s <= LIMITS.deadline_s) != (self.total_s <= LIMITS.deadline_s)


def growing_rounds(configuration: Configuration, workload: Workload = WORKLOAD) -> float:
    """Seconds of all rounds if the context grows by what each of them outputs, by the record and what is read."""
    found, table = needs(configuration, workload), step_time_of(configuration, workload).table
    each = (workload.output_tokens - 1) / found.rounds if found.rounds else 0.0
    contexts = (workload.input_tokens + int(number * each) for number in range(found.rounds))
    return sum(table(read_plan(workload.requests, context)) for context in contexts) / NS


def round_by_reads(once: bool, workload: Workload = WORKLOAD) -> float:
    """A round of B as the record of separate contexts has it for as many bytes, its prefix read once or by each."""
    prefix = workload.common_tokens(B) if once else 0
    return decode_table(Condition.OWN)(read_plan(workload.requests, workload.input_tokens, prefix)) / NS


def recorded_request_s() -> float:
    """Seconds of a request of B: median first token and 255 times the mean interval (clock: client)."""
    row = record("batch_sweep").one(input_kind=Condition.SHARED.value, batch_requests=WORKLOAD.requests)
    interval_s = row["mean_output_interval_median_ms"] / 1e3
    return float(row["ttft_median_ms"] / 1e3 + (row["output_tokens_per_request"] - 1) * interval_s)


def slowest_total_s(pass_s: float = 0.0) -> float:
    """Seconds of D if acceptance is drawn by chance: the slowest of its requests, on average."""
    found = needs(D)
    assert D.draft
    _, slowest = rounds_of_slowest(D.draft, WORKLOAD.output_tokens, WORKLOAD.requests)
    return found.prefill_s + slowest * (found.round_s + seconds("pass_s", pass_s))


def pass_of_draft_s() -> float:
    """Seconds of a pass of the draft network, as section 8.5.3 charges it."""
    return pass_time(dflash.weight_bytes())


def variations() -> tuple[Variation, ...]:
    """What the chapter leaves out, one thing a row; what comes from the simulator says so.

    Experiment 8-1, whose record the example uses, let a step hold 4096 tokens. Source: section 8.2.2.
    """
    grows, cold = "the context grows", replace(WORKLOAD, is_cached=False)
    chunks = Conditions(token_budget=TOKEN_BUDGET)
    b, d, draft_pass = needs(B), needs(D), pass_of_draft_s()
    found: list[tuple[Configuration, str, Callable[[], float]]] = [
        (A, "simulated within the limit: some run, others wait", lambda: run(A, conditions=_in_limits()).total_s),
        (B, grows, lambda: b.prefill_s + growing_rounds(B)),
        (B, "prefix read once, by separate contexts", lambda: b.prefill_s + b.rounds * round_by_reads(True)),
        (B, "prefix read by each, by separate contexts", lambda: b.prefill_s + b.rounds * round_by_reads(False)),
        (B, "prefix not cached before", lambda: needs(B, cold).total_s),
        (B, "in the simulator", lambda: run(B).total_s),
        (B, f"simulated in steps of {TOKEN_BUDGET} tokens", lambda: run(B, conditions=chunks).total_s),
        (B, "measured (client)", recorded_request_s),
        (D, grows, lambda: d.prefill_s + growing_rounds(D)),
        (D, "the draft's pass is charged", lambda: d.prefill_s + d.rounds * (d.round_s + draft_pass)),
        (D, "acceptance by chance: the slowest", slowest_total_s),
        (D, "both of these", lambda: slowest_total_s(draft_pass)),
        (D, "prefix not cached before", lambda: needs(D, cold).total_s),
        (D, "in the simulator", lambda: run(D).total_s),
        (D, f"simulated in steps of {TOKEN_BUDGET} tokens", lambda: run(D, conditions=chunks).total_s),
        (D, "by chance, one draw in the simulator", lambda: run(D, conditions=Conditions(seed=0)).total_s),
    ]
    return tuple(Variation(one, what, needs(one).total_s, total()) for one, what, total in found)


def _in_limits() -> Conditions:
    return Conditions(memory_bytes=LIMITS.memory_bytes)


def memory_with_slots(configuration: Configuration, workload: Workload = WORKLOAD) -> int:
    """Bytes if each request also has blocks for the positions that a draft verifies beyond its last output.

    One block more for each, where they do not end within the last. Source: section 8.6.3.
    """
    draft = configuration.draft
    beyond = draft.positions - 1 if draft else 0
    return memory_needed(configuration, replace(workload, output_tokens=workload.output_tokens + beyond))


def memory_by_shape(shares_draft_prefix: bool, workload: Workload = WORKLOAD) -> int:
    """Bytes of D by the inferred shape of its draft network: its weights and its KV instead of what was recorded.

    The record was taken with short inputs; a draft network sees the whole text, so its KV grows with the context. It
    may share the prefix as the target does, or not. Source: section 8.5.3.
    """
    if not isinstance(shares_draft_prefix, bool):
        raise InputError("shares_draft_prefix", shares_draft_prefix, "True or False")
    prefix = workload.common_tokens(B) if shares_draft_prefix else 0
    shape = RequestShape(workload.input_tokens, workload.output_tokens, prefix)
    draft_kv = KvPool(dflash.DRAFT_NETWORK, MOST_BYTES).held_bytes(shape, workload.requests)
    return memory_needed(B, workload) + dflash.weight_bytes() + draft_kv
