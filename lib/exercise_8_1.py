"""Exercise 8-1: what a larger batch saves in reading, and whether memory stops it. Source: sections 8.1.2 and 8.2.1."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from lib.checks import whole, wholes
from lib.design_problem import INSTANCE, LONG_CONTEXT, SHORT_CHAT
from lib.exercises import ChoicePart, Exercise, Mistake, NumberPart, Quantity, some_of
from lib.memory import MOST_BYTES, MOST_TOKENS, paged_bytes, tokens_stored
from lib.model import QWEN3_8B, Transformer, kv_bytes_per_token, preset, streamed_weight_bytes, weight_bytes
from lib.reads import kv_crossover, reads_per_output, step_reads
from lib.units import GIB, MIB

CAPACITY, CROSSING = "capacity", "crossing"
POOL_GRAIN = 64 * MIB  # of drawn pools
# Without windows, so that every token of the context costs the same KV; at 16 bits.
MODELS = (QWEN3_8B, preset("Llama-3.1-8B"), preset("Mistral-7B-v0.1"))

_WEIGHTS = ("streamed_weight_bytes", "resident_weight_bytes", "kv_bytes_per_token")
_POOLS = ("pool_bytes", "other_pool_bytes")
_PAGES = ("kv_bytes_per_token", "page_tokens", "output_tokens")


@dataclass(frozen=True)
class Inputs:
    """What the exercise starts from: bytes of weights, KV and pools; tokens of contexts, page and outputs; batches."""

    streamed_weight_bytes: int
    resident_weight_bytes: int
    kv_bytes_per_token: int
    contexts: tuple[int, ...]
    batches: tuple[int, ...]
    pool_bytes: int
    other_pool_bytes: int
    page_tokens: int
    output_tokens: int

    def __post_init__(self) -> None:
        for name in _WEIGHTS + _POOLS:
            whole(name, getattr(self, name), at_least=1, at_most=MOST_BYTES)
        for name in ("page_tokens", "output_tokens"):
            whole(name, getattr(self, name), at_least=1, at_most=MOST_TOKENS)
        wholes("contexts", self.contexts, 1, MOST_TOKENS, count=2, allowed="a tuple of two contexts")
        wholes("batches", self.batches, 1, MOST_TOKENS)


BOOK = Inputs(
    streamed_weight_bytes=streamed_weight_bytes(INSTANCE.model),
    resident_weight_bytes=weight_bytes(INSTANCE.model),
    kv_bytes_per_token=kv_bytes_per_token(INSTANCE.model),
    contexts=(SHORT_CHAT.input_tokens, LONG_CONTEXT.input_tokens),
    batches=(1, 4, 16, 64),
    pool_bytes=INSTANCE.kv_pool_bytes,
    other_pool_bytes=16 * GIB,
    page_tokens=16,
    output_tokens=SHORT_CHAT.output_tokens,
)


def _each(*names: str, batches: bool = False) -> Any:
    """The cases of a part: for each context (and each batch), the inputs of these names."""

    def cases(inputs: Inputs) -> list[dict[str, int]]:
        common = some_of(inputs, names)
        if not batches:
            return [common | {"context": context} for context in inputs.contexts]
        return [common | {"context": L, "batch": b} for L in inputs.contexts for b in inputs.batches]

    return cases


def _reads_gib(weight_bytes: int, kv_bytes_per_token: int, context: int, batch: int) -> float:
    return float(reads_per_output(weight_bytes, batch, context, kv_bytes_per_token) / GIB)


def _request_bytes(kv_bytes_per_token: int, context: int, page_tokens: int, output_tokens: int) -> int:
    return paged_bytes(tokens_stored(context, output_tokens), page_tokens, kv_bytes_per_token)


def _that_fit(pool_bytes: int, **request: int) -> int:
    return pool_bytes // _request_bytes(**request)


def _pool_gib(batch: int, request_bytes: int) -> float:
    return batch * request_bytes / GIB


READS = NumberPart(
    name="a",
    asked=(Quantity("reads per output token", "GiB", relative=0.005),),
    cases=_each(*_WEIGHTS, batches=True),
    key=lambda streamed_weight_bytes, resident_weight_bytes, **rest: _reads_gib(streamed_weight_bytes, **rest),
    mistakes=(
        Mistake(
            "the whole batch is counted: a step's reads serve one output of each request, so divide by the batch",
            lambda streamed_weight_bytes, batch, context, kv_bytes_per_token, **_: (
                step_reads(streamed_weight_bytes, batch, context, kv_bytes_per_token) / GIB
            ),
        ),
        Mistake(
            "the KV is divided by the batch too: each request reads its own, only the weights are shared",
            lambda streamed_weight_bytes, batch, context, kv_bytes_per_token, **_: (
                step_reads(streamed_weight_bytes, 1, context, kv_bytes_per_token) / batch / GIB
            ),
        ),
        Mistake(
            "all resident weights are read: of the input embeddings a step looks up single rows only",
            lambda streamed_weight_bytes, resident_weight_bytes, **rest: _reads_gib(resident_weight_bytes, **rest),
        ),
    ),
    first_step="write down what one step of the batch reads in all: the weights once, and each request's own KV",
    hint="one step gives as many outputs as there are requests: divide its reads by the batch, then by 1024³",
)

CROSSOVER = NumberPart(
    name="b",
    asked=(Quantity("smallest batch"),),
    cases=_each(*_WEIGHTS),
    key=lambda streamed_weight_bytes, context, kv_bytes_per_token, **_: kv_crossover(
        streamed_weight_bytes, context, kv_bytes_per_token
    ),
    mistakes=(
        Mistake(
            "the quotient is rounded down: with that many requests the KV read is still below the weight read",
            lambda streamed_weight_bytes, context, kv_bytes_per_token, **_: (
                streamed_weight_bytes // (context * kv_bytes_per_token)
            ),
        ),
        Mistake(
            "all resident weights are compared: only those that a step reads count",
            lambda resident_weight_bytes, context, kv_bytes_per_token, **_: kv_crossover(
                resident_weight_bytes, context, kv_bytes_per_token
            ),
        ),
    ),
    first_step="set the KV that a batch of b requests reads beside the weights, which are read once",
    hint="b contexts of KV must reach the streamed weights: divide, and take the next whole number of requests",
)

CAPACITY_PART = NumberPart(
    name="c",
    asked=(Quantity("requests that fit"),),
    cases=_each("pool_bytes", *_PAGES),
    key=_that_fit,
    mistakes=(
        Mistake(
            "only the KV after prefill is reserved: a request grows until its last output",
            lambda pool_bytes, kv_bytes_per_token, context, page_tokens, **_: (
                pool_bytes // paged_bytes(context, page_tokens, kv_bytes_per_token)
            ),
        ),
        Mistake(
            "the last output is stored too: it is never fed back, so it has no KV",
            lambda pool_bytes, kv_bytes_per_token, context, page_tokens, output_tokens: (
                pool_bytes // paged_bytes(context + output_tokens, page_tokens, kv_bytes_per_token)
            ),
            may_coincide=True,  # shows only where a request ends on a page's border
        ),
        Mistake(
            "tokens are not rounded up to pages: a request holds whole pages",
            lambda pool_bytes, kv_bytes_per_token, context, output_tokens, **_: (
                pool_bytes // (tokens_stored(context, output_tokens) * kv_bytes_per_token)
            ),
            may_coincide=True,  # shows only elsewhere
        ),
    ),
    first_step="count the tokens whose KV a request holds when it ends",
    hint="round those tokens up to whole pages, turn them into bytes, and see how many whole requests the pool holds",
)


def _with_other_pool(inputs: Inputs) -> Inputs:
    return replace(inputs, pool_bytes=inputs.other_pool_bytes)


def _stops_first(inputs: Inputs, number: int) -> str:
    fitting = CAPACITY_PART.key(**CAPACITY_PART.cases(inputs)[number])
    return CAPACITY if fitting < CROSSOVER.key(**CROSSOVER.cases(inputs)[number]) else CROSSING


def _stops_first_part(name: str, number: int) -> ChoicePart:
    return ChoicePart(
        name=name,
        options=lambda _: (CAPACITY, CROSSING),
        key=lambda inputs: _stops_first(inputs, number),
        mistakes=(),
        first_step="compare the answers of b and c for this context: which is met first while the batch grows",
        hint="a batch that does not fit cannot be run, so the smaller of the two numbers decides",
    )


def _stops_first_with_other_pool(name: str, number: int) -> ChoicePart:
    return ChoicePart(
        name=name,
        options=lambda _: (CAPACITY, CROSSING),
        key=lambda inputs: _stops_first(_with_other_pool(inputs), number),
        mistakes=(
            Mistake(
                "the first pool is taken again: ask how many requests fit into the other one",
                lambda inputs: _stops_first(inputs, number),
                may_coincide=True,  # the other pool gives another answer for one of the two contexts
            ),
        ),
        first_step="count with the function of c how many requests the other pool holds, then compare with b",
        hint="the crossing of b does not depend on the pool; it is reached if the batch of b still fits",
    )


MEETING_POOL = NumberPart(
    name="e",
    asked=(Quantity("pool", "GiB", relative=0.005),),
    cases=_each(*_WEIGHTS, *_PAGES),
    key=lambda streamed_weight_bytes, resident_weight_bytes, context, kv_bytes_per_token, **pages: _pool_gib(
        kv_crossover(streamed_weight_bytes, context, kv_bytes_per_token),
        _request_bytes(kv_bytes_per_token, context, **pages),
    ),
    mistakes=(
        Mistake(
            "each request is given its KV after prefill: at its end it holds more",
            lambda streamed_weight_bytes, context, kv_bytes_per_token, page_tokens, **_: _pool_gib(
                kv_crossover(streamed_weight_bytes, context, kv_bytes_per_token),
                paged_bytes(context, page_tokens, kv_bytes_per_token),
            ),
        ),
        Mistake(
            "one request less than the crossing is held: the quotient of b must be rounded up",
            lambda streamed_weight_bytes, resident_weight_bytes, context, kv_bytes_per_token, **pages: _pool_gib(
                streamed_weight_bytes // (context * kv_bytes_per_token),
                _request_bytes(kv_bytes_per_token, context, **pages),
            ),
        ),
    ),
    first_step="ask how many requests the pool must hold: as many as the answer of b",
    hint="multiply the batch of b by the bytes that one request holds at its end, in whole pages, as in c",
)


def drawn_outputs(random: Random, page_tokens: int) -> int:
    """Outputs of a request whose input fills whole pages: the last one begins a page, in half of the draws."""
    whole("page_tokens", page_tokens, at_least=2, at_most=512)
    # at 1, L + G - 1 ends on a page's border, so that storing the last output as well would cost one page more
    past_border = random.choice((1, random.randint(2, page_tokens)))
    return page_tokens * random.randint(128 // page_tokens, 512 // page_tokens) + past_border


def _drawn(random: Random) -> Inputs:
    model: Transformer = random.choice(MODELS)
    page_tokens = random.choice((8, 16, 32, 64))
    context = 64 * random.randint(16, 64)
    output_tokens = drawn_outputs(random, page_tokens)
    pool_bytes = POOL_GRAIN * random.randint(6 * 16, 24 * 16)
    inputs = Inputs(
        streamed_weight_bytes=streamed_weight_bytes(model),
        resident_weight_bytes=weight_bytes(model),
        kv_bytes_per_token=kv_bytes_per_token(model),
        contexts=(context, 4 * context),
        batches=tuple(sorted(random.sample(range(2, 65), 4))),
        pool_bytes=pool_bytes,
        other_pool_bytes=pool_bytes,
        page_tokens=page_tokens,
        output_tokens=output_tokens,
    )
    lower, upper = sorted(round(MEETING_POOL.key(**case) * GIB) for case in MEETING_POOL.cases(inputs))
    between = random.randint(lower // POOL_GRAIN, upper // POOL_GRAIN)
    return replace(inputs, other_pool_bytes=between * POOL_GRAIN)


def _suits(inputs: Inputs) -> bool:
    """Whether the pool decides clearly and alike for both contexts, the other one not, and a slip with pages shows."""
    shares = list(_pool_by_meeting_pool(inputs))
    clear = all(share < 0.9 for share in shares) or all(share > 1.1 for share in shares)
    first, second = (_stops_first(_with_other_pool(inputs), number) for number in range(2))
    shown = CAPACITY_PART.led_away(inputs)
    return clear and first != second and any(mistake.may_coincide for mistake in shown)


def _pool_by_meeting_pool(inputs: Inputs) -> Iterator[float]:
    for context in inputs.contexts:
        growth = tokens_stored(context, inputs.output_tokens) / context
        yield inputs.pool_bytes / (inputs.streamed_weight_bytes * growth)


EXERCISE = Exercise(
    number="8-1",
    parts=(
        READS,
        CROSSOVER,
        CAPACITY_PART,
        _stops_first_part("d1", 0),
        _stops_first_part("d2", 1),
        _stops_first_with_other_pool("d3", 0),
        _stops_first_with_other_pool("d4", 1),
        MEETING_POOL,
    ),
    drawn=_drawn,
    suits=_suits,
)
