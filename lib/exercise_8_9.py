"""Exercise 8-9: a configuration between B and D, and what is chosen when limits or outputs change. Source: 8.6.3."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil
from random import Random
from typing import Any

from lib.checks import InputError, finite, seconds, whole
from lib.design_problem import INSTANCE
from lib.exercises import TOKENS, ChoicePart, Exercise, Kind, Mistake, NumberPart, Quantity, some_of
from lib.memory import MOST_BYTES, MOST_TOKENS, pages_for, tokens_stored
from lib.model import kv_bytes_per_token
from lib.serving import (
    CONFIGURATIONS,
    DFLASH,
    LESS_MEMORY,
    LIMITS,
    SHORT_OUTPUTS,
    WORKLOAD,
    Configuration,
    Draft,
    Limits,
    Workload,
    choose,
    needs,
    pool_of,
    rounds_needed,
)
from lib.serving_run import memory_with_slots, rounds_of_slowest
from lib.speculation import DRAFT_TOKENS, QUERY_S
from lib.units import MIB

B, D = CONFIGURATIONS[1], CONFIGURATIONS[3]
# Drafts looked up in the context, with an index in host memory: so many outputs of a round are assumed.
LOOKED_UP_OUTPUTS = 2
E = Configuration("E", shares_prefix=True, draft=Draft("look-up", LOOKED_UP_OUTPUTS, DRAFT_TOKENS + 1, round_s=QUERY_S))

NAMES = tuple(configuration.name for configuration in (B, D, E))
NONE, MEMORY, DEADLINE = "none", "memory", "deadline"
_BROKEN = tuple(f"{name} {limit}" for name in NAMES for limit in (MEMORY, DEADLINE))
MS = 1e-3  # s
MOST_REQUESTS, MOST_OUTPUTS_OF_ROUND, MOST_MS, MOST_FACTOR = 2**16, 2**6, 10**6, 100
# No verdict is so near to a limit, and no choice to the next one.
_CLEARLY = 0.02

_OF_MEMORY = (
    "requests", "input_tokens", "shared_prefix_tokens", "block_tokens", "kv_bytes_per_token", "draft_memory_mib",
)  # fmt: skip
_OF_ROUNDS = ("draft_outputs", "lookup_outputs")
_OF_TIME = ("requests", "prefill_s", "draft_prefill_factor", "round_ms", *_OF_ROUNDS, "query_ms")
_OF_ALL = tuple(dict.fromkeys((*_OF_MEMORY, *_OF_TIME)))
Three = tuple[float, float, float]


@dataclass(frozen=True)
class Inputs:
    """What the exercise starts from: requests that come together, B as measured, what drafts change, and the limits.

    Sizes in tokens, MiB and, of the KV of a token, bytes; times in the unit of their name. `draft_...` is of D,
    `lookup_outputs` and `query_ms` are of E. Raises InputError for values that make no sense.
    """

    requests: int
    input_tokens: int
    shared_prefix_tokens: int
    output_tokens: int
    block_tokens: int
    kv_bytes_per_token: int
    prefill_s: float
    round_ms: float
    draft_memory_mib: int
    draft_prefill_factor: float
    draft_outputs: float
    lookup_outputs: float
    query_ms: float
    memory_mib: int
    deadline_s: float
    less_memory_mib: int
    short_output_tokens: int

    def __post_init__(self) -> None:
        whole("requests", self.requests, 1, MOST_REQUESTS)
        whole("input_tokens", self.input_tokens, 1, MOST_TOKENS)
        whole("block_tokens", self.block_tokens, 1, MOST_TOKENS)
        whole("shared_prefix_tokens", self.shared_prefix_tokens, 0, self.input_tokens - 1)
        if self.shared_prefix_tokens % self.block_tokens:
            allowed = f"a multiple of block_tokens, {self.block_tokens}"
            raise InputError("shared_prefix_tokens", self.shared_prefix_tokens, allowed)
        whole("output_tokens", self.output_tokens, 2, MOST_TOKENS)
        whole("short_output_tokens", self.short_output_tokens, 2, self.output_tokens)
        for name in ("kv_bytes_per_token", "memory_mib", "less_memory_mib"):
            whole(name, getattr(self, name), 1, MOST_BYTES)
        whole("draft_memory_mib", self.draft_memory_mib, 0, MOST_BYTES)
        seconds("prefill_s", self.prefill_s)
        seconds("deadline_s", self.deadline_s, above_zero=True)
        for name, least, most in (
            ("round_ms", 1e-3, MOST_MS),
            ("query_ms", 0, MOST_MS),
            ("draft_prefill_factor", 1, MOST_FACTOR),
            ("draft_outputs", 1, MOST_OUTPUTS_OF_ROUND),
            ("lookup_outputs", 1, MOST_OUTPUTS_OF_ROUND),
        ):
            allowed = f"a number from {least} to {most:,}"
            if finite(name, getattr(self, name), least, allowed) > most:
                raise InputError(name, getattr(self, name), allowed)


BOOK = Inputs(
    requests=WORKLOAD.requests,
    input_tokens=WORKLOAD.input_tokens,
    shared_prefix_tokens=WORKLOAD.prefix_tokens,
    output_tokens=WORKLOAD.output_tokens,
    block_tokens=pool_of(B.kv_format).page_tokens,
    kv_bytes_per_token=kv_bytes_per_token(INSTANCE.model),
    prefill_s=round(needs(B).prefill_s, 2),
    round_ms=round(needs(B).round_s / MS, 2),
    draft_memory_mib=DFLASH.memory_bytes // MIB,
    draft_prefill_factor=round(DFLASH.prefill_factor, 3),
    draft_outputs=int(DFLASH.outputs_per_round),
    lookup_outputs=LOOKED_UP_OUTPUTS,
    query_ms=QUERY_S / MS,
    memory_mib=LIMITS.memory_bytes // MIB,
    deadline_s=LIMITS.deadline_s,
    less_memory_mib=LESS_MEMORY.memory_bytes // MIB,
    short_output_tokens=SHORT_OUTPUTS.output_tokens,
)


def _for_both_outputs(*names: str) -> Callable[[Inputs], list[dict[str, Any]]]:
    """The cases of a part: for the outputs and the shorter ones, the inputs of these names."""
    return lambda inputs: [
        {"output_tokens": outputs} | some_of(inputs, names)
        for outputs in (inputs.output_tokens, inputs.short_output_tokens)
    ]


# a: memory


def _kv_mib(tokens: int, block_tokens: int, kv_bytes_per_token: int) -> float:
    return pages_for(tokens, block_tokens) * block_tokens * kv_bytes_per_token / MIB


def _memory(output_tokens: int, draft_memory_mib: int, **batch: int) -> Three:
    shared = _shared_kv(tokens_stored(batch["input_tokens"], output_tokens), **batch)
    return shared, shared + draft_memory_mib, shared


def _shared_kv(
    tokens: int, requests: int, input_tokens: int, shared_prefix_tokens: int, block_tokens: int, kv_bytes_per_token: int
) -> float:
    """MiB of requests with so many tokens each, the prefix among them, which is held once."""
    private = _kv_mib(tokens - shared_prefix_tokens, block_tokens, kv_bytes_per_token)
    return _kv_mib(shared_prefix_tokens, block_tokens, kv_bytes_per_token) + requests * private


def _as_b_and_d(shared: float, draft_memory_mib: int) -> Three:
    return shared, shared + draft_memory_mib, shared


MEMORY_PART = NumberPart(
    name="a",
    asked=(Quantity("memory of B", "MiB"), Quantity("memory of D", "MiB"), Quantity("memory of E", "MiB")),
    cases=_for_both_outputs(*_OF_MEMORY),
    key=_memory,
    mistakes=(
        Mistake(
            "the memory of D's draft network is given to E: it looks drafts up, with an index in host memory",
            lambda **case: _added_to_e(_memory(**case), case["draft_memory_mib"]),
        ),
        Mistake(
            "D's draft network is forgotten: it takes memory of the card beside the KV",
            lambda draft_memory_mib, **case: _memory(draft_memory_mib=0, **case),
        ),
        Mistake(
            "each request is given a prefix of its own: the three hold it once",
            lambda output_tokens, shared_prefix_tokens, draft_memory_mib, **batch: _as_b_and_d(
                _shared_kv(
                    tokens_stored(batch["input_tokens"], output_tokens), shared_prefix_tokens=0, **batch
                ),
                draft_memory_mib,
            ),
        ),
        Mistake(
            "the KV after prefill is given: at its end a request also holds its outputs but the last",
            lambda output_tokens, draft_memory_mib, **batch: _as_b_and_d(
                _shared_kv(batch["input_tokens"], **batch), draft_memory_mib
            ),
        ),
        Mistake(
            "the prefix is left out: it is held once, whoever shares it",
            lambda shared_prefix_tokens, block_tokens, kv_bytes_per_token, **case: _less(
                _memory(
                    shared_prefix_tokens=shared_prefix_tokens, block_tokens=block_tokens,
                    kv_bytes_per_token=kv_bytes_per_token, **case,
                ),
                _kv_mib(shared_prefix_tokens, block_tokens, kv_bytes_per_token),
            ),
        ),
        Mistake(
            "the last output is stored too: it is never fed back, so it has no KV",
            lambda output_tokens, **case: _memory(output_tokens=output_tokens + 1, **case),
            may_coincide=True,  # shows only where a request ends on a block's border
        ),
        Mistake(
            "tokens are not rounded up to blocks: a request holds whole ones",
            lambda block_tokens, **case: _memory(block_tokens=1, **case),
            may_coincide=True,  # shows only elsewhere
        ),
    ),
    first_step="count the blocks of the common prefix, held once, and those of each request behind it",
    hint="a request stores its input and its outputs but the last; D holds its draft network beside, E nothing",
)  # fmt: skip


def _added_to_e(three: Three, more: float) -> Three:
    b, d, e = three
    return b, d, e + more


def _less(three: Three, less: float) -> Three:
    b, d, e = three
    return b - less, d - less, e - less


# b: rounds


@lru_cache(maxsize=1024)  # the draws ask for the same ones again and again
def _rounds(output_tokens: int, draft_outputs: float, lookup_outputs: float) -> Three:
    each = (1.0, draft_outputs, lookup_outputs)
    b, d, e = (rounds_needed(output_tokens, outputs) for outputs in each)
    return b, d, e


ROUNDS = NumberPart(
    name="b",
    asked=(Quantity("rounds of B"), Quantity("rounds of D"), Quantity("rounds of E")),
    cases=_for_both_outputs(*_OF_ROUNDS),
    key=_rounds,
    mistakes=(
        Mistake(
            "a round is counted for the first output, too: it comes from the prefill",
            lambda output_tokens, **each: _rounds(output_tokens + 1, **each),
        ),
        Mistake(
            "the quotient is rounded down: then the last outputs are missing",
            lambda output_tokens, draft_outputs, lookup_outputs: (
                output_tokens - 1,
                *(int((output_tokens - 1) // outputs) for outputs in (draft_outputs, lookup_outputs)),
            ),
            may_coincide=True,  # where both quotients are whole for both numbers of outputs
        ),
        Mistake(
            "every output is given a round of its own: with drafts a round outputs several",
            lambda output_tokens, **_: (output_tokens - 1,) * 3,
        ),
        Mistake(
            "the outputs of a round are counted on top of the one that is there without a draft: they contain it",
            lambda output_tokens, draft_outputs, lookup_outputs: _rounds(
                output_tokens, draft_outputs + 1, lookup_outputs + 1
            ),
        ),
    ),
    first_step="take off the output that comes from the prefill, and ask how many rounds the others take",
    hint="divide by the outputs of a round, and round up: the last round may output more than is wanted",
)


# c: time


def _times(prefill_s: float, draft_prefill_factor: float, round_ms: float, query_ms: float, rounds: Three) -> Three:
    of_b, of_d, of_e = rounds
    return (
        prefill_s + of_b * round_ms * MS,
        prefill_s * draft_prefill_factor + of_d * round_ms * MS,
        prefill_s + of_e * (round_ms + query_ms) * MS,
    )


def _total(requests: int, output_tokens: int, draft_outputs: float, lookup_outputs: float, **times: float) -> Three:
    return _times(**times, rounds=_rounds(output_tokens, draft_outputs, lookup_outputs))


def _with_e(three: Three, e: float) -> Three:
    return three[0], three[1], e


def _e_with_queries(queries: Callable[[Mapping[str, Any]], float]) -> Callable[..., Three]:
    """The times if E asks so many times, instead of once in a round."""

    def wrong(**case: Any) -> Three:
        right = _total(**case | {"query_ms": 0})
        return _with_e(right, right[2] + queries(case) * case["query_ms"] * MS)

    return wrong


def _e_rounds(case: Mapping[str, Any]) -> float:
    return _rounds(case["output_tokens"], case["draft_outputs"], case["lookup_outputs"])[2]


def _e_with_d_prefill(**case: Any) -> Three:
    right = _total(**case)
    return _with_e(right, right[2] + case["prefill_s"] * (case["draft_prefill_factor"] - 1))


def _d_without_its_prefill(**case: Any) -> Three:
    return _total(**case | {"draft_prefill_factor": 1})


_GIVEN_D_PREFILL = "E is given D's longer prefill: that comes from the draft network, which E has not"
_FORGOT_D_PREFILL = "D's prefill is taken as B's: its draft network reads the prompt, too"
_FORGOT_PREFILL = "the prefill is left out: all outputs come behind it"
_QUERY_TOKEN = "a query is paid for each output: one is made for each round"
_QUERY_REQUEST = "a query is paid for each request of a round: its time is that of the whole batch"
_NO_QUERY = "the queries are left out: each round of E has one"
_ALL_ROUNDS = "E and D are given B's rounds: with drafts they take fewer"


def _all_rounds(draft_outputs: float, lookup_outputs: float, **case: Any) -> Three:
    return _total(draft_outputs=1, lookup_outputs=1, **case)


def _without_prefill(**case: Any) -> Three:
    return _total(**case | {"prefill_s": 0.0})


_WRONG_TIMES: tuple[tuple[str, Callable[..., Three]], ...] = (
    (_GIVEN_D_PREFILL, _e_with_d_prefill),
    (_FORGOT_D_PREFILL, _d_without_its_prefill),
    (_FORGOT_PREFILL, _without_prefill),
    (_ALL_ROUNDS, _all_rounds),
    (_QUERY_TOKEN, _e_with_queries(lambda case: case["output_tokens"] - 1)),
    (_QUERY_REQUEST, _e_with_queries(lambda case: _e_rounds(case) * case["requests"])),
    (_NO_QUERY, _e_with_queries(lambda case: 0)),
)
# What a query takes is little beside a round, so that these show only where it takes longer.
_SMALL = {_QUERY_TOKEN, _NO_QUERY}

TIME = NumberPart(
    name="c",
    asked=tuple(Quantity(f"time of {name}", "s", relative=0.002) for name in NAMES),
    cases=_for_both_outputs(*_OF_TIME),
    key=_total,
    mistakes=tuple(Mistake(says, wrong, may_coincide=says in _SMALL) for says, wrong in _WRONG_TIMES),
    first_step="write down the prefill, then the rounds of b with the time of each, for B, D and E",
    hint="D's prefill is longer by its factor; E's rounds are longer by one query each; B is as measured",
)


# d: time of the card for each qualified result


def _split(case: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: case[name] for name in ("output_tokens", *names)}


def _needed(case: Mapping[str, Any]) -> list[tuple[float, float]]:
    """Memory in MiB and time in s of B, D and E."""
    return list(zip(_memory(**_split(case, _OF_MEMORY)), _total(**_split(case, _OF_TIME)), strict=True))


def _per_result(memory_mib: float, deadline_s: float, times: Three | None = None, **case: Any) -> Three:
    """Seconds of the card for each qualified result of B, D and E; 0 where there is none."""
    needed = _needed(case)
    b, d, e = (
        time / case["requests"] if memory <= memory_mib and time <= deadline_s else 0.0
        for memory, time in (zip((memory for memory, _ in needed), times, strict=True) if times else needed)
    )
    return b, d, e


def _with_times(wrong: Callable[..., Three]) -> Callable[..., Three]:
    return lambda **case: _per_result(times=wrong(**_split(case, _OF_TIME)), **case)


PER_RESULT = NumberPart(
    name="d",
    # of none, which is 0, no share would be left as a tolerance
    asked=tuple(Quantity(f"GPU time per result of {name}", "s", relative=0.001, absolute=0.0002) for name in NAMES),
    cases=_for_both_outputs(*_OF_ALL, "memory_mib", "deadline_s"),
    key=_per_result,
    mistakes=(
        Mistake(
            "what is late or does not fit is given a time per result: it has no qualified result, so 0 stands for none",
            lambda memory_mib, deadline_s, **case: _per_result(MOST_BYTES, 1e9, **case),
        ),
        Mistake(
            "the time of the whole batch is given: its requests share it",
            lambda requests, **case: tuple(requests * each for each in _per_result(requests=requests, **case)),
        ),
        Mistake(
            "the memory is not asked for: what does not fit gives no result",
            lambda memory_mib, **case: _per_result(MOST_BYTES, **case),
            may_coincide=True,  # where all fit
        ),
        Mistake(
            "the deadline is not asked for: what is late gives no qualified result",
            lambda deadline_s, **case: _per_result(deadline_s=1e9, **case),
            may_coincide=True,  # where what is late does not fit either
        ),
        *(  # a query is little beside a round, and the function of c has been told what it forgets
            Mistake(says, _with_times(wrong), may_coincide=True)  # where D or E has no result
            for says, wrong in _WRONG_TIMES
            if says not in _SMALL
        ),
    ),
    first_step="see for B, D and E whether they fit and are in time: only then there are qualified results",
    hint="divide the time of c by the number of requests, or give 0 where memory or deadline is not kept",
    none_is_0=True,
)


# e, f, g: choices


def _verdicts(inputs: Inputs) -> list[tuple[str, float, float]]:
    """Name, memory in MiB and time in s of B, D and E."""
    case = some_of(inputs, ("output_tokens", *_OF_ALL))
    return [(name, *each) for name, each in zip(NAMES, _needed(case), strict=True)]


def _chosen(inputs: Inputs, fits: bool = True, in_time: bool = True, by_memory: bool = False) -> str:
    """Which of them is chosen; without asking for memory or time, or by the least memory, where that is said."""
    kept = [
        (memory if by_memory else time, name)
        for name, memory, time in _verdicts(inputs)
        if (not fits or memory <= inputs.memory_mib) and (not in_time or time <= inputs.deadline_s)
    ]
    return min(kept)[1] if kept else NONE


def _broken(inputs: Inputs, time_first: bool = False) -> set[str]:
    """What is rejected, each with the first limit that it breaks: memory is asked before time."""
    found = set()
    for name, memory, time in _verdicts(inputs):
        broken = [MEMORY] * (memory > inputs.memory_mib) + [DEADLINE] * (time > inputs.deadline_s)
        if broken:
            found.add(f"{name} {broken[-1 if time_first else 0]}")
    return found


def _with_less_memory(inputs: Inputs) -> Inputs:
    return replace(inputs, memory_mib=inputs.less_memory_mib)


def _with_short_outputs(inputs: Inputs) -> Inputs:
    return replace(inputs, output_tokens=inputs.short_output_tokens)


def _unchanged(inputs: Inputs) -> Inputs:
    return inputs


def _choice_part(
    name: str, changed: Callable[[Inputs], Inputs], first_step: str, more: tuple[Mistake, ...] = ()
) -> ChoicePart:
    return ChoicePart(
        name=name,
        options=lambda _: (*NAMES, NONE),
        key=lambda inputs: _chosen(changed(inputs)),
        mistakes=(  # where the same is chosen in spite of them, they do not show
            Mistake(
                "the least time is chosen whether or not it fits: what does not fit cannot be run",
                lambda inputs: _chosen(changed(inputs), fits=False),
                may_coincide=True,
            ),
            Mistake(
                "the least memory is chosen: of those that keep both limits the least time of the card decides",
                lambda inputs: _chosen(changed(inputs), by_memory=True),
                may_coincide=True,
            ),
            *more,
        ),
        first_step=first_step,
        hint="first the limits, memory and deadline; then, of those that keep both, the least GPU time per result",
    )  # fmt: skip


def _late(changed: Callable[[Inputs], Inputs]) -> Mistake:
    """For a part in which something is late."""
    return Mistake(
        "what is late is chosen: it has no qualified result",
        lambda inputs: _chosen(changed(inputs), in_time=False, by_memory=True),
        may_coincide=True,
    )


CHOICE = _choice_part(
    "e", _unchanged, "put the three times per result of d beside each other, for the outputs of the inputs",
    (_late(_unchanged),),
)  # fmt: skip
LESS = _choice_part(
    "f1", _with_less_memory, "ask which of the memories of a still fit, for the outputs of the inputs",
    (
        _late(_with_less_memory),
        Mistake(
            "what holds for A to D is copied: E is one more",
            lambda inputs: _chosen_of(_with_less_memory(inputs), "BD"),
            may_coincide=True,  # where E is not chosen
        ),
        Mistake(_MORE := "the memory is taken as it was: ask again who fits", _chosen, may_coincide=True),
    ),
)  # fmt: skip
SHORT = _choice_part(
    "g", _with_short_outputs, "put the times per result of d beside each other, for the short outputs",
    (
        Mistake("the outputs are taken as they were: short ones take fewer rounds", _chosen, may_coincide=True),
        Mistake(
            "the memory of the longer outputs is kept: requests with short ones hold fewer blocks",
            lambda inputs: _chosen_holding(inputs),
            may_coincide=True,  # where it fits as well
        ),
    ),
)  # fmt: skip


def _chosen_of(inputs: Inputs, names: str) -> str:
    kept = [(time, name) for name, memory, time in _verdicts(inputs) if name in names and memory <= inputs.memory_mib]
    kept = [(time, name) for time, name in kept if time <= inputs.deadline_s]
    return min(kept)[1] if kept else NONE


def _chosen_holding(inputs: Inputs) -> str:
    """The choice for short outputs with the memory of the longer ones."""
    needed = zip(_verdicts(inputs), _verdicts(_with_short_outputs(inputs)), strict=True)
    kept = [
        (time, name)
        for (name, memory, _), (_, _, time) in needed
        if memory <= inputs.memory_mib and time <= inputs.deadline_s
    ]
    return min(kept)[1] if kept else NONE


REJECTED = ChoicePart(
    name="f2",
    options=lambda _: _BROKEN,
    key=lambda inputs: _broken(_with_less_memory(inputs)),
    mistakes=(
        Mistake(
            "the deadline is asked first: what does not fit is not run at all",
            lambda inputs: _broken(_with_less_memory(inputs), time_first=True),
            may_coincide=True,  # where nothing breaks both
        ),
        Mistake(_MORE, _broken, may_coincide=True),  # where the same are rejected
    ),
    first_step="go through B, D and E: does it fit, and if it does, is it in time",
    hint="a set of words such as 'B memory': a name and the first limit that it breaks, none for what keeps both",
    several=True,
)


# h: what would turn the verdict on E


def _limits_of_e(
    output_tokens: int, prefill_s: float, round_ms: float, query_ms: float, lookup_outputs: float, deadline_s: float
) -> tuple[float, float]:
    """The longest round of E with which it is in time, in ms with its query, and the fewest outputs, at least 1."""
    left = deadline_s - prefill_s
    longest = left / rounds_needed(output_tokens, lookup_outputs) / MS
    return longest, max(1.0, (output_tokens - 1) / int(left / ((round_ms + query_ms) * MS)))


def _without_rounding(output_tokens: int, **case: Any) -> tuple[float, float]:
    longest, _ = _limits_of_e(output_tokens, **case)
    left_ms = (case["deadline_s"] - case["prefill_s"]) / MS
    return longest, max(1.0, (output_tokens - 1) * (case["round_ms"] + case["query_ms"]) / left_ms)


def _query_taken_off(query_ms: float, limits: tuple[float, float]) -> tuple[float, float]:
    longest, fewest = limits
    return longest - query_ms, fewest


FLIPS = NumberPart(
    name="h",
    asked=(
        Quantity("longest round of E", "ms", relative=0.002),
        Quantity("fewest outputs of a round", TOKENS, relative=0.002),
    ),
    cases=lambda inputs: [
        some_of(
            inputs, ("output_tokens", "prefill_s", "round_ms", "query_ms", "lookup_outputs", "deadline_s")
        )
    ],
    key=_limits_of_e,
    mistakes=(
        Mistake(
            "the prefill is forgotten: the rounds have what it leaves of the deadline",
            lambda prefill_s, **case: _limits_of_e(prefill_s=0.0, **case),
        ),
        Mistake(
            "a round is counted for the first output, too: it comes from the prefill",
            lambda output_tokens, **case: _limits_of_e(output_tokens + 1, **case),
            may_coincide=True,  # where that takes no round more, and the outputs are shared otherwise by little
        ),
        Mistake(
            "every output is given a round: with E a round outputs several",
            lambda lookup_outputs, **case: (
                _limits_of_e(lookup_outputs=1, **case)[0],
                _limits_of_e(lookup_outputs=lookup_outputs, **case)[1],
            ),
        ),
        Mistake(
            "parts of a round are counted: only whole ones come to an end before the deadline",
            _without_rounding,
            may_coincide=True,  # where nearly a whole number of rounds fits
        ),
        Mistake(
            "the query is taken off the longest round: its query is part of the round",
            lambda query_ms, **case: _query_taken_off(query_ms, _limits_of_e(query_ms=query_ms, **case)),
            may_coincide=True,  # where it is short
        ),
        Mistake(
            "the query is left out of the round: each round of E has one",
            lambda query_ms, **case: _limits_of_e(query_ms=0.0, **case),
            may_coincide=True,  # where it is short
        ),
    ),
    first_step="subtract the prefill from the deadline: that is for the rounds",
    hint="divide it by the rounds of E; then see how many whole rounds of E's length fit, and share the outputs",
)  # fmt: skip


# The draws


def _drawn(random: Random) -> Inputs:
    requests, block = random.randint(8, 32), BOOK.block_tokens
    outputs = block * random.randint(8, 24) + random.choice((1, random.randint(2, block)))
    workload = Workload(requests, output_tokens=outputs)
    one = needs(B, workload)
    inputs = replace(
        BOOK,
        requests=requests,
        output_tokens=outputs,
        prefill_s=round(one.prefill_s, 2),
        round_ms=round(one.round_s / MS, 2),
        lookup_outputs=random.randint(5, 16) / 4,
        query_ms=random.randint(1, 40) / 10,
        deadline_s=random.randint(10, 18) / 2,
        short_output_tokens=random.randint(8, 32),
    )
    of_b, of_d, _ = (memory for _, memory, _ in _verdicts(inputs))
    return replace(inputs, less_memory_mib=random.randint(ceil(of_b), ceil(of_d) - 1) // 64 * 64)


def _situations(inputs: Inputs) -> tuple[Inputs, Inputs, Inputs]:
    return inputs, _with_less_memory(inputs), _with_short_outputs(inputs)


def _margins(inputs: Inputs) -> Iterator[float]:
    """How far each need is from its limit, and the best choice from the next one, as a part of the limit."""
    for one in _situations(inputs):
        kept = []
        for _, memory, time in _verdicts(one):
            yield abs(memory / one.memory_mib - 1)
            yield abs(time / one.deadline_s - 1)
            if memory <= one.memory_mib and time <= one.deadline_s:
                kept.append(time)
        best, *others = sorted(kept) or [0.0]
        if others:
            yield others[0] / best - 1


def _suits(inputs: Inputs) -> bool:
    """Whether the three choices are not all the same, none is close, and `check` calls each mistake by its name."""
    return (
        len({_chosen(one) for one in _situations(inputs)}) > 1
        and min(_margins(inputs)) >= _CLEARLY
        and inputs.deadline_s - inputs.prefill_s >= (inputs.round_ms + inputs.query_ms) * MS
        and all(
            part.judge_function(inputs, mistake.formula).kind in {Kind.RIGHT, Kind.MISTAKE}
            for part in PARTS
            for mistake in part.mistakes
        )
    )


PARTS = (MEMORY_PART, ROUNDS, TIME, PER_RESULT, FLIPS)
EXERCISE = Exercise(
    number="8-9",
    parts=(MEMORY_PART, ROUNDS, TIME, PER_RESULT, CHOICE, LESS, REJECTED, SHORT, FLIPS),
    drawn=_drawn,
    suits=_suits,
)


def _by_chance_s(configuration: Configuration, workload: Workload = WORKLOAD) -> float:
    """Seconds until the slowest request ends, on average, if acceptance is drawn by chance."""
    found, draft = needs(configuration, workload), configuration.draft
    if draft is None:
        return found.total_s
    _, slowest = rounds_of_slowest(draft, workload.output_tokens, workload.requests)
    return found.prefill_s + slowest * found.round_s


def _still_chosen(workload: Workload, limits: Limits) -> str | None:
    """What is chosen if slots and chance are counted; None if nothing keeps the limits."""
    kept = [
        (time, one.name)
        for one, time in ((one, _by_chance_s(one, workload)) for one in (B, D, E))
        if memory_with_slots(one, workload) <= limits.memory_bytes and time <= limits.deadline_s
    ]
    return min(kept)[1] if kept else None


def notes() -> str:
    """What the arithmetic of the exercise leaves out, for those who have done it: not graded, the book's numbers."""
    with_slots, without = (of(D) // MIB for of in (memory_with_slots, lambda one: needs(one).memory_bytes))
    lines = [
        f"Slots: a draft may reach beyond the last output, which takes D {with_slots - without} MiB more: "
        f"{with_slots:,} of {LIMITS.memory_bytes // MIB:,}."
    ]
    for one in (D, E):
        assert one.draft
        mean, slowest = rounds_of_slowest(one.draft, WORKLOAD.output_tokens, WORKLOAD.requests)
        lines.append(
            f"Chance: if acceptance is random, a request of {one.name} takes {mean:.1f} rounds on average, the slowest "
            f"of {WORKLOAD.requests} takes {slowest:.1f}, and the batch ends with it: after {_by_chance_s(one):.2f} s, "
            f"where c has {needs(one).total_s:.2f} s."
        )
    for workload, limits in ((WORKLOAD, LIMITS), (WORKLOAD, LESS_MEMORY), (SHORT_OUTPUTS, LIMITS)):
        assert _still_chosen(workload, limits) == choose((B, D, E), workload, limits).name
    lines.append(f"No verdict turns: both end within {LIMITS.deadline_s:g} s, and e, f1 and g choose the same.")
    return "\n".join(lines)
