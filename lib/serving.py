"""Configurations of a service beside each other: what each needs of memory and time, which limit it breaks first,
and which of them is chosen.

A configuration is plain data: the format of KV, whether the common prefix is shared, where drafts come from. Its needs
are put together as the chapter does it: what was measured under these conditions, what is interpolated between
measured batches by the bytes read, what is computed from FLOP, and what is assumed (outputs of a round).
Source: section 8.6.3, figure 8-35; records step_efficiency, dflash and dflash_runs.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import cache, lru_cache
from math import ceil
from operator import itemgetter

from lib import dflash
from lib.checks import InputError, finite, keep_whole, one_of, seconds, whole
from lib.design_problem import INSTANCE, LONG_CONTEXT, LONG_REQUESTS_AT_ONCE
from lib.efficiency import (
    Condition,
    batches,
    decode_table,
    estimated_prefill,
    measured,
    peaks,
    prefill_flop,
    printed_mfu,
    read_plan,
)
from lib.kv_compression import element_bytes
from lib.memory import MOST_BYTES, MOST_TOKENS, KvPool, RequestShape
from lib.model import kv_bytes_per_token
from lib.prefix_value import recompute_time
from lib.quantization import BF16, Q8_0, GroupFormat
from lib.records import record
from lib.speculation_setup import MOST_DRAFT
from lib.step_time import NS, equal_requests, step_plan, verifying
from lib.units import GIB, MIB

MOST_REQUESTS, MOST_PREFILL_FACTOR = 2**16, 1e6
# The share of peak compute under the conditions of the example, with which the chapter computes every other prefill and
# the verification of drafts; and how outputs of a round are rounded, so that 255 / 1.7 is 150 rounds and no more.
MFU = printed_mfu(Condition.SHARED, LONG_REQUESTS_AT_ONCE)
_OUTPUTS_TO = 10**6


def _outputs(parameter: str, value: object, positions: int) -> float:
    allowed = f"outputs of a round from 1 to the {positions:,} positions that are verified"
    outputs = finite(parameter, value, 1, allowed)
    if outputs > positions:
        raise InputError(parameter, value, allowed)
    return outputs


@dataclass(frozen=True)
class Draft:
    """Where drafts come from, and what they cost.

    Outputs of a round are assumed, on average and for each request, at least the one that is there without a draft;
    `positions` are verified in a round, drafted tokens and that one. Then bytes that it takes beside KV, by how much it
    lengthens the prefill (1: not at all), and seconds that it adds to a round, such as those of a query. Raises
    InputError for what makes no sense, more outputs than positions among it.
    """

    name: str
    outputs_per_round: float
    positions: int
    memory_bytes: int = 0
    prefill_factor: float = 1.0
    round_s: float = 0.0

    def __post_init__(self) -> None:
        keep_whole(self, MOST_DRAFT + 1, positions=1)
        keep_whole(self, MOST_BYTES, memory_bytes=0)
        outputs = _outputs("outputs_per_round", self.outputs_per_round, self.positions)
        factor = finite("prefill_factor", self.prefill_factor, 1, f"a factor from 1 to {MOST_PREFILL_FACTOR:g}")
        if factor > MOST_PREFILL_FACTOR:
            raise InputError("prefill_factor", factor, f"a factor from 1 to {MOST_PREFILL_FACTOR:g}")
        object.__setattr__(self, "outputs_per_round", outputs)
        object.__setattr__(self, "prefill_factor", factor)
        object.__setattr__(self, "round_s", seconds("round_s", self.round_s))


@dataclass(frozen=True)
class Configuration:
    """How requests are served: whether they share their prefix, the format of KV, and where drafts come from, if any.

    Raises InputError for a part that is none of these.
    """

    name: str
    shares_prefix: bool
    kv_format: GroupFormat = BF16
    draft: Draft | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InputError("name", self.name, "a name, such as 'B'")
        if not isinstance(self.shares_prefix, bool):
            raise InputError("shares_prefix", self.shares_prefix, "True or False")
        if not isinstance(self.kv_format, GroupFormat):
            raise InputError("kv_format", self.kv_format, "a GroupFormat, such as BF16 or Q8_0")
        if self.draft is not None and not isinstance(self.draft, Draft):
            raise InputError("draft", self.draft, "a Draft, or None")
        element_bytes(INSTANCE.model, self.kv_format)


@dataclass(frozen=True)
class Workload:
    """Requests that come together: how many, tokens in, the first of them that are common to all, and tokens out.

    The prefix `is_cached` before they come, or must be computed once by whoever shares it. `host_removed_s` is taken
    off each round, down to what the device itself needs: what better scheduling or a captured graph might save. Raises
    InputError for what makes no sense.
    """

    requests: int = LONG_REQUESTS_AT_ONCE
    input_tokens: int = LONG_CONTEXT.input_tokens
    prefix_tokens: int = LONG_CONTEXT.shared_prefix_tokens
    output_tokens: int = LONG_CONTEXT.output_tokens
    is_cached: bool = True
    host_removed_s: float = 0.0

    def __post_init__(self) -> None:
        keep_whole(self, MOST_REQUESTS, requests=1)
        RequestShape(self.input_tokens, self.output_tokens, self.prefix_tokens)
        keep_whole(self, MOST_TOKENS, input_tokens=1, output_tokens=1, prefix_tokens=0)
        if not isinstance(self.is_cached, bool):
            raise InputError("is_cached", self.is_cached, "True or False")
        object.__setattr__(self, "host_removed_s", seconds("host_removed_s", self.host_removed_s))

    def common_tokens(self, configuration: Configuration) -> int:
        """Tokens of the prefix that are kept once for all: whole pages of it, and none where it is not shared."""
        page = pool_of(configuration.kv_format).page_tokens
        return self.prefix_tokens // page * page if configuration.shares_prefix else 0


@dataclass(frozen=True)
class Limits:
    """What must not be exceeded: bytes for KV and what drafts take, seconds from arrival to the last output.

    Raises InputError for what is no amount of memory and no time above 0.
    """

    memory_bytes: int = INSTANCE.kv_pool_bytes
    deadline_s: float = LONG_CONTEXT.deadline_s

    def __post_init__(self) -> None:
        keep_whole(self, MOST_BYTES, memory_bytes=1)
        object.__setattr__(self, "deadline_s", seconds("deadline_s", self.deadline_s, above_zero=True))


# What DFlash takes, as recorded: memory of the process with and without it (its inputs were short, and it is taken over
# as it is), and the time to first token at some 2300 tokens. What it outputs in a round is the chapter's assumption.
RECORDED_INPUT = record("dflash_tasks").one(task="long_lookup")["input_tokens"]
ASSUMED_OUTPUTS = 3


def recorded_memory(draft_tokens: int) -> int:
    """The most bytes that the process took with drafts of so many tokens, 0 for none. Source: record dflash_runs."""
    return int(record("dflash_runs").one(draft_tokens=_tried(draft_tokens))["peak_memory_mib"]) * MIB


def recorded_first_token(draft_tokens: int) -> float:
    """Seconds to the first token of the longer look-up, alone (clock: client). Source: record dflash."""
    row = record("dflash").one(draft_tokens=_tried(draft_tokens), task="long_lookup", concurrency_requests=1)
    return float(row["ttft_median_ms"]) / 1e3


def _tried(draft_tokens: int) -> int:
    tried: tuple[int, ...] = (dflash.PLAIN, dflash.K7, dflash.K15)
    return one_of("draft_tokens", whole("draft_tokens", draft_tokens), tried)


DFLASH = Draft(
    name="DFlash",
    outputs_per_round=ASSUMED_OUTPUTS,
    positions=dflash.K7 + 1,
    memory_bytes=recorded_memory(dflash.K7) - recorded_memory(dflash.PLAIN),
    prefill_factor=recorded_first_token(dflash.K7) / recorded_first_token(dflash.PLAIN),
)
CONFIGURATIONS = (
    Configuration("A", shares_prefix=False),
    Configuration("B", shares_prefix=True),
    Configuration("C", shares_prefix=False, kv_format=Q8_0),
    Configuration("D", shares_prefix=True, draft=DFLASH),
)
WORKLOAD, LIMITS = Workload(), Limits()
# The two changes that section 8.6.3 tries: less memory, and shorter outputs.
LESS_MEMORY, SHORT_OUTPUTS = Limits(memory_bytes=6 * GIB), Workload(output_tokens=16)


class Result(StrEnum):
    """What to write down of a configuration once it is chosen: what the design of larger services starts from."""

    CAPACITY = "how many requests' states it holds at once"
    RATES = "how fast it does prefill, and how fast decode"
    LATENCY = "how the latency of a request changes with batch and arrival rate"


class Basis(StrEnum):
    """Where a time comes from."""

    RECORDED = "recorded for as many bytes or FLOP"
    INTERPOLATED = "between two recorded batches"
    BEYOND = "beyond the recorded batches"
    CARRIED_OVER = "recorded, with a change that was recorded elsewhere or is assumed"
    FLOP_RULE = "FLOP over the share of the peak that was reached"
    DEVICE = "the least that the device needs"


@dataclass(frozen=True)
class Needs:
    """What a configuration needs for a workload: bytes, and seconds from the requests' arrival to the last output."""

    configuration: Configuration
    workload: Workload
    memory_bytes: int
    prefill_s: float
    prefill_basis: Basis
    rounds: int
    round_s: float
    round_basis: Basis

    @property
    def decode_s(self) -> float:
        """Seconds of all rounds."""
        return self.rounds * self.round_s

    @property
    def total_s(self) -> float:
        """Seconds from arrival to the end of all requests, which is the time of the card that they take."""
        return self.prefill_s + self.decode_s


def needs(configuration: Configuration, workload: Workload = WORKLOAD) -> Needs:
    """Memory and time of a configuration. Source: section 8.6.3.

    All requests are taken to output equally many tokens in each round and so to end together; the round keeps the time
    that it has at the length of the prompts. Raises InputError for what is no configuration and no workload.
    """
    _check(configuration, workload)
    return _needs(configuration, workload)


def _check(configuration: object, workload: object) -> None:
    if not isinstance(configuration, Configuration):
        raise InputError("configuration", configuration, "a Configuration, such as those of CONFIGURATIONS")
    if not isinstance(workload, Workload):
        raise InputError("workload", workload, "a Workload")


@lru_cache(maxsize=4096)
def _needs(configuration: Configuration, workload: Workload) -> Needs:
    prefill_s, prefill_basis = _prefill(configuration, workload)
    round_s, round_basis = _round(configuration, workload)
    return Needs(
        configuration, workload, memory_needed(configuration, workload), prefill_s, prefill_basis,
        rounds_needed(workload.output_tokens, _outputs_per_round(configuration)), round_s, round_basis,
    )  # fmt: skip


def memory_needed(configuration: Configuration, workload: Workload = WORKLOAD) -> int:
    """Bytes of the KV of all requests when each has its last output, in whole pages, and of what drafts take. Exact.

    Raises InputError for what is no configuration and no workload.
    """
    _check(configuration, workload)
    shape = RequestShape(workload.input_tokens, workload.output_tokens, workload.common_tokens(configuration))
    beside = configuration.draft.memory_bytes if configuration.draft else 0
    return pool_of(configuration.kv_format).held_bytes(shape, workload.requests) + beside


def rounds_needed(outputs: int, outputs_per_round: float = 1.0) -> int:
    """Rounds behind the prefill, which gives the first output itself: (G - 1) / N, rounded up. Source: section 8.6.3.

    What the last round outputs beyond G is thrown away.
    """
    further = whole("outputs", outputs, at_least=1, at_most=MOST_TOKENS) - 1
    each = _outputs("outputs_per_round", outputs_per_round, MOST_DRAFT + 1)
    return ceil(further / Fraction(each).limit_denominator(_OUTPUTS_TO))


def verify_time(requests: int, positions: int, context: int, mfu: float = MFU) -> float:
    """Seconds to compute a round that verifies so many positions of each request (clock: FLOP rule).

    Every position has its logits. Source: section 8.6.3; raises InputError for a share outside 0 ... 1 (0 itself too).
    """
    rows = whole("positions", positions, at_least=1, at_most=MOST_DRAFT + 1)
    count = whole("requests", requests, at_least=1, at_most=MOST_REQUESTS)
    plan = equal_requests(count, verifying(step_plan((rows, context)), rows - 1))
    return estimated_prefill(peaks().flop(plan), mfu)


def _prefill(configuration: Configuration, workload: Workload) -> tuple[float, Basis]:
    """Seconds until each request has its first output.

    A prefix that nobody cached is computed once, before, at the share of peak that one request reaches alone. What
    drafts make longer they make longer throughout, which was recorded for a shorter prompt with nothing cached.
    """
    cached = workload.common_tokens(configuration)
    time, basis = _prefill_behind(cached, workload.requests, workload.input_tokens - cached)
    if cached and not workload.is_cached:
        time, basis = time + recompute_time(cached), Basis.FLOP_RULE
    factor = configuration.draft.prefill_factor if configuration.draft else 1.0
    return factor * time, Basis.CARRIED_OVER if factor > 1 and basis is not Basis.FLOP_RULE else basis


@lru_cache(maxsize=4096)
def _prefill_behind(cached: int, requests: int, new_tokens: int) -> tuple[float, Basis]:
    """A prefill behind a shared prefix by the record, in proportion to FLOP between its batches; else by FLOP alone."""
    flop = prefill_flop(requests, new_tokens, cached)
    if not cached:
        return estimated_prefill(flop, MFU), Basis.FLOP_RULE
    points = _prefill_table()
    right = min(bisect_left(points, flop, key=itemgetter(0)), len(points) - 1)
    (low, low_s), (high, high_s) = points[right - 1], points[right]
    if flop == high:
        return high_s, Basis.RECORDED
    basis = Basis.INTERPOLATED if points[1][0] < flop < points[-1][0] else Basis.BEYOND
    return low_s + (flop - low) * (high_s - low_s) / (high - low), basis


def _round(configuration: Configuration, workload: Workload) -> tuple[float, Basis]:
    """Seconds of a round: as recorded for the bytes that it reads, and no less than what the device needs.

    To verify drafts reads no more; a pass of a draft network is taken to fit into the same time, unless `round_s` says
    what it adds.
    """
    once, draft = workload.common_tokens(configuration), configuration.draft
    time, basis = _round_of(
        configuration.kv_format, once, workload.requests, workload.input_tokens, draft.positions if draft else 1,
        workload.host_removed_s,
    )  # fmt: skip
    return time + (draft.round_s if draft else 0.0), basis


@lru_cache(maxsize=4096)
def _round_of(
    kv_format: GroupFormat, once: int, requests: int, context: int, positions: int, host_removed_s: float
) -> tuple[float, Basis]:
    table = decode_table(Condition.SHARED if once else Condition.OWN, _kv_bytes(kv_format))
    plan = read_plan(requests, context, once)
    device_s = max(table.device.read_ns(plan) / NS, verify_time(requests, positions, context))
    recorded_s = table(plan) / NS - host_removed_s
    if device_s >= recorded_s:
        return device_s, Basis.DEVICE
    if host_removed_s:
        return recorded_s, Basis.CARRIED_OVER
    if table.is_recorded(plan):
        return recorded_s, Basis.RECORDED
    return recorded_s, Basis.INTERPOLATED if table.covers(plan) else Basis.BEYOND


def _outputs_per_round(configuration: Configuration) -> float:
    return configuration.draft.outputs_per_round if configuration.draft else 1.0


@cache
def _prefill_table() -> list[tuple[int, float]]:
    """FLOP and seconds of the prefills behind a shared prefix, rising; no work takes no time."""
    rows = [measured(Condition.SHARED, batch) for batch in batches(Condition.SHARED)]
    return [(0, 0.0), *((row.prefill_flop, row.prefill_s) for row in rows)]


@cache
def _kv_bytes(kv_format: GroupFormat) -> int:
    return kv_bytes_per_token(INSTANCE.model, element_bytes(INSTANCE.model, kv_format))


@cache
def pool_of(kv_format: GroupFormat) -> KvPool:
    """Sizes of pages; how many of them there are is left to the limits."""
    return KvPool(INSTANCE.model, MOST_BYTES, bytes_per_element=element_bytes(INSTANCE.model, kv_format))


class Limit(StrEnum):
    """What is asked, in this order: what does not fit is not run, and what is late gives no result."""

    MEMORY = "memory"
    DEADLINE = "deadline"


@dataclass(frozen=True)
class Judged:
    """A configuration under limits: the first that it breaks, if any, and what a qualified result costs."""

    needs: Needs
    limits: Limits

    @property
    def name(self) -> str:
        return self.needs.configuration.name

    @property
    def broken(self) -> Limit | None:
        """The first limit that is broken, memory before time; None if both are kept."""
        if self.needs.memory_bytes > self.limits.memory_bytes:
            return Limit.MEMORY
        return Limit.DEADLINE if self.needs.total_s > self.limits.deadline_s else None

    @property
    def qualified(self) -> int:
        """Results within the limits: all or none, as all end together and every answer is taken to be right."""
        return 0 if self.broken else self.needs.workload.requests

    @property
    def gpu_s_per_result(self) -> float | None:
        """Seconds of the card for each qualified result; None where there is none, whatever time was spent."""
        return self.needs.total_s / self.qualified if self.qualified else None

    @property
    def most_joules_per_result(self) -> float | None:
        """What each takes at most: the card's power limit over that time. Nothing was measured for it."""
        gpu_s, watts = self.gpu_s_per_result, INSTANCE.card.power_limit_w
        return None if gpu_s is None or watts is None else watts * gpu_s

    @property
    def longest_round_s(self) -> float | None:
        """The longest round with which so many of them end in time, (deadline - prefill) / rounds.

        None where the prefill alone is too late, or there is no round.
        """
        left = self.limits.deadline_s - self.needs.prefill_s
        return left / self.needs.rounds if self.needs.rounds and left >= 0 else None

    @property
    def fewest_outputs_per_round(self) -> float | None:
        """The fewest outputs of a round, at least 1, with which the last comes in time; None where none do.

        (G - 1) over the whole rounds that fit.
        """
        rounds = int((self.limits.deadline_s - self.needs.prefill_s) // self.needs.round_s)
        further = self.needs.workload.output_tokens - 1
        if rounds < 1:
            return 1.0 if rounds == 0 and not further else None
        return max(1.0, further / rounds)


@dataclass(frozen=True)
class Choice:
    """All configurations judged, in their order, and the one that is chosen, if any keeps the limits."""

    judged: tuple[Judged, ...]
    chosen: Judged | None

    @property
    def name(self) -> str | None:
        """The name of the chosen one."""
        return self.chosen.name if self.chosen else None

    def of(self, name: str) -> Judged:
        """What became of the configuration of this name; raises InputError for one that was not asked."""
        known = {each.name: each for each in self.judged}
        if name not in known:
            raise InputError("name", name, "one of " + ", ".join(known))
        return known[name]

    @property
    def within_limits(self) -> tuple[str, ...]:
        """The names of those that keep the limits."""
        return tuple(each.name for each in self.judged if not each.broken)


def judge(configuration: Configuration, workload: Workload = WORKLOAD, limits: Limits = LIMITS) -> Judged:
    """A configuration under limits, memory before time. Source: section 8.6.3.

    Raises InputError for what is no configuration, no workload and no limits.
    """
    if not isinstance(limits, Limits):
        raise InputError("limits", limits, "Limits")
    return Judged(needs(configuration, workload), limits)


def choose(
    configurations: Sequence[Configuration] = CONFIGURATIONS, workload: Workload = WORKLOAD, limits: Limits = LIMITS
) -> Choice:
    """Of the configurations that keep the limits the one whose results take the least time of the card.

    Of equals the first. Raises InputError for no configuration and for two of one name.
    """
    allowed = "at least one configuration, each with a name of its own"
    if not isinstance(configurations, tuple | list) or not all(isinstance(c, Configuration) for c in configurations):
        raise InputError("configurations", configurations, allowed)
    names = [each.name for each in configurations]
    if not names or len(set(names)) < len(names):
        raise InputError("configurations", names, allowed)
    judged = tuple(judge(each, workload, limits) for each in configurations)
    kept = [each for each in judged if not each.broken]
    return Choice(judged, min(kept, key=lambda each: each.needs.total_s, default=None))
