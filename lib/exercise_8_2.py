"""Exercise 8-2: from the longest interval allowed to the size of a prefill chunk. Source: sections 8.2.2 to 8.2.4."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Any

from lib.attention import causal_pairs
from lib.checks import InputError, whole, wholes
from lib.exercises import ChoicePart, Exercise, Mistake, NumberPart, Quantity, some_of
from lib.four_requests import MAX_RUNNING, MOST_PROMPT, NAMES, four_requests
from lib.records import record
from lib.schedule import MOST_NS, Interval, Schedule
from lib.scheduling import Policy, Request, continuous, fixed_batch, walk
from lib.step_time import FIT, MOST_TOKENS, NOBODY, Fit, StepPlan, decode_plan, step_plan, tokens_that_fit

MS = 10**6  # ns
MOST_STEP_NS = 3600 * 10**9  # of each term, so of a step with little in it
MOST_LIMIT_MS = 10**6
LEAST_ROOM = 16  # new tokens that the limit of a variant leaves for
FIXED_PART, NEW_TOKENS, PAIRS = "fixed part", "new tokens", "pairs"
LONGEST, P95, MEDIAN = "longest interval", "p95 interval", "median interval"
QUEUE, TTFT = "queue in the engine", "time to first token"
# The two runs that differ in the budget alone: prompts in chunks, no graph.
REPLAY = tuple(record("six_request_replay_summary").where(chunked_prefill=1, decode_cuda_graph=0))
COLUMNS = {
    LONGEST: "interval_max_ms",
    P95: "interval_p95_ms",
    MEDIAN: "interval_median_ms",
    QUEUE: "r4_engine_queue_median_ms",
    TTFT: "r4_ttft_median_ms",
}


@dataclass(frozen=True)
class Inputs:
    """What the exercise starts from: a step's time in ns, four requests r0 … r3, a chunk of tokens, a limit in ms."""

    fixed_ns: int
    per_new_token_ns: int
    per_causal_pair_ns: int
    input_tokens: tuple[int, ...]
    output_tokens: tuple[int, ...]
    arrivals_ns: tuple[int, ...]
    chunk: int
    chunk_contexts: tuple[int, ...]
    limit_ms: int

    def __post_init__(self) -> None:
        for name in ("fixed_ns", "per_new_token_ns", "per_causal_pair_ns"):
            whole(name, getattr(self, name), at_least=1, at_most=MOST_STEP_NS)
        each = f"a tuple, one for each of {', '.join(NAMES)}"
        wholes("input_tokens", self.input_tokens, 1, MOST_PROMPT, len(NAMES), each)
        wholes("output_tokens", self.output_tokens, 1, 1000, len(NAMES), each)
        wholes("arrivals_ns", self.arrivals_ns, 0, MOST_NS // 2, len(NAMES), each)  # the end is a time too
        wholes("chunk_contexts", self.chunk_contexts, 0, MOST_TOKENS, 2, "a tuple of two contexts")
        if not 1 < self.output_tokens[1] < self.output_tokens[0]:
            raise InputError("output_tokens", self.output_tokens, "at least two of r1, and more of r0 than of r1")
        if self.arrivals_ns[0] != self.arrivals_ns[1] or tuple(sorted(self.arrivals_ns)) != self.arrivals_ns:
            raise InputError("arrivals_ns", self.arrivals_ns, "r0 and r1 at once, r2 not before them, r3 not before r2")
        whole("chunk", self.chunk, at_least=1, at_most=MOST_TOKENS)
        whole("limit_ms", self.limit_ms, at_least=1, at_most=MOST_LIMIT_MS)

    @property
    def step_time(self) -> Fit:
        """The time of a step from what is in it."""
        return Fit(self.fixed_ns, self.per_new_token_ns, self.per_causal_pair_ns)


BOOK = Inputs(
    fixed_ns=FIT.fixed_ns,
    per_new_token_ns=FIT.per_new_token_ns,
    per_causal_pair_ns=FIT.per_causal_pair_ns,
    input_tokens=tuple(request.prompt for request in four_requests()),
    output_tokens=tuple(request.output for request in four_requests()),
    arrivals_ns=tuple(request.arrival_ns for request in four_requests()),
    chunk=512,
    chunk_contexts=(0, 7680),
    limit_ms=50,
)

Answer = tuple[int, int, float]


@lru_cache(maxsize=64)
def _schedule(inputs: Inputs, policy: Policy) -> Schedule:
    load = zip(inputs.arrivals_ns, inputs.input_tokens, inputs.output_tokens, strict=True)
    return walk([Request(*one) for one in load], policy, inputs.step_time)


def _answer(inputs: Inputs, new_tokens: int, pairs: int, passes: int = 1) -> Answer:
    """New tokens, pairs and the time in ms of this work, if the fixed part is paid in so many passes."""
    once = inputs.step_time(StepPlan(new_tokens, pairs, 0, 1))
    return new_tokens, pairs, (once + (passes - 1) * inputs.fixed_ns) / MS


def _step(inputs: Inputs, number: int) -> StepPlan:
    (step,) = _schedule(inputs, continuous(MAX_RUNNING)).steps(number, number + 1)
    return step_plan(*((part.new_tokens, part.context) for part in step.parts))


def _admitting(inputs: Inputs) -> int:
    """The step in which r2 enters."""
    return _schedule(inputs, continuous(MAX_RUNNING)).started_step[2]


def _worked(inputs: Inputs, number: int, passes: int = 1) -> Answer:
    plan = _step(inputs, number)
    return _answer(inputs, plan.new_tokens, plan.pairs, passes)


def _whole_inputs(inputs: Inputs) -> list[Mapping[str, Any]]:
    return [{"inputs": inputs}]


WORK = (
    Quantity("new tokens"),
    Quantity("query-key pairs"),
    Quantity("time of the step", "ms", absolute=0.01),
)
_TWO_PASSES = "the fixed part is paid once per request: all work of a step shares one pass"

PREFILL = NumberPart(
    name="a",
    asked=WORK,
    cases=_whole_inputs,
    key=lambda inputs: _worked(inputs, 0),
    mistakes=(
        Mistake(_TWO_PASSES, lambda inputs: _worked(inputs, 0, passes=2)),
        Mistake(
            "each token looks at the whole prompt: causal attention leaves a triangle, the diagonal included",
            lambda inputs: _answer(inputs, sum(_first_two(inputs)), sum(L * L for L in _first_two(inputs))),
        ),
        Mistake(
            "the two prompts are taken for one sequence: tokens of one request never look at the other's",
            lambda inputs: _answer(inputs, sum(_first_two(inputs)), causal_pairs(sum(_first_two(inputs)))),
        ),
        Mistake(
            "for one request by itself; here both are computed in the same step, which adds up tokens and pairs",
            lambda inputs: _answer(inputs, inputs.input_tokens[0], causal_pairs(inputs.input_tokens[0])),
            accepted=True,
        ),
    ),
    first_step="count the new tokens of both prompts, then the pairs of each prompt by itself",
    hint="a prompt of L tokens has 1 + 2 + … + L pairs; add both, then the fixed part once",
)

DECODE = NumberPart(
    name="b",
    asked=WORK,
    cases=_whole_inputs,
    key=lambda inputs: _worked(inputs, 1),
    mistakes=(
        Mistake(_TWO_PASSES, lambda inputs: _worked(inputs, 1, passes=2)),
        Mistake(
            "a new token does not look at itself: behind h tokens it sees h + 1",
            lambda inputs: _answer(inputs, 2, sum(_first_two(inputs))),
        ),
        Mistake(
            "one request alone is decoded: the other has its token in the same step",
            lambda inputs: _answer(inputs, 1, inputs.input_tokens[0] + 1),
        ),
    ),
    first_step="each of the two requests feeds back its first output: one new token each, behind its own prompt",
    hint="count for each request the tokens of its prompt and the new token itself",
)


def _admitting_if(inputs: Inputs, prompt_pairs: int, r0_sees: int) -> Answer:
    """What the step that admits r2 would be, if its prompt had so many pairs and r0's token saw so many tokens."""
    return _answer(inputs, inputs.input_tokens[2] + 1, prompt_pairs + r0_sees)


ADMITTING = NumberPart(
    name="c",
    asked=WORK,
    cases=_whole_inputs,
    key=lambda inputs: _worked(inputs, _admitting(inputs)),
    mistakes=(
        Mistake(
            "prefill and decode take a pass each: both are computed in one step, and the fixed part is paid once",
            lambda inputs: _worked(inputs, _admitting(inputs), passes=2),
        ),
        Mistake(
            "r0 is forgotten: it has a token in this step too, behind its prompt and the outputs that it fed back",
            lambda inputs: _answer(inputs, inputs.input_tokens[2], causal_pairs(inputs.input_tokens[2])),
        ),
        Mistake(
            "each token looks at the whole prompt: causal attention leaves a triangle, the diagonal included",
            lambda inputs: _admitting_if(
                inputs, inputs.input_tokens[2] ** 2, inputs.input_tokens[0] + inputs.output_tokens[1]
            ),
        ),
        Mistake(
            "r0 is one token short: the output that it feeds back looks at itself as well",
            lambda inputs: _admitting_if(
                inputs, causal_pairs(inputs.input_tokens[2]), inputs.input_tokens[0] + inputs.output_tokens[1] - 1
            ),
        ),
        Mistake(
            "r1 is taken to have two outputs: r2 enters when r1 has given all of its own, and so many has r0 by then",
            lambda inputs: _admitting_if(inputs, causal_pairs(inputs.input_tokens[2]), inputs.input_tokens[0] + 2),
        ),
    ),
    first_step="find out who is in this step: all of r2's prompt, and r0, which still generates",
    hint="r0 has given as many outputs as r1 by then; it feeds back the newest, behind its prompt and the others",
)


def _longest(inputs: Inputs) -> Interval:
    found = _schedule(inputs, continuous(MAX_RUNNING)).longest_interval()
    assert found
    return found


def _longest_step(inputs: Inputs) -> int:
    (number,) = _schedule(inputs, continuous(MAX_RUNNING)).steps_of(_longest(inputs))
    return number


def _newcomer(inputs: Inputs) -> int:
    """The place of the request that entered last when the longest interval's step began: in that step, as a rule."""
    started, longest = _schedule(inputs, continuous(MAX_RUNNING)).started_step, _longest_step(inputs)
    return max((step, place) for place, step in enumerate(started) if step <= longest)[1]


def _newcomer_alone_ms(inputs: Inputs) -> float:
    """How long the longest interval's step would take if its newcomer's prompt were all that is in it."""
    prompt = inputs.input_tokens[_newcomer(inputs)]
    return _answer(inputs, prompt, causal_pairs(prompt))[2]


def _entering_ms(inputs: Inputs, place: int) -> float:
    """How long the step takes in which this request enters."""
    return _worked(inputs, _schedule(inputs, continuous(MAX_RUNNING)).started_step[place])[2]


LONGEST_INTERVAL = NumberPart(
    name="d1",
    asked=(Quantity("longest interval", "ms", absolute=0.01),),
    cases=_whole_inputs,
    key=lambda inputs: _longest(inputs).length_ns / MS,
    mistakes=(
        Mistake(
            "the wait for a first output is taken for an interval: one lies between two outputs of the same request",
            lambda inputs: max(_schedule(inputs, continuous(MAX_RUNNING)).ttft_ns.tolist()) / MS,
        ),
        Mistake(
            "only the newcomer's prompt is counted: the request that waits has a token in the same step",
            _newcomer_alone_ms,
        ),
        Mistake(
            "prefill and decode take a pass each: a request waits for one step in which both are computed",
            lambda inputs: (_longest(inputs).length_ns + inputs.fixed_ns) / MS,
        ),
        Mistake(
            "only a step of decodes is counted: an output comes when the whole step ends, a newcomer's prompt included",
            lambda inputs: _worked(inputs, 1)[2],
        ),
        Mistake(
            "the step of c is taken whatever else comes: when r3 enters, its prompt may be the longer one",
            lambda inputs: _entering_ms(inputs, 2),
            may_coincide=True,  # in half of the draws r2 makes the longest pause, in the others r3
        ),
        Mistake(
            "the step that admits r3 is taken: look whether a request goes on generating in it, and at r2's as well",
            lambda inputs: _entering_ms(inputs, 3),
            may_coincide=True,
        ),
    ),
    first_step="write down when each request gives its outputs, and take the differences",
    hint="an output comes at the end of a step, so look for the longest step in which a request goes on generating",
)


def _between(inputs: Inputs, shift: int = 0) -> str:
    """The numbers of the two outputs around the longest interval, or of two that lie so much later."""
    first = _longest(inputs).output + shift
    return f"{first} and {first + 1}"


def _largest_term(inputs: Inputs) -> str:
    plan = _step(inputs, _longest_step(inputs))
    terms = {
        FIXED_PART: inputs.fixed_ns,
        NEW_TOKENS: inputs.per_new_token_ns * plan.new_tokens,
        PAIRS: inputs.per_causal_pair_ns * plan.pairs,
    }
    return max(terms, key=lambda name: terms[name])


WHOSE = ChoicePart(
    name="d2",
    options=lambda _: NAMES,
    key=lambda inputs: NAMES[_longest(inputs).place],
    mistakes=(
        Mistake(
            "the newcomer's wait is taken: it has no output before this step, so its wait is part of TTFT",
            lambda inputs: NAMES[_newcomer(inputs)],
        ),
        Mistake("r1 is taken: it has given its last output when r2 enters", lambda _: "r1"),
    ),
    first_step="ask who gave an output before the longest step and gives one at its end",
    hint="two requests share that step: one enters, the other goes on generating",
)

BETWEEN = ChoicePart(
    name="d3",
    options=lambda inputs: tuple(f"{number} and {number + 1}" for number in range(1, max(inputs.output_tokens))),
    key=_between,
    mistakes=(
        Mistake("the prefill's own output is not counted: it is the first", lambda inputs: _between(inputs, -1)),
        Mistake(
            "the step is taken for the one after it: count the steps from the prefill on",
            lambda inputs: _between(inputs, 1),
        ),
    ),
    first_step="number the outputs of that request by the steps that give them: its prefill gives the first",
    hint="each step after its prefill gives one more; the longest step gives the later of the two",
)

LARGEST_TERM = ChoicePart(
    name="d4",
    options=lambda _: (FIXED_PART, NEW_TOKENS, PAIRS),
    key=_largest_term,
    mistakes=(),
    first_step="compute the three terms of the longest interval's step in ms and compare them",
    hint="there are millions of pairs for thousands of tokens, but a token costs thousands of times what a pair does",
)

CHUNK_PAIRS = NumberPart(
    name="e",
    asked=(Quantity("query-key pairs"),),
    cases=lambda inputs: [{"chunk": inputs.chunk, "context": context} for context in inputs.chunk_contexts],
    key=lambda chunk, context: causal_pairs(chunk, context),
    mistakes=(
        Mistake(
            "each token of the chunk looks at the whole chunk: it sees only itself and those before it",
            lambda chunk, context: chunk * context + chunk**2,
        ),
        Mistake(
            "the diagonal is left out: each token looks at itself too",
            lambda chunk, context: causal_pairs(chunk, context) - chunk,
        ),
    ),
    first_step="the first new token sees h + 1 tokens, the second h + 2: add up to h + c",
    hint="that is a rectangle of c times h beside a triangle with its diagonal",
)


def _room(
    fixed_ns: int,
    per_new_token_ns: int,
    per_causal_pair_ns: int,
    limit_ms: int,
    decoding_context: int | None,
    context: int,
) -> int:
    """New tokens of a prompt that fit, beside one request in decode unless its context is None."""
    step_time = Fit(fixed_ns, per_new_token_ns, per_causal_pair_ns)
    decoding = NOBODY if decoding_context is None else decode_plan(1, decoding_context)
    return tokens_that_fit(limit_ms * MS, step_time, context, decoding)


def _histories(inputs: Inputs) -> list[dict[str, int]]:
    """The inputs of part f for each context behind the chunk; beside it r0 has fed back nothing but its prompt."""
    names = ("fixed_ns", "per_new_token_ns", "per_causal_pair_ns", "limit_ms")
    common = some_of(inputs, names) | {"decoding_context": inputs.input_tokens[0]}
    return [common | {"context": context} for context in inputs.chunk_contexts]


TOKENS_THAT_FIT = NumberPart(
    name="f",
    asked=(Quantity("new tokens that fit"),),
    cases=_histories,
    key=_room,
    mistakes=(
        Mistake(
            "the pairs are forgotten: a new token costs time for itself and for each token that it looks at",
            lambda **case: _room(**case | {"per_causal_pair_ns": 0}),
        ),
        Mistake(
            "the context behind the chunk is forgotten: each of its tokens looks at all of it",
            lambda **case: _room(**case | {"context": 0}),
        ),
        Mistake(
            "the request in decode is forgotten: its token is computed in the same step",
            lambda **case: _room(**case | {"decoding_context": None}),
        ),
        Mistake(
            "the fixed part is forgotten: a step pays it before its first token",
            lambda **case: _room(**case | {"fixed_ns": 0}),
        ),
        Mistake(
            "the number is rounded up: with that many tokens the step ends after the limit",
            lambda **case: _room(**case) + 1,
        ),
    ),
    first_step="take from the limit what the step costs without the prompt: the fixed part and the decoded token",
    hint="c new tokens behind h cost t1 c + t2 (c h + c (c + 1)/2); look for the largest whole c within what is left",
)


def _budgets(allowed: Callable[[Mapping[str, Any]], bool]) -> frozenset[int]:
    return frozenset(row["token_budget_per_step"] for row in REPLAY if allowed(row))


def _below_limit(column: str) -> Callable[[Inputs], frozenset[int]]:
    return lambda inputs: _budgets(lambda row: row[COLUMNS[column]] < inputs.limit_ms)


def _least(column: str) -> Callable[[Inputs], int]:
    return lambda _: int(min(REPLAY, key=lambda row: row[COLUMNS[column]])["token_budget_per_step"])


def _all_budgets(_: Inputs) -> tuple[int, ...]:
    return tuple(sorted(_budgets(lambda _: True)))


WITHIN_LIMIT = ChoicePart(
    name="g",
    options=_all_budgets,
    key=_below_limit(LONGEST),
    mistakes=(
        Mistake("the median is compared: half of the intervals are longer", _below_limit(MEDIAN)),
        Mistake("the 95th percentile is compared: one interval in twenty is longer", _below_limit(P95)),
    ),
    first_step="pick the column that speaks of the longest interval, and compare each row with the limit",
    hint="a limit on the longest interval allows no exception, so neither median nor p95 can tell; none may remain",
    several=True,
)

EARLIEST = ChoicePart(
    name="h",
    options=_all_budgets,
    key=_least(QUEUE),
    mistakes=(
        Mistake("intervals are kept short instead: here late requests shall be admitted early", _least(LONGEST)),
    ),
    first_step="compare how long the late request waited before anything of it was computed",
    hint="a larger budget ends the prompts before it in fewer steps",
)


def _decided_by(name: str, key: str, mistakes: tuple[Mistake, ...], first_step: str, hint: str) -> ChoicePart:
    return ChoicePart(name, lambda _: tuple(COLUMNS), lambda _: key, mistakes, first_step, hint)


DECIDES_LIMIT = _decided_by(
    "i1",
    LONGEST,
    (
        Mistake("p95 is taken for the limit: it leaves out one interval in twenty", lambda _: P95),
        Mistake("the median is taken for the limit: it hides every pause", lambda _: MEDIAN),
    ),
    "read the goal of g again: which column does it put a bound on",
    "one pause is enough to break it",
)
DECIDES_ADMISSION = _decided_by(
    "i2",
    QUEUE,
    (
        Mistake(
            "time to first token is taken: it holds the prefill as well, admission ends with the queue", lambda _: TTFT
        ),
    ),
    "read the goal of h again: when is a request admitted",
    "admission is the end of waiting, before the prefill",
)


def _drawn(random: Random) -> Inputs:
    chunk = random.choice((256, 512, 1024))
    first, second = 128 * random.randint(8, 32), 128 * random.randint(8, 32)
    third, fourth = (chunk * number for number in random.sample(range(4096 // chunk, 16384 // chunk + 1), 2))
    r1_outputs, r2_outputs = random.randint(3, 4), random.randint(3, 5)
    # r1 ends first; then, as r0 goes on by less, as much or more than r2 has outputs, r2 ends after, with or before it
    r0_outputs = r1_outputs + r2_outputs + random.choice((-1, 0, 2, 3))
    arrival = random.randint(5, 40)
    limit_ms = random.choice((random.randint(33, 182), random.randint(23, 31)))
    return Inputs(
        fixed_ns=10_000 * random.randint(800, 3000),
        per_new_token_ns=100 * random.randint(150, 600),
        per_causal_pair_ns=random.randint(1, 6),
        input_tokens=(first, second, third, fourth),
        output_tokens=(r0_outputs, r1_outputs, r2_outputs, random.randint(2, 4)),
        arrivals_ns=(0, 0, arrival * MS, (arrival + random.randint(5, 20)) * MS),
        chunk=chunk,
        chunk_contexts=(0, third - chunk),
        limit_ms=limit_ms,
    )


def _suits(inputs: Inputs) -> bool:
    """Whether r2 and r3 wait for a border, r2 makes a long pause, continuous saves time, and the limit leaves room."""
    waiting = max(inputs.arrivals_ns) / MS < _worked(inputs, 0)[2]
    pause = _worked(inputs, _admitting(inputs))[2] > 5 * _worked(inputs, 1)[2]
    saves = _schedule(inputs, continuous(MAX_RUNNING)).total_ns < _schedule(inputs, fixed_batch(MAX_RUNNING)).total_ns
    room = min(_room(**case) for case in _histories(inputs)) >= LEAST_ROOM
    return waiting and pause and saves and room


def _first_two(inputs: Inputs) -> tuple[int, ...]:
    return inputs.input_tokens[:2]


EXERCISE = Exercise(
    number="8-2",
    parts=(
        PREFILL,
        DECODE,
        ADMITTING,
        LONGEST_INTERVAL,
        WHOSE,
        BETWEEN,
        LARGEST_TERM,
        CHUNK_PAIRS,
        TOKENS_THAT_FIT,
        WITHIN_LIMIT,
        EARLIEST,
        DECIDES_LIMIT,
        DECIDES_ADMISSION,
    ),
    drawn=_drawn,
    suits=_suits,
)
